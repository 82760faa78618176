"""A user's machine in a folder, with files that no command may touch or show."""

import base64
import ctypes
import hashlib
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

from tests.commands import Command
from tests.training.helpers import TINY, tiny_run

RUNS, WORK, OUT, HOME, OUTSIDE, SITE = "runs", "work", "out", "home", "outside", "site"
"""Folders: of all runs, the current one, of results, of the user, of other files, of modules."""
VICTIM = f"{RUNS}/suite/FetchReach/ddpg-mrn/seed-1"
"""Run folder under attack."""
INTACT = f"{RUNS}/suite/FetchReach/ddpg-mrn/seed-2"
SUITE = "suite.toml"
DECOYS = (
    f"{HOME}/.bashrc",
    f"{HOME}/.ssh/id",
    f"{HOME}/precious",
    f"{WORK}/notes",
    f"{OUTSIDE}/secret",
    f"{OUTSIDE}/folder/file",
    f"{RUNS}/notes",
)
SECRET = b"secret" * 100  # a multiple of three bytes, so that Base64 repeats, too
SETTINGS = TINY | {"num_envs": 1, "eval_episodes": 1, "hidden_dim": 8, "recipe": "paper"}
SECONDS = 10.0
"""Time limit of a command, on a machine that is not overloaded."""
MEMORY = 4 * 2**30
"""Additional memory that a command may map, in bytes."""


def make_runs(root: Path) -> None:
    """Train two short runs of a suite, and add files that commands write to run folders."""
    settings = {k: v for k, v in SETTINGS.items() if k not in ("recipe", "threads")}
    lines = ['tasks = ["FetchReach"]', 'critics = ["mrn"]', "seeds = [1, 2]", "[settings]"]
    lines += [f"{name} = {value}" for name, value in settings.items()]
    (root / SUITE).write_text("\n".join(lines) + "\n")
    assert tomllib.loads((root / SUITE).read_text())["settings"] == settings
    for seed, folder in ((1, root / VICTIM), (2, root / INTACT)):
        tiny_run(folder, seed=seed, **SETTINGS)
        (folder / "inspect.json").write_text('{"task": "FetchReach", "episodes": 2}')
        (folder / "inspect.png").write_bytes(b"\x89PNG\r\n" + bytes(range(256)))
        (folder / "video.mp4").write_bytes(b"\x00\x00\x00\x18ftypmp42" + bytes(range(256)))


class Confine(NamedTuple):
    """Limits of a command; for `prepare`."""

    root: Path

    def __call__(self) -> None:
        # Caches of third-party libraries are not under test.
        places = {"HOME": HOME, "XDG_CACHE_HOME": "cache", "TMPDIR": "cache"}
        os.environ.update({name: str(self.root / folder) for name, folder in places.items()})
        os.environ["WANDB_MODE"] = "disabled"
        tempfile.tempdir = None  # read TMPDIR again
        sys.path.append(str(self.root / SITE))
        sys.executable = "/bin/false"  # a sweep cannot train
        used = (
            int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0])
            * resource.getpagesize()
        )
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        # Without capabilities, file permissions apply to root.
        header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert ctypes.CDLL(None).capset(header, none) == 0


class Sandbox:
    """A copy of the runs among decoys."""

    def __init__(self, root: Path, template: Path) -> None:
        self.root = root
        shutil.copytree(template, root)
        for name in (WORK, OUT, SITE, "cache"):
            (root / name).mkdir()
        for name in DECOYS:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(SECRET)

    @property
    def victim(self) -> Path:
        return self.root / VICTIM

    def run(self, *words: str, writes: tuple[str, ...] = ()) -> subprocess.CompletedProcess:
        """Run a command in the folder `work`.

        It must end in time with a documented exit code, without a traceback. It must not change
        anything outside of `writes`, and not show the content of a decoy.
        """
        before = self.snapshot(writes)
        command = Command(*words, cwd=self.root / WORK, prepare=Confine(self.root))
        shown = f"mrn {' '.join(words)}"
        busy = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
        try:
            output, errors = command.communicate(timeout=SECONDS * busy)
        except subprocess.TimeoutExpired:
            command.kill()
            raise AssertionError(f"{shown} hangs") from None
        assert "Traceback" not in errors, f"{shown}: {errors[-3000:]}"
        assert command.returncode in (0, 2, 3), f"{shown}: {command.returncode}, {errors[-3000:]}"
        changes = before.items() ^ self.snapshot(writes).items()
        assert not changes, f"{shown} changed {sorted({path for path, _ in changes})}"
        self.check_secret(shown, output + errors)
        return subprocess.CompletedProcess(words, command.returncode, output, errors)

    def snapshot(self, writes: tuple[str, ...]) -> dict[str, tuple]:
        """Return type, size, time and content of all files outside of `writes`."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            place = os.path.relpath(folder, self.root)
            if place in (*writes, "cache"):
                folders.clear()
                continue
            for name in (*folders, *files):
                found[os.path.join(place, name)] = _describe(Path(folder, name))
        return found

    def check_secret(self, shown: str, text: str) -> None:
        """Check that neither the output nor a result contains the content of a decoy."""
        written = [path for path in (self.root / OUT).rglob("*") if path.is_file()]
        for content in (text.encode(), *(path.read_bytes() for path in written)):
            for form in (SECRET, base64.b64encode(SECRET)):
                assert form[:40] not in content, f"{shown} shows the content of another file"


def _describe(path: Path) -> tuple:
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode):
        return (status.st_mode,)  # its files are compared
    about = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
    if stat.S_ISLNK(status.st_mode):
        return (*about, os.readlink(path))
    if not stat.S_ISREG(status.st_mode) or status.st_size > 2**20:
        return about
    return (*about, hashlib.sha256(path.read_bytes()).hexdigest())
