"""Learning algorithms by name."""

from collections.abc import Iterable
from dataclasses import fields

from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.algorithms.cmd import CMD
from mrn.algorithms.crl import CRL
from mrn.algorithms.ddpg import DDPG
from mrn.algorithms.gcsl import GCSL
from mrn.algorithms.mher import MHER
from mrn.algorithms.mqe import MQE
from mrn.algorithms.policy import Policy
from mrn.algorithms.qrl import QRL
from mrn.algorithms.sac import SAC
from mrn.algorithms.td3 import TD3
from mrn.algorithms.tmd import TMD
from mrn.algorithms.wgcsl import WGCSL
from mrn.critics import CRITICS
from mrn.utils.errors import UserError
from mrn.utils.naming import NO_CRITIC
from mrn.utils.plugins import find_plugin

__all__ = [
    "ALGORITHMS",
    "CMD",
    "CRL",
    "DDPG",
    "GCSL",
    "MHER",
    "MQE",
    "QRL",
    "SAC",
    "TD3",
    "TMD",
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
    "mher": MHER,
    "crl": CRL,
    "cmd": CMD,
    "tmd": TMD,
    "mqe": MQE,
    "qrl": QRL,
}

AUTO, DEFAULT_CRITIC = "auto", "mrn"
"""The setting that selects the default critic, and that critic."""


def find_algorithm(name: str) -> type[Algorithm]:
    """Return an algorithm by name, or a custom one by `package.module:name`.

    Raises:
        UserError: The name is unknown; the message lists the available ones.
    """

    def is_algorithm(found: object) -> bool:
        return isinstance(found, type) and issubclass(found, Algorithm)

    return find_plugin(
        "algorithm", name, ALGORITHMS, is_algorithm, "a subclass of mrn.algorithms.Algorithm"
    )


def choose_critic(algo: str, critic: str) -> str:
    """Resolve the `critic` setting of a run; `auto` selects the algorithm's default.

    Raises:
        UserError: The algorithm is unknown or cannot use that critic.
    """
    uses_critic = find_algorithm(algo).uses_critic
    if critic == AUTO:
        return DEFAULT_CRITIC if uses_critic else NO_CRITIC
    if uses_critic and critic == NO_CRITIC:
        raise UserError(
            f"algorithm {algo!r} needs a critic: leave {NO_CRITIC!r} out to use "
            f"{DEFAULT_CRITIC!r}, or choose one of {', '.join(CRITICS)}"
        )
    if critic != NO_CRITIC and not uses_critic:
        alternatives = [name for name, each in ALGORITHMS.items() if each.uses_critic]
        raise UserError(
            f"algorithm {algo!r} learns without a critic: leave {critic!r} out, or choose an "
            f"algorithm that has one ({', '.join(alternatives)})"
        )
    if critic in CRITICS and not find_algorithm(algo).can_use(critic):
        usable = [name for name in CRITICS if find_algorithm(algo).can_use(name)]
        raise UserError(
            f"algorithm {algo!r} cannot use critic {critic!r}: choose one of {', '.join(usable)}"
        )
    return critic


def check_goal_mix(algo: str, strategies: Iterable[str]) -> None:
    """Check that a mixture contains `imagined` if, and only if, the algorithm imagines goals.

    Raises:
        UserError: The mixture does not fit the algorithm.
    """
    imagined, imagines = "imagined" in strategies, find_algorithm(algo).imagines_goals
    if imagined and not imagines:
        able = [name for name, each in ALGORITHMS.items() if each.imagines_goals]
        raise UserError(
            f"goal_mix: algorithm {algo!r} has no model for the strategy 'imagined': remove it, or "
            f"choose {', '.join(able)}"
        )
    if imagines and not imagined:
        raise UserError(
            f"algorithm {algo!r} needs the strategy 'imagined': pass goal_mix, for example "
            "imagined=0.8, or imagined=0,future=0.8 to disable it"
        )


def other_algorithms_setting(name: str, algo: str) -> UserError | None:
    """Return the error for a setting that only other algorithms have, or None."""

    def has(algorithm: type[Algorithm]) -> bool:
        return any(item.name == name for item in fields(algorithm.Settings))

    owners = [other for other, algorithm in ALGORITHMS.items() if has(algorithm)]
    if not owners or has(find_algorithm(algo)):
        return None
    return UserError(
        f"{name} is a setting of {', '.join(owners)}, not of {algo}: choose one of these "
        "algorithms, or remove the setting"
    )
