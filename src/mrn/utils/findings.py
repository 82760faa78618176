"""Results of the checks behind `mrn check`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    """Name of the check."""
    verdict: Literal["ok", "warning", "error", "skipped"]
    """`error` prevents training; `warning` does not, but should be fixed."""
    found: str
    remedy: str = ""
