"""Searches with a backend that writes chosen learning curves instead of training."""

import csv
import os
import random
import shutil
import threading
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from statistics import fmean

import pytest

from mrn.analysis.runs import find_runs
from mrn.config import Config
from mrn.runs.layout import METRICS
from mrn.runs.metrics import read_metrics
from mrn.sweeps import scheduler
from mrn.sweeps.scheduler import Outcome
from mrn.sweeps.search import Search
from mrn.sweeps.space import Space
from mrn.sweeps.study import JOURNAL, Study
from mrn.sweeps.suites import find_suite
from mrn.sweeps.trials import best_trial, command, read_trials
from mrn.sweeps.tuning import tune
from mrn.utils.errors import RunError, UserError
from tests.reliability.hostile.damages import BYTES, TEXT, Target
from tests.sweeps.helpers import CurveBackend, skip_waiting, write_rows

SPACE = Space(
    {
        "learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
        "batch_size": {"choices": [256, 1024]},
    },
    {"epochs": 4, "hidden_dim": 16},
)
SEARCH = Search("FetchReach", "ddpg", "auto", "fast", SPACE, seeds=(1, 2))


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch):
    skip_waiting(monkeypatch)


def by_settings(config: Config, epoch: int) -> float:
    """Return a success rate that is highest at learning rate 0.002 and batch size 256."""
    distance = abs(config.algo_config.learning_rate - 2e-3) * 50
    penalty = 0.2 if config.algo_config.batch_size == 1024 else 0.0
    return max(0.0, 1.0 - distance - penalty) * epoch / 4 * (0.9 if config.seed == 2 else 1.0)


def number(config: Config) -> int:
    return int(config.variant.removeprefix("trial-"))


def test_success_is_the_mean_over_evaluations_and_seeds(tmp_path):
    first, *_ = tune(SEARCH, tmp_path, 1, CurveBackend(lambda c, n: n / 10 + c.seed / 100))
    assert first.settings == {"learning_rate": 1e-3, "batch_size": 1024}  # the defaults
    values = [0.11, 0.21, 0.31, 0.41, 0.12, 0.22, 0.32, 0.42]
    assert first.curve == pytest.approx([fmean(values[: n + 1]) for n in range(8)])
    assert first.success == pytest.approx(0.265)
    assert first.state == "complete"


def test_trials_below_the_median_are_pruned(tmp_path):
    levels = [0.5, 0.6, 0.5, 0.4, 0.5, 0.1, 0.9, 0.4]  # five trials are needed for a median
    backend = CurveBackend(lambda config, _: levels[number(config)])
    trials = tune(SEARCH, tmp_path, 8, backend)
    assert [trial.state for trial in trials] == ["complete"] * 5 + ["pruned", "complete", "pruned"]
    assert [len(trial.curve) for trial in trials] == [8] * 5 + [1, 8, 1]  # after a quarter
    assert [trial.success for trial in trials] == pytest.approx(levels)
    assert best_trial(trials).number == 6
    assert "FetchReach/ddpg-mrn+fast+trial-005/seed-2" not in backend.started
    unpruned = replace(SEARCH, prune=False)
    trials = tune(unpruned, tmp_path / "all", 8, CurveBackend(backend.success))
    assert {trial.state for trial in trials} == {"complete"}


def test_last_evaluation_completes_a_trial_instead_of_pruning_it(tmp_path):
    short = replace(SEARCH, seeds=(1,), space=replace(SPACE, fixed={"epochs": 1}))
    trials = tune(short, tmp_path, 7, CurveBackend(lambda config, _: 0.9 - number(config) / 10))
    assert {trial.state for trial in trials} == {"complete"}


def test_search_is_reproducible_and_improves_on_the_defaults(tmp_path):
    one, other = (
        tune(SEARCH, tmp_path / name, 14, CurveBackend(by_settings)) for name in ("one", "other")
    )
    assert one == other
    assert best_trial(one).success > one[0].success + 0.1
    assert best_trial(one).settings["batch_size"] == 256
    rates = [trial.settings["learning_rate"] for trial in one]
    assert all(1e-4 <= rate <= 1e-2 and rate == float(f"{rate:.3g}") for rate in rates)
    differently = tune(replace(SEARCH, seed=1), tmp_path / "new", 3, CurveBackend(by_settings))
    assert differently[0].settings == one[0].settings
    assert differently[1].settings != one[1].settings


class KilledError(BaseException):
    """Ends a search at once, like a kill."""


class KilledBackend(CurveBackend):
    """Kills the search after a number of polls."""

    def __init__(self, success, polls):
        super().__init__(success)
        self.left = polls

    def start(self, job):
        run = super().start(job)
        poll = run.poll

        def counted():
            self.left -= 1
            if self.left == 0:
                raise KilledError
            return poll() if self.left > 0 else Outcome("lost")

        run.poll = counted
        return run


