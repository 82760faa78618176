"""Search for settings: train the trials of a study like the runs of a sweep.

A trial trains its seeds one after another, each in a normal run folder. Several processes may work
on the same study. A trial belongs to the process that holds the lock on its folder; if that process
is killed, another one continues the trial from its last checkpoint.
"""

from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from mrn.runs.lock import LockedError, RunLock, is_held
from mrn.sweeps.jobs import Job, current_status, plan_job
from mrn.sweeps.overview import Overview
from mrn.sweeps.scheduler import Backend, Sweep, open_sweep
from mrn.sweeps.search import Search, State, Trial
from mrn.sweeps.study import JOURNAL, Study
from mrn.sweeps.trials import BEST, TABLE, TRIALS, write_files
from mrn.utils.errors import RunError, UserError
from mrn.utils.files import make_writable_folder
from mrn.utils.validation import check_unicode

MAX_FAILURES = 3
"""Trials that may fail in a row; more have a common cause."""
REMEDY = "Remove this folder, or choose another --name"


def tune(
    search: Search,
    folder: Path,
    trials: int,
    backend: Backend,
    threads: int = 1,
    discard: bool = False,
) -> list[Trial]:
    """Train trials until the study has the given number; a repeated call continues it.

    Args:
        search: What to search.
        folder: Folder of the study and its runs.
        trials: Total number of trials, including earlier ones.
        backend: Executes the runs; its capacity is the number of parallel trials.
        threads: CPU threads of each new run.
        discard: Delete the checkpoints of finished runs.

    Returns:
        All trials of the study.

    Raises:
        UserError: The folder is not writable, holds a different search, or is damaged.
        RunError: Several trials failed in a row.
        Interrupted: A signal stopped the search; all runs have saved or were killed.
    """
    check_unicode("runs", folder)
    for name in (TRIALS, TABLE, BEST):
        if (folder / name).exists() and not (folder / JOURNAL).exists():
            raise UserError(f"{folder / name} was not written by mrn tune; choose another --name")
    make_writable_folder(folder, "choose another --runs")
    study = Study(folder, search)
    work = Sweep((), backend, TrialOverview(), discard)
    worker = _Worker(study, work, trials, threads)
    worker.check_results()
    try:
        with open_sweep(work) as interruption:
            worker.overview.begin_search(study.trials(), trials, search)
            while worker.advance() and not interruption.received:
                work.step()
    finally:
        for each in worker.active.values():
            each.lock.close()
    worker.write_files()  # also if a process was killed before it wrote them
    return study.trials()


class TrialOverview(Overview):
    """Progress display of a search."""

    def begin_search(self, before: list[Trial], trials: int, search: Search) -> None:
        """Register the trials so far and those still to train."""
        ended = sum(trial.state != "running" for trial in before)
        self.total = max(trials - ended, 0) * len(search.seeds)
        self.planned = self.total * search.epochs
        seeds = ", ".join(map(str, search.seeds))
        self._print(f"{trials} trials with seeds {seeds}; {ended} already finished")

    def ended(self, trial: Trial, missing: int) -> None:
        """Print that a trial is complete, pruned or failed, `missing` evaluations early."""
        self.planned -= missing
        success = "-" if trial.success is None else f"{trial.success:.1%}"
        settings = " ".join(f"{name}={value}" for name, value in trial.settings.items())
        problem = f": {trial.problem}" if trial.problem else ""
        self._print(
            f"{trial.state:<9} trial {trial.number}  mean success {success}  {settings}{problem}"
        )


@dataclass
class _Active:
    """A trial of this process."""

    trial: Trial
    jobs: list[Job]
    lock: RunLock
    reported: list[float]
    """Mean success after each evaluation, as stored in the study."""


