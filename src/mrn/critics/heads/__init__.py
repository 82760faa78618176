"""Distances between embeddings."""
