"""Settings and resources beyond all limits: one clear error, and a remedy that works."""

import functools
import json
import os
import re
import resource
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
import safetensors.torch

import mrn
from mrn.sweeps.suites import find_suite
from mrn.utils.files import checksum
from tests.commands import MRN
from tests.commands import mrn as mrn_command
from tests.reliability.helpers import tiny_arguments
from tests.training.helpers import tiny_run


def nested(depth: int) -> dict:
    return functools.reduce(lambda inner, _: {"a": inner}, range(depth), {})


@pytest.mark.parametrize("depth", [51, 600, 5000])
def test_deeply_nested_arguments(depth):
    with pytest.raises(mrn.UserError, match="env_kwargs must (not be nested|be representable)"):
        mrn.Config.of("Task-v0", env_kwargs=nested(depth))
    assert mrn.Config.of("Task-v0", env_kwargs=nested(40)).arguments()


GRID = "\n".join(
    f"{name} = {list(range(2, 42))}"
    for name in ("cycles", "num_envs", "gradient_steps", "batch_size", "hidden_dim", "epochs")
)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (f"[settings]\nepochs = {'9' * 5000}", "is not valid TOML: Exceeds the limit"),
        (f"[settings]\nx = {'[' * 3000}{']' * 3000}", "is not valid TOML: maximum recursion"),
        ('folder = "a\\u0000b"', "folder must be inside the runs folder"),
        (f"[grid]\n{GRID}", "the suite has 4,096,000,000 runs; at most 100,000 are allowed"),
    ],
)
def test_suites_beyond_all_limits(tmp_path, lines, message):
    file = tmp_path / "suite.toml"
    file.write_text(f'seeds = [1]\ntasks = ["FetchReach"]\n{lines}\n', encoding="utf-8")
    with pytest.raises(mrn.UserError, match=message):
        find_suite(str(file))


def test_null_byte_in_a_path():
    with pytest.raises(mrn.UserError, match="run_dir must be a path"):
        tiny_run("a\0b")


def test_forged_generator_state(tmp_path):
    run = tmp_path / "run"
    tiny_run(run, epochs=1)
    (folder,) = (run / "checkpoints").glob("0*")
    tensors = safetensors.torch.load_file(folder / "state.safetensors")
    name = next(name for name in tensors if name.startswith("generator."))
    tensors[name].fill_(255)
    content = safetensors.torch.save(tensors)
    (folder / "state.safetensors").write_bytes(content)
    about = json.loads((folder / "checkpoint.json").read_text(encoding="utf-8"))
    about["state_sha256"] = checksum(content)
    text = json.dumps(about).encode()
    (folder / "checkpoint.json").write_bytes(text)
    (folder / "complete").write_bytes(checksum(text).encode())
    with pytest.raises(mrn.UserError, match=r"the state of random generator '\w+' is not valid"):
        tiny_run(run, epochs=2, resume=True)


class FewThreads(NamedTuple):
    """Limit of a process of another user; the limit does not apply to root."""

    count: int

    def __call__(self) -> None:
        os.setgid(65534)
        os.setuid(65534)
        resource.setrlimit(resource.RLIMIT_NPROC, (self.count, self.count))


class LittleMemory(NamedTuple):
    """Memory that a process may map in addition."""

    mebibytes: float

    def __call__(self) -> None:
        used = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
        limit = used * resource.getpagesize() + int(self.mebibytes * 2**20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


LIMITS = [*(FewThreads(count) for count in (1, 3, 5)), *map(LittleMemory, (12, 21.75, 70, 150))]


@pytest.mark.skipif(os.getuid() != 0, reason="changes the user")
@pytest.mark.parametrize("limit", LIMITS, ids=str)
def test_envpool_within_limits(tmp_path, limit):
    """Without a check, EnvPool hangs or aborts at some of these limits."""
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:3]:  # with pytest-xdist, one folder per worker
        parent.chmod(stat.S_IMODE(parent.stat().st_mode) | 0o755)  # /tmp stays 1777
    ended = mrn_command(*tiny_arguments(tmp_path / "run"), prepare=limit)
    assert ended.returncode == 3, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "EnvPool cannot start 2 environments of FetchReach on 1 threads" in ended.stderr


def small_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_failed_first_write_can_be_repeated(tmp_path):
    ended = mrn_command(*tiny_arguments(tmp_path / "run"), prepare=small_files)
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.rstrip().endswith("Fix the cause, then repeat the command")
    again = mrn_command(*tiny_arguments(tmp_path / "run", "--epochs=1"))
    assert again.returncode == 0, again.stderr


SLOW_WORKERS = """
import os, time
import gymnasium as gym
from tests.envs.custom_envs import Walk

PID = os.getpid()

class SlowInWorkers(Walk):
    def __init__(self):
        if os.getpid() != PID:
            time.sleep(100)

gym.register("Slow-v0", SlowInWorkers, max_episode_steps=8)
"""


@pytest.mark.parametrize(
    ("timeout", "code", "message"),
    [
        ("0.001", 2, "not finished within 0.001 seconds; fix it, or increase env_timeout"),
        ("2", 3, "did not respond to a start within 2 seconds; .*, then repeat the command"),
    ],
)
def test_environments_that_fail_to_start(tmp_path, timeout, code, message):
    (tmp_path / "slow_workers.py").write_text(SLOW_WORKERS, encoding="utf-8")
    options = ("--async-envs", f"--env-timeout={timeout}")
    words = tiny_arguments(tmp_path / "run", *options, task="slow_workers:Slow-v0")
    ended = mrn_command(*words, cwd=tmp_path)
    assert ended.returncode == code, ended.stderr
    assert re.search(message, ended.stderr.splitlines()[-1])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_of_a_log(tmp_path):
    words = [MRN, *tiny_arguments(tmp_path / "run")]
    with open("/dev/full", "wb") as log:
        ended = subprocess.run(words, stdout=log, stderr=subprocess.PIPE, timeout=120)
    assert ended.returncode == 3
    assert b"error: cannot write to the standard output: No space left on device" in ended.stderr
    assert b"console.py" not in ended.stderr
    with open("/dev/full", "wb") as log:
        ended = subprocess.run([MRN, "zoo"], stdout=log, stderr=subprocess.PIPE, timeout=60)
    assert ended.returncode != 0
    assert b"Traceback" not in ended.stderr


def test_vanished_reader_of_a_pipe(tmp_path):
    words = [MRN, *tiny_arguments(tmp_path / "run", "--cycles=20")]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(3):  # what is trained, where, and how to watch it
        process.stdout.readline()
    process.stdout.close()
    errors = process.communicate(timeout=120)[1].decode()
    assert process.returncode == 3, errors
    assert "error: cannot write to the standard output: Broken pipe. Fix the cause, " in errors
    assert f"mrn resume {tmp_path / 'run'}" in errors
    assert errors.count("\n") == 1
