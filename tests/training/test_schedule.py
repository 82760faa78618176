"""Tests of the evaluation interval in environment steps."""

import pytest

import mrn
from mrn.envs import find_task
from mrn.runs.provenance import read_config
from mrn.sweeps.jobs import plan_jobs
from mrn.sweeps.suites import Suite
from mrn.training.schedule import resolve_epochs
from tests.reliability.helpers import same_run
from tests.training.helpers import TINY, metrics, tiny_run


def resolved(task="FetchPush", **settings):
    return resolve_epochs(mrn.Config.of(task, **settings), find_task(task))


@pytest.mark.parametrize("recipe", ["paper", "fast"])
def test_interval_gives_every_recipe_the_same_evaluation_steps(recipe):
    config = resolved(recipe=recipe, eval_interval=25_000)
    schedule = config.schedule
    assert schedule.cycles * schedule.num_envs * 50 == 25_000
    plain = resolved(recipe=recipe)
    assert config.epochs * schedule.cycles == plain.epochs * plain.schedule.cycles
    assert resolve_epochs(config, find_task("FetchPush")) == config


def test_explicit_epochs_are_kept_and_default_epochs_round_up():
    assert resolved(recipe="paper", eval_interval=20_000, epochs=3).epochs == 3
    config = resolved(recipe="paper", eval_interval=40_000)
    assert (config.epochs, config.schedule.cycles) == (63, 40)  # 62.5 epochs


@pytest.mark.parametrize(
    ("interval", "nearest"), [(12_500, "12,000 or 13,000"), (400, r"nearest: 1,000$")]
)
def test_interval_must_be_whole_cycles(interval, nearest):
    with pytest.raises(mrn.UserError, match=f"multiple of 1,000, the steps of a cycle.*{nearest}"):
        resolved(recipe="paper", eval_interval=interval)


def test_run_evaluates_at_the_interval_and_resumes_bit_identically(tmp_path):
    tiny_run(tmp_path / "whole", eval_interval=300, epochs=3)
    assert [row["env_steps"] for row in metrics(tmp_path / "whole")] == ["300", "600", "900"]
    tiny_run(tmp_path / "run", eval_interval=300, epochs=1)
    config = read_config(tmp_path / "run")
    assert (config.schedule.eval_interval, config.schedule.cycles) == (300, 3)
    tiny_run(tmp_path / "run", eval_interval=300, epochs=3, resume=True)
    assert same_run(tmp_path / "whole", tmp_path / "run")
    with pytest.raises(mrn.UserError, match="eval_interval was 300, now 200"):
        tiny_run(tmp_path / "run", eval_interval=200, epochs=4, resume=True)


def test_sweep_recognizes_its_started_runs(tmp_path):
    settings = {k: v for k, v in TINY.items() if k != "epochs"} | {"eval_interval": 300}
    suite = Suite(("FetchReach",), ("mrn",), seeds=(1,), settings=settings | {"epochs": 1})
    (job,) = plan_jobs(suite, tmp_path, threads=1)
    mrn.train("FetchReach", run_dir=job.folder, progress=False, seed=1, critic="mrn",
              recipe="paper", **settings, epochs=1)  # fmt: skip
    (job,) = plan_jobs(suite, tmp_path, threads=1)
    assert job.finished
