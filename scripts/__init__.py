"""Analyses, generated pages and checks of the published results. Not part of the package."""
