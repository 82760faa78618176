"""Inspection of a trained critic (`mrn inspect`)."""
