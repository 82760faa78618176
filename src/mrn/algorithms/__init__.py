"""Who learns: the algorithms by name."""

from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.ddpg import DDPG
from mrn.algorithms.gcsl import GCSL
from mrn.algorithms.policy import Policy
from mrn.algorithms.sac import SAC
from mrn.algorithms.td3 import TD3
from mrn.algorithms.wgcsl import WGCSL
from mrn.critics import CRITICS
from mrn.utils.errors import UserError
from mrn.utils.naming import NO_CRITIC
from mrn.utils.plugins import find_plugin

__all__ = [
    "ALGORITHMS",
    "DDPG",
    "GCSL",
    "SAC",
    "TD3",
    "WGCSL",
    "Algorithm",
    "AlgorithmSettings",
    "CriticFactory",
    "Policy",
    "find_algorithm",
]

ALGORITHMS: dict[str, type[Algorithm]] = {
    "ddpg": DDPG,
    "td3": TD3,
    "sac": SAC,
    "gcsl": GCSL,
    "wgcsl": WGCSL,
}

AUTO, DEFAULT_CRITIC = "auto", "mrn"
"""How a run says that it takes the usual critic, and which that is."""


def find_algorithm(name: str) -> type[Algorithm]:
    """The algorithm of that name, or of a user's `package.module:name`.

    Raises:
        UserError: There is none; lists those there are.
    """

    def fits(found: object) -> bool:
        return isinstance(found, type) and issubclass(found, Algorithm)

    return find_plugin(
        "algorithm", name, ALGORITHMS, fits, "a class derived from mrn.algorithms.Algorithm"
    )


def choose_critic(algo: str, critic: str) -> str:
    """The critic of an agent's run: the one asked for; for `auto` mrn, or none if it has no use.

    Raises:
        UserError: The agent cannot use that critic, or there is no such agent.
    """
    uses_critic = find_algorithm(algo).uses_critic
    if critic == AUTO:
        return DEFAULT_CRITIC if uses_critic else NO_CRITIC
    if uses_critic and critic == NO_CRITIC:
        raise UserError(
            f"algorithm {algo!r} needs a critic: leave {NO_CRITIC!r} out for {DEFAULT_CRITIC}, or choose one "
            f"of {', '.join(CRITICS)}"
        )
    if critic != NO_CRITIC and not uses_critic:
        raise UserError(
            f"algorithm {algo!r} learns without a critic: leave {critic!r} out, or choose an algorithm "
            f"that has one ({', '.join(name for name, each in ALGORITHMS.items() if each.uses_critic)})"
        )
    return critic
