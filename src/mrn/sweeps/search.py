"""A search for settings: what is varied, what is measured, and its trials."""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from mrn.config import Config
from mrn.critics import find_critic
from mrn.sweeps.space import Space
from mrn.sweeps.suites import task_of
from mrn.training.schedule import resolve_epochs
from mrn.utils.errors import UserError
from mrn.utils.naming import NO_CRITIC
from mrn.utils.validation import Seed, check

State = Literal["running", "complete", "pruned", "failed"]


class Trial(NamedTuple):
    """One choice of settings, trained on all seeds unless it was pruned or failed."""

    number: int
    state: State
    settings: dict[str, Any]
    """Values of the searched settings."""
    curve: tuple[float, ...] = ()
    """Mean success over the evaluations so far, after each of them; seed after seed."""
    problem: str = ""
    """Why it failed."""

    @property
    def success(self) -> float | None:
        """Mean success over all evaluations so far, which a search maximizes."""
        return self.curve[-1] if self.curve else None


@dataclass(frozen=True)
class Search:
    """Everything that determines the trials of a search."""

    task: str
    algo: str
    critic: str
    recipe: str
    space: Space
    seeds: tuple[int, ...]
    """Training seeds of each trial; its success is the mean over them."""
    seed: int = 0
    """Seed of the sampler."""
    prune: bool = True
    """Whether to stop trials below the median."""

    def __post_init__(self) -> None:
        """Check the seeds and the settings that all trials share."""
        check("seeds", self.seeds, tuple[Seed, ...])
        check("seed", self.seed, Seed)
        if len(set(self.seeds)) < len(self.seeds) or not self.seeds:
            raise UserError(f"seeds must be different numbers, got {list(self.seeds)}")
        if not self.defaults.schedule.eval_episodes:
            raise UserError("a search needs evaluations, but eval_episodes is 0")
        if self.defaults.critic != NO_CRITIC:
            find_critic(self.defaults.critic)

    @cached_property
    def defaults(self) -> Config:
        """Configuration with the recipe's values of the searched settings."""
        return self._config({})

    @property
    def epochs(self) -> int:
        """Evaluations per run, one after each epoch."""
        assert self.defaults.epochs is not None  # resolved
        return self.defaults.epochs

    def config(self, trial: Trial, seed: int) -> Config:
        """Return the configuration of a run.

        Raises:
            UserError: The combination of settings is not allowed.
        """
        return self._config(trial.settings, variant=f"trial-{trial.number:03d}", seed=seed)

    def tuned(self, trial: Trial) -> Config:
        """Return the configuration with a trial's settings, for any seed."""
        return replace(self._config(trial.settings), seed=Config.seed)

    def to_json(self) -> dict[str, Any]:
        """Return everything that a repeated command must have in common."""
        return asdict(self) | {"seeds": list(self.seeds)}

    def _config(self, settings: dict[str, Any], **run: Any) -> Config:
        chosen = {"algo": self.algo, "critic": self.critic, "recipe": self.recipe}
        config = Config.of(self.task, **chosen | self.space.fixed | settings | run)
        return resolve_epochs(config, task_of(config))
