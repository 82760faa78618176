"""Failing environments and non-finite numbers: the run stops with a reason and keeps its data."""

import resource
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch

import mrn
from mrn.algorithms import DDPG
from mrn.envs import TASKS
from mrn.replay import ReplayBuffer
from mrn.utils.errors import RunError
from tests.commands import mrn as mrn_command
from tests.reliability.helpers import same_run, start
from tests.training.helpers import TINY, tiny_run

CUSTOM = "tests.envs.custom_envs:"
FILE = str(Path(__file__).parents[1] / "envs" / "custom_envs.py")


@pytest.mark.parametrize(
    ("env", "options", "message"),
    [
        (
            "GoesNaN-v0",
            (),
            "the achieved_goal of the environment is not finite (environment 0, step",
        ),
        ("PaysNaN-v0", (), "not a finite number in the reward (environment 0): nan"),
        ("Raises-v0", (), "ZeroDivisionError: division by zero in the simulator (" + FILE),
        ("Raises-v0", ("--async-envs",), "division by zero in the simulator (" + FILE),
        ("Dies-v0", ("--async-envs",), "died during a step"),
        ("Hangs-v0", ("--async-envs", "--env-timeout=2"), "not respond to a step within 2 seconds"),
    ],
)
def test_failing_environment_stops_the_run(tmp_path, env, options, message):
    started = time.monotonic()
    process = start(tmp_path / "run", *options, task=CUSTOM + env)
    _, errors = process.communicate(timeout=40)
    assert process.returncode == 3, errors
    # Gymnasium prints the traceback of an error in a worker before our message.
    assert message in errors.splitlines()[-1]
    assert errors.count("Traceback") == (env == "Raises-v0" and "--async-envs" in options), errors
    assert time.monotonic() - started < 30


# Enough episodes to make a replay file larger than the weights, so that a limit on file sizes can
# allow one and not the other.
LARGE_REPLAY = {"num_envs": 4, "buffer_size": 500}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """An uninterrupted run of three epochs."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    tiny_run(folder, epochs=3, **LARGE_REPLAY)
    return folder


@pytest.fixture(scope="module")
def two_epochs(tmp_path_factory) -> Path:
    """The same run after two epochs; to be copied."""
    folder = tmp_path_factory.mktemp("two") / "run"
    tiny_run(folder, epochs=2, **LARGE_REPLAY)
    return folder


def test_diverging_weights_stop_the_run_and_are_not_saved(whole, tmp_path, monkeypatch):
    update, calls = DDPG.update, []

    def poisoned(self, batch, number, generator):
        calls.append(1)
        if len(calls) == 10:  # in the second epoch of 6 updates each
            with torch.no_grad():
                next(self.critic.parameters())[0, 0] = float("nan")
        return update(self, batch, number, generator)

    folder = tmp_path / "run"
    with monkeypatch.context() as context:
        context.setattr(DDPG, "update", poisoned)
        with pytest.raises(RunError, match="critic_loss is not finite after 12 updates"):
            tiny_run(folder, epochs=3, **LARGE_REPLAY)
    assert [path.name for path in (folder / "checkpoints").glob("0*")] == ["000002-000000"]
    tiny_run(folder, epochs=3, resume=True, **LARGE_REPLAY)
    assert same_run(whole, folder)


def test_infinite_weights_are_not_saved(tmp_path):
    from mrn.envs import find_task
    from mrn.runs.checkpoint import Checkpoints
    from mrn.training.trainer import Trainer

    trainer = Trainer(
        mrn.Config.of("FetchReach", **TINY), find_task("FetchReach", 0.0), torch.device("cpu")
    )
    trainer.agent.algorithm.optimizer.mean[3][0] = float("inf")
    with pytest.raises(RunError, match="optimizer.mean.3 contains a non-finite number"):
        Checkpoints(tmp_path).save(trainer, [])
    assert not (tmp_path / "checkpoints").exists()


# Too small for the events, for the weights, for a replay file, and for the state.
@pytest.mark.parametrize("limit", [2_000, 6_000, 20_000, 40_000])
def test_full_disk_leaves_earlier_checkpoints_untouched(whole, two_epochs, tmp_path, limit):
    """A limit on file sizes raises the same error as a full disk, for large files only."""
    folder = tmp_path / "run"
    shutil.copytree(two_epochs, folder)
    files = (folder / "checkpoints").rglob("*")
    before = {path: path.read_bytes() for path in files if path.is_file()}
    sizes = (resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    result = mrn_command(
        "resume", folder, "--epochs=3", prepare=partial(resource.setrlimit, *sizes)
    )
    assert result.returncode == 3, result.stderr
    assert "File too large" in result.stderr
    assert "untouched" in result.stderr
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in before} == before
    tiny_run(folder, epochs=3, resume=True, **LARGE_REPLAY)
    assert same_run(whole, folder)


def test_different_settings_are_rejected_with_a_list(two_epochs, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(two_epochs, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(
        mrn.UserError, match="batch_size was 64, now 32; discount was 0.98, now 0.9"
    ):
        tiny_run(folder, resume=True, batch_size=32, discount=0.9, **LARGE_REPLAY)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_finished_run_can_be_extended_with_other_threads(whole, two_epochs, tmp_path):
    shutil.copytree(two_epochs, tmp_path / "run")
    other = {"threads": 2, "checkpoint_every": 5}
    with pytest.warns(UserWarning, match="threads was 1, now 2"):  # results may differ
        tiny_run(tmp_path / "run", epochs=3, resume=True, **other, **LARGE_REPLAY)
    assert same_run(whole, tmp_path / "run")
    agent = tiny_run(tmp_path / "run", epochs=3, resume=True, **LARGE_REPLAY)  # already finished
    assert agent.config.epochs == 3


MEMORY = """
import torch
from benchmarks.trainers import fill_replay, make_trainer, run_update
from pathlib import Path

def resident():
    status = dict(l.split(":", 1) for l in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0])

torch.set_num_threads(1)
trainer = make_trainer("FetchReach", "mrn", buffer_size=10_000, hidden_dim=8, batch_size=8)
fill_replay(trainer, 10_000)
for update in range(1, 100_001):
    run_update(trainer)
    if update == 10_000:
        early = resident()
print(early, resident())
"""


@pytest.mark.slow
def test_memory_does_not_grow_over_100_000_updates(count):
    result = subprocess.run(
        [sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    early, late = map(int, result.stdout.split())
    assert late <= 1.02 * early
    count(f"resident memory after 10,000 updates {early:,} KiB, after 100,000 {late:,} KiB")


def test_replay_buffer_beyond_memory_is_rejected():
    shape = replace(TASKS["FetchReach"].spec, state_dim=10**6)
    with pytest.raises(mrn.UserError, match="not enough memory: .* of 500,000,000 transitions"):
        ReplayBuffer(shape, 5 * 10**8, torch.device("cpu"))
