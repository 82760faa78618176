"""Storage of a search: an Optuna study in a journal file that several processes share.

The journal is a text file with one JSON object per line, without pickles. Each line is appended
and flushed to disk under a lock that the operating system releases when its holder is killed.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState

from mrn.sweeps.search import Search, State, Trial
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import open_own, open_regular
from mrn.utils.seeding import derive_seed

JOURNAL = "study.jsonl"
LOCK = "study.lock"
NAME = "mrn"
"""Name of the study in the journal."""
DEFINITION, PROBLEM = "search", "problem"
"""User attributes of the study and of failed trials."""
STATES: dict[TrialState, State] = {
    TrialState.RUNNING: "running",
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
DAMAGED = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""Exceptions that Optuna raises for journals it did not write."""
DIGITS = 3
"""Significant digits of sampled numbers, which keep commands readable."""


class Study:
    """Trials of a search, stored in a folder. Each change is a single line of the journal."""

    def __init__(self, folder: Path, search: Search) -> None:
        """Open the study in a folder, or create it.

        Raises:
            UserError: The folder holds a different search, or its journal is damaged.
        """
        self.search, self.path, self._lock = search, folder / JOURNAL, folder / LOCK
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with self.locked():
            with _exclusive(self.path):  # creates it; no link is followed, unlike by Optuna
                open_regular(self.path).close()
            with _journal_errors(self.path):
                lock = _JournalLock(self.path)
                self._storage = JournalStorage(JournalFileBackend(str(self.path), lock))
                if NAME not in optuna.get_all_study_names(self._storage):
                    optuna.create_study(
                        storage=self._storage, study_name=NAME, direction="maximize"
                    )
                self._study = optuna.load_study(
                    storage=self._storage, study_name=NAME, pruner=_pruner(search)
                )
            self._check_definition()
        self._distributions = {k: _distribution(v) for k, v in search.space.searched.items()}

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from adding or continuing trials in this block."""
        with _exclusive(self._lock):
            yield

    def trials(self) -> list[Trial]:
        """Return all trials by number.

        Raises:
            UserError: The journal is damaged.
        """
        with _journal_errors(self.path):
            frozen = self._frozen()
            trials = [_as_trial(each) for each in frozen]
            for trial, each in zip(trials, frozen, strict=True):
                if each.distributions != self._distributions:
                    raise ValueError(f"trial {trial.number} has settings of another space")
                if trial.state == "complete" and each.value != trial.success:
                    raise ValueError(f"trial {trial.number} has another success than its curve")
            return trials

    def add(self) -> Trial:
        """Choose the settings of the next trial; call it in `locked`.

        The first trial has the recipe's settings, if they are in the space. Later settings depend
        only on the trials so far and the seed, so a restarted search makes the same choices.

        Raises:
            UserError: The combination of settings is not allowed.
        """
        number = len(self._frozen())
        defaults = self.search.space.values_in(self.search.defaults) if number == 0 else None
        settings = defaults or self._sample(number)
        self.search.config(Trial(number, "running", settings), self.search.seeds[0])  # may raise
        new = optuna.create_trial(
            state=TrialState.RUNNING, params=settings, distributions=self._distributions
        )
        with _journal_errors(self.path):
            self._study.add_trial(new)
        return self.trials()[number]

    def report(self, number: int, step: int, success: float) -> bool:
        """Store the mean success after an evaluation; return whether to prune the trial."""
        with _journal_errors(self.path):
            self._storage.set_trial_intermediate_value(self._id(number), step, success)
        trial = self._frozen()[number]
        return self.search.prune and self._study.pruner.prune(self._study, trial)

    def end(self, number: int, state: State, problem: str = "") -> Trial:
        """Store that a trial is complete, pruned or failed."""
        trial = self.trials()[number]
        result = {name: each for each, name in STATES.items()}[state]
        value = trial.success if state == "complete" else None
        with _journal_errors(self.path):
            if problem:
                self._storage.set_trial_user_attr(self._id(number), PROBLEM, problem)
            self._study.tell(number, value, state=result)
        return trial._replace(state=state, problem=problem)

    def _frozen(self) -> list[FrozenTrial]:
        return self._study.get_trials(deepcopy=False)

    def _id(self, number: int) -> int:
        """Return the storage's ID of a trial."""
        study = self._storage.get_study_id_from_name(NAME)
        return self._storage.get_trial_id_from_study_id_trial_number(study, number)

    def _sample(self, number: int) -> dict[str, Any]:
        """Return settings from the tree-structured Parzen estimator, on a copy of the study.

        A copy, because Optuna stores one setting after another, and a kill in between would leave
        an incomplete trial.
        """
        sampler = optuna.samplers.TPESampler(seed=derive_seed(self.search.seed, "trial", number))
        copy = optuna.create_study(direction="maximize", sampler=sampler)
        copy.add_trials(self._frozen())
        sampled = copy.ask(self._distributions).params
        return {name: _rounded(value, self._distributions[name]) for name, value in sampled.items()}

    def _check_definition(self) -> None:
        """Store what is searched, or check that it is the same as before."""
        before, now = self._study.user_attrs.get(DEFINITION), self.search.to_json()
        if before is None:
            with _journal_errors(self.path):
                self._study.set_user_attr(DEFINITION, now)
        elif before != now:
            names = [name for name in before | now if before.get(name) != now.get(name)]
            changes = "; ".join(f"{k} was {before.get(k)}, now {now.get(k)}" for k in names)
            raise UserError(
                f"{self.path.parent} holds a different search: {changes}. Restore these options, "
                "or choose another --name"
            )


