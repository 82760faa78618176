"""Runs in processes of their own, which can be killed at a chosen moment."""

import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path

import mrn
from tests.commands import Command, until
from tests.training.helpers import TINY, metrics, same_weights

# Imports once, then forks a child for each line of input: a start costs no imports.
ZYGOTE = """
import json, os, signal, sys
import mrn, mrn.training.loop, torch
import envpool, torch.utils.tensorboard
from mrn.envs.custom import register_robotics
register_robotics()
torch.set_num_threads(1)

def suicide(owner, name, count, when):
    original, calls = getattr(owner, name), [0]
    def spy(*args, **kwargs):
        calls[0] += 1
        if calls[0] == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*args, **kwargs)
        if calls[0] == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, spy)

for line in sys.stdin:
    order = json.loads(line)
    pid = os.fork()
    if pid == 0:
        if order["kill"]:
            from mrn.algorithms import find_algorithm
            from mrn.envs.vector import GoalVectorEnv
            from mrn.training import checkpoint, evaluate, loop
            algorithm = find_algorithm(order["settings"].get("algo", "ddpg"))
            owners = {"step": (GoalVectorEnv, "step"), "update": (algorithm, "update"),
                      "write": (os, "replace"), "fsync": (os, "fsync"),
                      "remove": (checkpoint.shutil, "rmtree")}
            suicide(*owners[order["kill"][0]], *order["kill"][1:])
        code = 0
        try:
            mrn.train(order["task"], run_dir=order["folder"], progress=False, resume=True,
                      **order["settings"])
        except BaseException:
            import traceback
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        os._exit(code)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Zygote:
    """Runs `mrn.train(..., resume=True)` in fresh processes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", ZYGOTE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )

    def run(self, folder: Path, kill: tuple | None = None, task="FetchReach", **settings) -> int:
        order = {"task": task, "folder": str(folder), "settings": settings, "kill": kill}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(timeout=30)
        self.process.stdout.close()


def tiny(folder: Path, *options: str, task: str = "FetchReach") -> list[str]:
    """`train` on the command line, tiny."""
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    return ["train", task, *sizes, "--run-dir", str(folder), *options]


def start(folder: Path, *options: str, task: str = "FetchReach") -> Command:
    """`mrn train`, tiny."""
    return Command(*tiny(folder, *options, task=task))


def wait_for(folder: Path, process: Command | subprocess.Popen, epochs: int = 1) -> None:
    """Until so many epochs are done, and saved; the last two checkpoints are kept."""
    wanted = f"{epochs + 1:06d}-000000"
    until(lambda: any(path.name >= wanted for path in (folder / "checkpoints").glob("0*")), process)


def in_a_terminal(*command: str, cwd: Path, columns: int = 160) -> tuple[int, str]:
    """Run a command on a terminal: its exit code, and all that was shown."""
    main, child = pty.openpty()
    size = {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdout=child, stderr=child, cwd=cwd, env=os.environ | size)
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # how a pty says that the other side is closed
            break
        if not part:
            break
        shown += part
    os.close(main)
    return process.wait(), shown.decode()


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


class Terminal:
    """All that is shown on a terminal, read as it comes: one that nobody reads stops a program."""

    def __init__(self, main: int) -> None:
        self.main, self.shown = main, b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.shown += os.read(self.main, 65536)
            except OSError:  # how a pty says that the other side is closed
                break

    def press_ctrl_c(self) -> None:
        os.write(self.main, b"\x03")  # what the key sends

    def end(self, process: subprocess.Popen) -> int:
        """Wait for the program: its exit code."""
        code = process.wait(timeout=120)
        self.reader.join(30)
        os.close(self.main)
        return code


def on_a_terminal(*command: object) -> tuple[subprocess.Popen, Terminal]:
    """Start a command that a terminal belongs to, and the terminal."""
    main, child = pty.openpty()
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=child, stdout=child, stderr=child, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(child)
    return process, Terminal(main)


def same_run(one: Path, other: Path) -> bool:
    """Whether two runs ended with the same weights and the same metrics, timings aside."""
    assert metrics(one), "no metrics"
    agents = [mrn.load(folder) for folder in (one, other)]
    best = [mrn.load(folder, "best") for folder in (one, other)]
    return metrics(one) == metrics(other) and same_weights(*agents) and same_weights(*best)


KILLED = -signal.SIGKILL
