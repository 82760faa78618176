"""Name and version of this package."""

from importlib import metadata

DISTRIBUTION = "mrn-rl"
"""Name to install the package by, as in `pip install`."""
__version__ = metadata.version(DISTRIBUTION)
