"""Run folders: settings, metrics, checkpoints, weights and their provenance."""
