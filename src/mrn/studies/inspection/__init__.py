"""A look into a trained critic."""
