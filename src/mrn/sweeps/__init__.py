"""Sweeps: train the runs of a suite in parallel."""
