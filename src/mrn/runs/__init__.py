"""Run folders: settings, metrics, checkpoints, weights and provenance."""