class _JournalLock(JournalFileOpenLock):
    """Lock on the journal itself. Optuna's own locks outlive a killed process by 30 seconds."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path, self.held = path, ExitStack()

    def acquire(self) -> bool:
        _remove_torn_line(self.held.enter_context(_exclusive(self.path)))
        return True

    def release(self) -> None:
        self.held.close()


@contextmanager
def _exclusive(path: Path) -> Iterator[IO[bytes]]:
    """Wait for the lock on a file, created if missing; hold it in this block."""
    with _journal_errors(path), open_own(path, "a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file


def _remove_torn_line(journal: IO[bytes]) -> None:
    """Remove a last line without its end, left by a full disk or a power failure."""
    size = journal.seek(0, os.SEEK_END)
    journal.seek(max(size - 1, 0))
    if journal.read(1) not in (b"", b"\n"):
        journal.seek(0)
        journal.truncate(journal.read().rfind(b"\n") + 1)


@contextmanager
def _journal_errors(path: Path) -> Iterator[None]:
    """Convert errors of the storage to one message."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror or error}") from error
    except DAMAGED as error:
        raise UserError(f"{path} is damaged: {error!r}") from error


def _pruner(search: Search) -> optuna.pruners.BasePruner:
    """Return the median rule; the first quarter of a run is too early to judge."""
    return optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=-(-search.epochs // 4))


def _distribution(entry: dict[str, Any]) -> BaseDistribution:
    if "choices" in entry:
        return CategoricalDistribution(entry["choices"])
    kind = IntDistribution if isinstance(entry["low"], int) else FloatDistribution
    return kind(entry["low"], entry["high"], log=entry["log"])


def _rounded(value: Any, distribution: BaseDistribution) -> Any:
    if not isinstance(distribution, FloatDistribution):
        return value
    return min(max(float(f"{value:.{DIGITS}g}"), distribution.low), distribution.high)


def _as_trial(trial: FrozenTrial) -> Trial:
    curve = tuple(value for _, value in sorted(trial.intermediate_values.items()))
    problem = str(trial.user_attrs.get(PROBLEM, ""))
    return Trial(trial.number, STATES[trial.state], trial.params, curve, problem)
