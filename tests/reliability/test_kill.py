"""kill -9 at random moments, resumed each time: the run ends as if nothing had happened."""

import random
import time

import pytest

from tests.reliability.helpers import KILLED, Zygote, same_run, start, wait_for
from tests.training.helpers import TINY

# Moments, with how often they come in an epoch or so of the tiny run.
MOMENTS = {"step": 200, "update": 8, "write": 12, "fsync": 24, "remove": 6}
SMALLER = TINY | {"num_envs": 1, "eval_episodes": 1, "buffer_size": 125}


@pytest.mark.parametrize(("engine", "kills"), [("envpool", 30), ("gymnasium", 5)])
def test_a_run_killed_again_and_again_ends_as_the_uninterrupted_one(tmp_path, engine, kills, count):
    settings = SMALLER | {"engine": engine, "epochs": 8 if engine == "envpool" else 3}
    rng = random.Random(0)
    happened = dict.fromkeys(MOMENTS, 0)
    with Zygote() as zygote:
        assert zygote.run(tmp_path / "whole", **settings) == 0
        for _ in range(10 * kills):
            moment = min(happened, key=lambda name: (happened[name], rng.random()))
            nth, when = rng.randint(1, MOMENTS[moment]), rng.choice(["before", "after"])
            code = zygote.run(tmp_path / "killed", (moment, nth, when), **settings)
            assert code in (0, KILLED)
            happened[moment] += code == KILLED
            if sum(happened.values()) == kills:
                break
            if code == 0:  # the run is over: another one
                assert same_run(tmp_path / "whole", tmp_path / "killed")
                (tmp_path / "killed").rename(tmp_path / f"done-{rng.random()}")
        assert sum(happened.values()) == kills
        assert zygote.run(tmp_path / "killed", **settings) == 0
    assert same_run(tmp_path / "whole", tmp_path / "killed")
    assert min(happened.values()) >= 1
    count(f"killed with SIGKILL, {engine}: {kills} times ({happened}), resumed bit-exactly")


def test_the_command_line_killed_from_outside(tmp_path):
    whole = start(tmp_path / "whole", "--epochs=8")
    for epochs, delay in ((1, 0.4), (2, 0.05), (3, 0.2)):
        process = start(tmp_path / "killed", "--epochs=8", "--resume")
        wait_for(tmp_path / "killed", process, epochs)
        time.sleep(delay)
        process.kill()
        assert process.wait(timeout=30) == KILLED
    for process in (whole, start(tmp_path / "killed", "--epochs=8", "--resume")):
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    assert same_run(tmp_path / "whole", tmp_path / "killed")
    rest = [p.name for p in (tmp_path / "killed").rglob("*") if p.name.endswith(".new")]
    assert rest == []
