"""Callbacks: user code that training calls after each cycle and each epoch."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mrn.agent import Agent
from mrn.runs.metrics import Row
from mrn.utils.errors import UserError

EpochFunction = Callable[[Agent, Row], bool | None]
"""Function called after each epoch, like `Callback.on_epoch`."""


class Callback:
    """Base class of callbacks: override the methods you need.

    Training stops if a method returns True. With several ranks, only rank 0 calls them.
    """

    def on_cycle(self, agent: Agent, row: Row) -> bool | None:
        """Run after each cycle: one episode per environment, then the gradient steps.

        If it returns True within an epoch, training saves a checkpoint and ends without another
        evaluation. The run can be resumed.

        Args:
            agent: The agent in training.
            row: `epoch`, `cycle` (from 1), `env_steps`, `updates`, and the algorithm's metrics,
                averaged over the cycle.
        """

    def on_epoch(self, agent: Agent, row: Row) -> bool | None:
        """Run after each epoch and its evaluation, once weights and metrics are saved.

        Args:
            agent: The agent in training.
            row: The epoch's row of metrics.csv.
        """


class _FunctionCallback(Callback):
    """Callback that calls a plain function after each epoch."""

    def __init__(self, function: EpochFunction) -> None:
        self.function = function

    def on_epoch(self, agent: Agent, row: Row) -> bool | None:
        return self.function(agent, row)


def as_callbacks(callbacks: Any) -> list[Callback]:
    """Return a user's callbacks as a list, with plain functions converted.

    Raises:
        UserError: They are not a list of functions and `Callback` objects.
    """
    given: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) else [None]
    for each in given:
        if isinstance(each, type) and issubclass(each, Callback):
            raise UserError(f"callbacks must be objects, got a class; use {each.__name__}()")
        if not callable(each) and not isinstance(each, Callback):
            raise UserError(
                f"callbacks must be a list of functions or mrn.Callback objects, got {callbacks!r}"
            )
    return [each if isinstance(each, Callback) else _FunctionCallback(each) for each in given]


def call_on_cycle(callbacks: Sequence[Callback], agent: Agent, row: Row) -> bool:
    """Call all callbacks after a cycle; return whether one stops training."""
    return True in [callback.on_cycle(agent, row) for callback in callbacks]


def call_on_epoch(callbacks: Sequence[Callback], agent: Agent, row: Row) -> bool:
    """Call all callbacks after an epoch; return whether one stops training."""
    return True in [callback.on_epoch(agent, row) for callback in callbacks]
