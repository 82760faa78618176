"""Name and version of this package."""

from importlib import metadata

DISTRIBUTION = "mrn-rl"
"""Name of the distribution, as in `pip install`."""
__version__ = metadata.version(DISTRIBUTION)
