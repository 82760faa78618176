"""The version of this package."""

from importlib import metadata

__version__ = metadata.version("mrn")