@pytest.mark.parametrize("polls", [1, 12, 42])
def test_killed_search_continues_to_the_same_result(polls, tmp_path):
    undisturbed = tune(SEARCH, tmp_path / "undisturbed", 9, CurveBackend(by_settings))
    assert "pruned" in {trial.state for trial in undisturbed}
    folder = tmp_path / "killed"
    with pytest.raises(KilledError):
        tune(SEARCH, folder, 9, KilledBackend(by_settings, polls))
    before = Study(folder, SEARCH).trials()
    assert [trial.state for trial in before].count("running") == 1
    backend = CurveBackend(by_settings)
    assert tune(SEARCH, folder, 9, backend) == undisturbed
    finished = [f"trial-{t.number:03d}/" for t in before if t.state != "running"]
    assert not [name for name in backend.started if any(each in name for each in finished)]
    assert tune(SEARCH, folder, 9, backend) == undisturbed
    assert len(tune(SEARCH, folder, 11, backend)) == 11  # more trials extend it


def test_prune_decision_survives_a_kill(tmp_path, monkeypatch):
    """The evaluation is stored before the decision; a kill in between must not undo it."""
    levels = [0.5] * 5 + [0.1]
    backend = CurveBackend(lambda config, _: levels[number(config)])
    tune(SEARCH, tmp_path, 5, backend)

    def killed(*_):
        raise KilledError

    monkeypatch.setattr(Study, "end", killed)
    with pytest.raises(KilledError):
        tune(SEARCH, tmp_path, 6, backend)
    monkeypatch.undo()
    skip_waiting(monkeypatch)
    assert len(Study(tmp_path, SEARCH).trials()[5].curve) == 1
    started = len(backend.started)
    assert tune(SEARCH, tmp_path, 6, backend)[5].state == "pruned"
    assert len(backend.started) == started


def test_forged_metrics_do_not_complete_a_trial(tmp_path):
    folder = tmp_path / "killed"
    with pytest.raises(KilledError):
        tune(SEARCH, folder, 2, KilledBackend(by_settings, 3))
    (run,) = folder.glob("FetchReach/*/seed-1")
    assert len(read_metrics(run / METRICS)) == 2
    with open(run / METRICS, "a", encoding="utf-8") as file:
        file.writelines(f"{number},1,1,1,1,1,1,1,1,1\n" for number in (3, 4))
    with pytest.raises(UserError, match="has 4 epochs, but the weights are of epoch 2"):
        tune(SEARCH, folder, 2, CurveBackend(by_settings))
    assert Study(folder, SEARCH).trials()[0].state == "running"


LEVELS = [0.5, 0.6, 0.5, 0.4, 0.5, 0.1, 0.9]


@pytest.fixture
def search_folder(tmp_path):
    folder = tmp_path / "search"
    tune(SEARCH, folder, 7, CurveBackend(lambda config, _: LEVELS[number(config)]))
    return folder


def edit_journal(folder, line, old, new):
    """Replace text in the first line of the journal that contains another text."""
    lines = (folder / "study.jsonl").read_text().splitlines(keepends=True)
    place = next(n for n, text in enumerate(lines) if line in text)
    assert old in lines[place]
    lines[place] = lines[place].replace(old, new)
    (folder / "study.jsonl").write_text("".join(lines))


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        ('"intermediate_value":0.1', "0.1", "0.95", "trial 5 is pruned with success 95.0%, but"),
        ('"values":[0.9]', "0.9", "0.95", "trial 6 has another success than its curve"),
        ('"state":2', '"state":2', '"state":1', "trial 5 is complete with success 10.0%"),
        ('"state":1', '"state":1', '"state":3', "trial 0 is failed with success 50.0%"),
        ('"batch_size":0', '"batch_size":0', '"batch_size":1', "batch_size was 256, now 1024"),
    ],
)  # fmt: skip
def test_forged_results_are_rejected(search_folder, line, old, new, message):
    edit_journal(search_folder, line, old, new)
    before = (search_folder / "study.jsonl").read_bytes()
    with pytest.raises(UserError, match=message):
        tune(SEARCH, search_folder, 8, CurveBackend(by_settings))
    assert (search_folder / "study.jsonl").read_bytes() == before