class _Worker:
    """Chooses trials, starts their runs and judges them."""

    def __init__(self, study: Study, work: Sweep, trials: int, threads: int) -> None:
        self.study, self.work, self.trials, self.threads = study, work, trials, threads
        self.search, self.folder = study.search, study.path.parent
        assert isinstance(work.overview, TrialOverview)
        self.overview = work.overview
        self.active: dict[int, _Active] = {}
        self.failures = 0

    def check_results(self) -> None:
        """Check that the results in the study are those of the runs.

        Raises:
            UserError: They are not.
        """
        for trial in self.study.trials():
            if trial.state == "running":
                continue
            try:
                jobs = self._plan(trial)
            except UserError:
                if trial.state == "failed":  # maybe for this reason
                    continue
                raise
            # A pruned run may have finished another epoch before it stopped.
            agrees = _curve(jobs)[: len(trial.curve)] == [*trial.curve]
            if trial.state != "pruned":
                agrees &= all(map(_is_finished, jobs)) == (trial.state == "complete")
            if not agrees:
                success = "no success" if trial.success is None else f"success {trial.success:.1%}"
                raise UserError(
                    f"{self.study.path} is damaged: trial {trial.number} is {trial.state} with "
                    f"{success}, but its runs differ. Restore the folder from a copy, or choose "
                    "another --name"
                )

    def advance(self) -> bool:
        """Start trials and follow them; return whether any trial is left.

        A process without trials waits for those of other processes, and takes over if these are
        killed.
        """
        while len(self.active) < self.work.backend.capacity and self._claim():
            pass
        for each in list(self.active.values()):
            self._follow(each)
        trials = self.study.trials()
        return len(trials) < self.trials or any(trial.state == "running" for trial in trials)

    def write_files(self) -> None:
        """Write the files about all trials; locked, so that none is overwritten by an older one."""
        with self.study.locked():
            write_files(self.folder, self.search, self.study.trials())

    def _claim(self) -> bool:
        """Continue a trial of a killed process, or add a new one; return whether there was one."""
        with self.study.locked():
            trials = self.study.trials()
            for trial in trials:
                if trial.state == "running" and trial.number not in self.active:
                    lock = self._lock(trial)
                    if lock is None:
                        continue
                    trial = self.study.trials()[trial.number]
                    if trial.state == "running":  # still, now that no other process has it
                        return self._start(trial, lock)
                    lock.close()
            if len(trials) >= self.trials:
                return False
            trial = self.study.add()
            lock = self._lock(trial)
            assert lock is not None  # the trial is new
            return self._start(trial, lock)

    def _lock(self, trial: Trial) -> RunLock | None:
        """Return the lock on a trial, or None if another process has it."""
        folder = self.folder / self.search.config(trial, self.search.seeds[0]).folder.parent
        if is_held(folder):
            return None
        folder.mkdir(parents=True, exist_ok=True)
        try:
            return RunLock(folder)
        except LockedError:
            return None

    def _start(self, trial: Trial, lock: RunLock) -> bool:
        """Plan the runs of a trial that this process has locked."""
        try:
            jobs = self._plan(trial)
        except UserError:
            lock.close()
            raise
        # Judge the last evaluation again: the process may have been killed before it pruned.
        self.active[trial.number] = _Active(trial, jobs, lock, [*trial.curve[:-1]])
        return True

    def _plan(self, trial: Trial) -> list[Job]:
        """Return the runs of a trial."""
        configs = [self.search.config(trial, seed) for seed in self.search.seeds]
        return [plan_job(each, self.folder, self.threads, REMEDY) for each in configs]

    def _follow(self, each: _Active) -> None:
        """Report new evaluations of a trial; start its next run, or end it."""
        number, jobs, work = each.trial.number, each.jobs, self.work
        planned = len(jobs) * self.search.epochs
        running = [job for job in jobs if job in work.waiting or job in work.running]
        for step, mean in enumerate(_curve(jobs), start=1):
            if each.reported[step - 1 : step] == [mean]:
                continue
            each.reported[step - 1 : step] = [mean]  # new, or restored by a resumed run
            if self.study.report(number, step, mean) and step < planned:
                for job in running:
                    work.cancel(job)
                self._end(each, "pruned")
                return
        if running:
            return
        failed = [f"{job.name}: {work.failed[job]}" for job in jobs if job in work.failed]
        if failed:
            self._end(each, "failed", failed[0])
        elif unfinished := [job for job in jobs if not _is_finished(job)]:
            work.waiting.append(unfinished[0])
        else:
            self._end(each, "complete")

    def _end(self, each: _Active, state: State, problem: str = "") -> None:
        """Store the result of a trial and update the files."""
        trial = self.study.end(each.trial.number, state, problem)
        del self.active[trial.number]
        each.lock.close()
        missing = len(each.jobs) * self.search.epochs - len(each.reported)
        self.overview.ended(trial, missing)
        self.write_files()
        self.failures = self.failures + 1 if state == "failed" else 0
        if self.failures == MAX_FAILURES:
            raise RunError(
                f"{MAX_FAILURES} trials failed in a row, the last one with: {problem}. Fix the "
                "cause and repeat the command"
            )


def _curve(jobs: list[Job]) -> list[float]:
    """Return the mean success over the evaluations of all runs so far, after each of them."""
    success = [value or 0.0 for job in jobs for value in current_status(job).curve]
    return [fmean(success[:count]) for count in range(1, len(success) + 1)]


def _is_finished(job: Job) -> bool:
    """Return whether a run is finished; a damaged one is not, and fails when it starts."""
    try:
        return job.finished
    except UserError:
        return False
