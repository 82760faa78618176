"""Construction of an algorithm by name, with checks of its interface."""

from torch import nn

from mrn.algorithms import find_algorithm
from mrn.algorithms.adam import Adam
from mrn.algorithms.base import Algorithm, AlgorithmSettings, CriticFactory
from mrn.critics import Critic, Dims, make_critic
from mrn.utils.errors import UserError
from mrn.utils.plugins import wrap_plugin_errors


def make_algorithm(name: str, critic: str, dims: Dims, settings: AlgorithmSettings) -> Algorithm:
    """Build an algorithm, and its critics, by name.

    Raises:
        UserError: A name is unknown, or the algorithm or the critic cannot be used.
    """

    def build_critic() -> Critic:
        sizes = (dims.state, dims.action, dims.goal)
        return make_critic(critic, *sizes, hidden_dim=settings.hidden_dim)

    return build_algorithm(name, find_algorithm(name), dims, build_critic, settings)


def build_algorithm(
    name: str,
    kind: type[Algorithm],
    dims: Dims,
    make_critic: CriticFactory,
    settings: AlgorithmSettings,
) -> Algorithm:
    """Build an algorithm and check that it is complete.

    Args:
        name: Its name, for error messages.
        kind: Its class.
        dims: Sizes of states, actions and goals.
        make_critic: Factory of critics.
        settings: Instance of its `Settings`.

    Raises:
        UserError: A method or an attribute is missing, or the constructor of a custom algorithm
            fails.
    """
    missing = sorted(kind.__abstractmethods__)
    missing += [] if hasattr(kind, "METRICS") else ["METRICS"]
    if missing:
        raise UserError(f"algorithm {name!r} must define {', '.join(missing)}")
    with wrap_plugin_errors("algorithm", name):
        algorithm = kind(dims, make_critic, settings)
        optimizers = algorithm.optimizers
    actor = getattr(algorithm, "actor", None)
    if not isinstance(actor, nn.Module):
        raise UserError(f"algorithm {name!r} must set self.actor to a torch module, got {actor!r}")
    if not isinstance(optimizers, dict) or not all(
        isinstance(each, Adam) for each in optimizers.values()
    ):
        raise UserError(
            f"optimizers of algorithm {name!r} must be a dictionary of mrn.algorithms.adam.Adam, "
            f"got {optimizers!r}"
        )
    return algorithm
