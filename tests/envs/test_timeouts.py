"""Tests of environments that hang before their first episode."""

import multiprocessing
import os
import signal
import time

import gymnasium as gym
import pytest

import mrn
from mrn.envs import find_task, make_envs
from mrn.utils.signals import time_limit
from tests.envs.custom_envs import Walk

MAIN = os.getpid()


class Hangs(Walk):
    """Hangs in the constructor, in worker processes only or everywhere."""

    def __init__(self, everywhere=False):
        if everywhere or os.getpid() != MAIN:
            time.sleep(1000)


gym.register("HangsAtStart-v0", Hangs, max_episode_steps=8)
ID = f"{__name__}:HangsAtStart-v0"


def test_worker_that_hangs_in_its_constructor_times_out():
    spec, before = find_task(ID).spec, set(multiprocessing.active_children())
    with pytest.raises(mrn.RunError, match="did not respond to a start within 1 seconds; .*env_ti"):
        make_envs(spec, 2, async_envs=True, env_timeout=1)
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize("async_envs", [True, False])
def test_training_process_that_hangs_in_the_constructor_times_out(tmp_path, async_envs):
    settings = {"async_envs": async_envs, "env_timeout": 1.0, "env_kwargs": {"everywhere": True}}
    with pytest.raises(mrn.UserError, match=r"within 1 seconds; .* env_timeout \(.*, line \d+\)"):
        mrn.train(ID, run_dir=tmp_path / "run", progress=False, **settings)
    assert not (tmp_path / "run").exists()


def test_later_environment_that_hangs_in_its_constructor_times_out(tmp_path, monkeypatch):
    """The first one, of which only the spaces and the reward are read, starts."""
    made = []

    def start(self):
        made.append(self)
        time.sleep(0 if len(made) == 1 else 1000)

    monkeypatch.setattr(Hangs, "__init__", start)
    with pytest.raises(mrn.UserError, match=r"within 1 seconds; .* env_timeout \(.*, line \d+\)"):
        mrn.train(ID, run_dir=tmp_path / "run", progress=False, env_timeout=1.0)
    assert len(made) == 2
    assert not (tmp_path / "run").exists()


def test_time_limit_ends_with_its_block():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(0.05, "too slow"):
        pass
    time.sleep(0.1)
    assert signal.getsignal(signal.SIGALRM) == before
    with (
        pytest.raises(multiprocessing.TimeoutError, match="too slow"),
        time_limit(0.05, "too slow"),
    ):
        time.sleep(10)
