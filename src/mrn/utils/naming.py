"""Names of files, and of what is compared."""

from typing import NamedTuple

NO_CRITIC = "none"
"""The critic of an agent that learns without one."""


def safe_name(name: str) -> str:
    """A name that can be a folder's: everything but letters, digits and -_.+= becomes _."""
    return "".join(c if c.isalnum() or c in "-_.+=" else "_" for c in name)


class Method(NamedTuple):
    """What is compared on a task, and the folder of its runs: AGENT-CRITIC or ...+VARIANT."""

    algo: str
    critic: str
    variant: str = ""
    """What sets it apart from others of the same agent and critic: a recipe, or settings."""

    def __str__(self) -> str:
        variant = f"+{self.variant}" if self.variant else ""
        return safe_name(f"{self.algo}-{self.critic}{variant}")

    @classmethod
    def parse(cls, name: str) -> "Method":
        """Take a name apart; an agent's name has no dash, a critic's may, and neither has a +."""
        pair, _, variant = name.partition("+")
        algo, _, critic = pair.partition("-")
        return cls(algo, critic, variant)