def test_damaged_journals_are_rejected_or_harmless(search_folder):
    """The success of each trial is known, so that no damage can be taken for a result."""
    intact = tune(SEARCH, search_folder, 7, CurveBackend(by_settings))
    content = (search_folder / "study.jsonl").read_bytes()
    runs = shutil.copytree(search_folder / "FetchReach", search_folder.parent / "copy")
    levels, rejected = [*LEVELS, *[0.3] * 20], 0
    for seed in range(60):
        rng = random.Random(seed)
        name = rng.choice([*TEXT, "truncated", "flipped", "zeroed", "doubled", "random"])
        shutil.rmtree(search_folder / "FetchReach")
        shutil.copytree(runs, search_folder / "FetchReach")
        (search_folder / "study.jsonl").write_bytes(content)
        (BYTES | TEXT)[name](Target(search_folder / "study.jsonl", rng, None))
        try:
            trials = tune(SEARCH, search_folder, 8, CurveBackend(lambda c, _: levels[number(c)]))
        except UserError:
            rejected += 1
            continue
        assert [trial.settings for trial in trials[:7]] == [trial.settings for trial in intact]
        assert [trial.success for trial in trials] == pytest.approx(levels[: len(trials)])
        assert {trial.state for trial in trials} <= {"complete", "pruned"}
    print(f"{rejected} of 60 damaged journals rejected, the others harmless")
    assert 20 < rejected < 60


@pytest.mark.parametrize("name", ["study.jsonl", "study.lock"])
def test_links_are_not_followed(tmp_path, name):
    (tmp_path / "precious").write_text("no line end")
    folder = tmp_path / "search"
    folder.mkdir()
    (folder / name).symlink_to(tmp_path / "precious")
    with pytest.raises(UserError, match=f"{name} is not a regular file"):
        tune(SEARCH, folder, 1, CurveBackend(by_settings))
    assert (tmp_path / "precious").read_text() == "no line end"
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(UserError, match=f"{name} is not a regular file"):
        tune(SEARCH, folder, 1, CurveBackend(by_settings))
    (folder / name).unlink()
    with open(folder / name, "wb") as file:
        file.truncate(8 * 2**30)
    with pytest.raises(UserError, match="is too large") if name == JOURNAL else nullcontext():
        tune(SEARCH, folder, 1, CurveBackend(by_settings))


class RestoringBackend(CurveBackend):
    """Restores the metrics of a run when it starts, as from a checkpoint."""

    def start(self, job):
        run = super().start(job)
        write_rows(job.folder, 1, partial(self.success, job.config))
        return run


def test_restored_metrics_replace_forged_ones_in_the_study(tmp_path):
    undisturbed = tune(SEARCH, tmp_path / "undisturbed", 2, CurveBackend(by_settings))
    folder = tmp_path / "killed"
    with pytest.raises(KilledError):
        tune(SEARCH, folder, 2, KilledBackend(by_settings, 3))
    (run,) = folder.glob("FetchReach/*/seed-1")
    write_rows(run, 3, lambda _: 1.0)
    assert tune(SEARCH, folder, 2, RestoringBackend(by_settings)) == undisturbed


