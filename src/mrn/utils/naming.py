"""Names of run folders and of compared methods."""

from typing import NamedTuple

NO_CRITIC = "none"
"""Name of the critic for algorithms without one."""


def safe_name(name: str) -> str:
    """Return a name that is safe for a folder: replace all but letters, digits and -_.+= by _.

    Names of dots only, such as "..", are paths to other folders; their dots are replaced, too.
    """
    kept = "-_.+=" if name.strip(".") else ""
    return "".join(c if c.isalnum() or c in kept else "_" for c in name)


class Method(NamedTuple):
    """Method to compare on a task, and the name of its folder: ALGO-CRITIC[+VARIANT]."""

    algo: str
    critic: str
    variant: str = ""
    """Recipe or settings that distinguish methods with the same algorithm and critic."""

    def __str__(self) -> str:
        variant = f"+{self.variant}" if self.variant else ""
        return safe_name(f"{self.algo}-{self.critic}{variant}")

    @classmethod
    def parse(cls, name: str) -> "Method":
        """Parse a folder name. Algorithm names contain no dash; neither part contains a plus."""
        pair, _, variant = name.partition("+")
        algo, _, critic = pair.partition("-")
        return cls(algo, critic, variant)
