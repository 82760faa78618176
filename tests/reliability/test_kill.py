"""kill -9 at random moments: the resumed run is bit-identical to an uninterrupted one."""

import random
import time

import pytest

from tests.reliability.helpers import same_run, start, wait_for
from tests.reliability.kills import KILLED, KillAt, train
from tests.training.helpers import TINY

# Moments to kill at, with their approximate number per epoch of the tiny run.
MOMENTS = {"step": 200, "update": 8, "rename": 12, "fsync": 24, "rmtree": 6}
TINIER = TINY | {"num_envs": 1, "eval_episodes": 1, "buffer_size": 125}


@pytest.mark.parametrize(("engine", "kills"), [("envpool", 30), ("gymnasium", 5)])
def test_resume_after_repeated_kills_is_bit_identical(tmp_path, engine, kills, count):
    settings = TINIER | {"engine": engine, "epochs": 8 if engine == "envpool" else 3}
    rng = random.Random(0)
    counts = dict.fromkeys(MOMENTS, 0)
    assert train(tmp_path / "whole", **settings) == 0
    for _ in range(10 * kills):
        moment = min(counts, key=lambda name: (counts[name], rng.random()))
        kill = KillAt(moment, rng.randint(1, MOMENTS[moment]), rng.choice(["before", "after"]))
        code = train(tmp_path / "killed", kill, **settings)
        assert code in (0, KILLED)
        counts[moment] += code == KILLED
        if sum(counts.values()) == kills:
            break
        if code == 0:  # the run finished: start another one
            assert same_run(tmp_path / "whole", tmp_path / "killed")
            (tmp_path / "killed").rename(tmp_path / f"done-{rng.random()}")
    assert sum(counts.values()) == kills
    assert train(tmp_path / "killed", **settings) == 0
    assert same_run(tmp_path / "whole", tmp_path / "killed")
    assert min(counts.values()) >= 1
    count(f"killed with SIGKILL, {engine}: {kills} times ({counts}), resumed bit-identically")


def test_resume_after_killing_the_command_is_bit_identical(tmp_path):
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
    leftovers = [p.name for p in (tmp_path / "killed").rglob("*") if p.name.endswith(".new")]
    assert leftovers == []