def test_two_processes_share_the_trials_and_continue_those_of_a_killed_one(tmp_path, monkeypatch):
    monkeypatch.setattr(scheduler, "POLL_SECONDS", 0.005)
    backends = [KilledBackend(by_settings, 6), *(CurveBackend(by_settings) for _ in range(2))]
    results = {}

    def work(index):
        try:
            results[index] = tune(SEARCH, tmp_path, 12, backends[index])
        except KilledError:
            results[index] = "killed"

    threads = [threading.Thread(target=work, args=(index,)) for index in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert results[0] == "killed"
    assert results[1] == results[2]
    assert [trial.number for trial in results[1]] == list(range(12))
    assert {trial.state for trial in results[1]} <= {"complete", "pruned"}
    assert len({tuple(trial.settings.values()) for trial in results[1]}) == 12
    names = [name for backend in backends for name in backend.started]
    continued = [name for name in set(names) if names.count(name) > 1]
    assert len(continued) == 1  # the run of the killed process
    assert continued[0] == backends[0].started[-1]


def test_parallel_trials(tmp_path):
    backend = CurveBackend(by_settings, capacity=3)
    trials = tune(SEARCH, tmp_path, 6, backend)
    assert [name.split("/")[1][-3:] for name in backend.started[:3]] == ["000", "001", "002"]
    assert all(trial.state != "running" for trial in trials)
    assert len({tuple(trial.settings.values()) for trial in trials}) == 6


class FailingBackend(CurveBackend):
    """Fails the runs of chosen trials."""

    def __init__(self, failing):
        super().__init__(by_settings)
        self.failing = failing

    def start(self, job):
        run = super().start(job)
        if number(job.config) in self.failing:
            run.poll = lambda: Outcome("failed", "critic_loss is not finite")
        return run


def test_failed_trial_does_not_stop_the_search(tmp_path):
    trials = tune(SEARCH, tmp_path, 5, FailingBackend({1, 2, 4}))
    assert [trial.state for trial in trials].count("failed") == 3
    assert trials[1].problem.endswith("trial-001/seed-1: critic_loss is not finite")
    rows = read_trials(tmp_path / "trials.csv")
    assert rows[-1]["problem"] == trials[4].problem
    with pytest.raises(RunError, match="3 trials failed in a row, .* critic_loss is not finite"):
        tune(SEARCH, tmp_path / "broken", 9, FailingBackend({1, 2, 3}))


def test_files_list_all_trials_and_check_the_best(tmp_path):
    folder = tmp_path / "runs/mine"
    trials = tune(SEARCH, folder, 8, CurveBackend(by_settings))
    best = best_trial(trials)
    with open(folder / "trials.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(int(row["trial"]) for row in rows) == list(range(8))
    assert int(rows[0]["trial"]) == best.number
    assert float(rows[0]["success"]) == best.success
    assert float(rows[0]["learning_rate"]) == best.settings["learning_rate"]
    assert (
        (folder / "table.md")
        .read_text()
        .startswith("| trial | state | mean success | learning_rate | batch_size |\n")
    )
    rate = best.settings["learning_rate"]
    assert command(SEARCH, best) == (
        f"mrn train FetchReach --epochs=4 --batch-size=256 --learning-rate={rate} --hidden-dim=16"
    )
    suite = find_suite(str(folder / "best.toml"))
    configs = suite.configs()
    assert [config.seed for config in configs] == [100, 100, 200, 200, 300, 300]
    chosen = [config for config in configs if config.variant == "best"]
    assert {config.algo_config for config in chosen} == {SEARCH.tuned(best).algo_config}
    defaults = [config for config in configs if not config.variant]
    assert {config.algo_config for config in defaults} == {SEARCH.defaults.algo_config}
    assert {config.epochs for config in configs} == {4}
    assert suite.folder == "mine/best"
    (folder / "trials.csv").unlink()
    tune(SEARCH, folder, 8, CurveBackend(by_settings))
    assert read_trials(folder / "trials.csv") == rows


def test_best_of_several_critics_is_a_valid_suite(tmp_path):
    space = Space({"critic": {"choices": ["mrn", "iqe"]}}, {"epochs": 1, "engine": "envpool"})
    search = replace(SEARCH, space=space)
    trials = tune(search, tmp_path, 6, CurveBackend(lambda c, _: 0.9 if c.critic == "iqe" else 0.1))
    assert best_trial(trials).settings == {"critic": "iqe"}
    suite = find_suite(str(tmp_path / "best.toml"))
    assert suite.critics == ("mrn", "iqe")
    assert {config.engine for config in suite.configs()} == {"envpool"}
    assert {run.method.split("+")[0] for run in find_runs(tmp_path)} == {"ddpg-mrn", "ddpg-iqe"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": (1, 3)}, r"seeds was \[1, 2\], now \[1, 3\]"),
        ({"recipe": "paper"}, "recipe was fast, now paper"),
        ({"space": replace(SPACE, fixed={"epochs": 5})}, "space was .* choose another --name"),
    ],
)
def test_folder_of_a_different_search(changes, message, tmp_path):
    tune(SEARCH, tmp_path, 1, CurveBackend(by_settings))
    journal = (tmp_path / "study.jsonl").read_bytes()
    with pytest.raises(UserError, match=f"holds a different search: {message}"):
        tune(replace(SEARCH, **changes), tmp_path, 2, CurveBackend(by_settings))
    assert (tmp_path / "study.jsonl").read_bytes() == journal


def test_files_of_another_program_are_not_overwritten(tmp_path):
    (tmp_path / "trials.csv").write_text("mine")
    with pytest.raises(UserError, match=r"trials.csv was not written by mrn tune; choose another"):
        tune(SEARCH, tmp_path, 1, CurveBackend(by_settings))
    assert [path.name for path in tmp_path.iterdir()] == ["trials.csv"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": ()}, "seeds must be different numbers"),
        ({"seeds": (1, 1)}, r"seeds must be different numbers, got \[1, 1\]"),
        ({"seeds": (-1,)}, "seeds must be at least 0"),
        ({"space": replace(SPACE, fixed={"eval_episodes": 0})}, "eval_episodes is 0"),
        ({"critic": "mmrn"}, "unknown critic 'mmrn'"),
        ({"task": "FetchReech"}, "unknown task 'FetchReech'"),
    ],
)
def test_invalid_searches(changes, message):
    with pytest.raises(UserError, match=message):
        replace(SEARCH, **changes)
