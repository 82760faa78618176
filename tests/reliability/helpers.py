"""Runs in separate processes and in terminals, and a comparison of runs."""

import fcntl
import os
import pty
import subprocess
import termios
import threading
from pathlib import Path

import mrn
from tests.commands import Command, until
from tests.training.helpers import TINY, metrics, same_weights


def tiny_arguments(folder: Path, *options: str, task: str = "FetchReach") -> list[str]:
    """Return the arguments of a tiny_arguments `mrn train`."""
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    return ["train", task, *sizes, "--run-dir", str(folder), *options]


def start(folder: Path, *options: str, task: str = "FetchReach") -> Command:
    """Start a tiny_arguments `mrn train`."""
    return Command(*tiny_arguments(folder, *options, task=task))


def wait_for(folder: Path, process: Command | subprocess.Popen, epochs: int = 1) -> None:
    """Wait until the checkpoint after a number of epochs exists."""
    wanted = f"{epochs + 1:06d}-000000"
    until(lambda: any(path.name >= wanted for path in (folder / "checkpoints").glob("0*")), process)


def in_a_terminal(*command: str, cwd: Path, columns: int = 160) -> tuple[int, str]:
    """Run a command in a terminal; return its exit code and output."""
    main, child = pty.openpty()
    size = {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(command, stdout=child, stderr=child, cwd=cwd, env=os.environ | size)
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(main, 65536)
        except OSError:  # the other side of the pty is closed
            break
        if not part:
            break
        shown += part
    os.close(main)
    return process.wait(), shown.decode()


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return (
        [int(child) for child in path.read_text(encoding="utf-8").split()] if path.exists() else []
    )


class Terminal:
    """Pseudo-terminal, read continuously because a full buffer blocks the program."""

    def __init__(self, main: int) -> None:
        self.main, self.shown = main, b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        while True:
            try:
                self.shown += os.read(self.main, 65536)
            except OSError:  # the other side of the pty is closed
                break

    def press_ctrl_c(self) -> None:
        os.write(self.main, b"\x03")  # the code of the key

    def hang_up(self) -> None:
        """Close the terminal, as closing its window does."""
        main, self.main = self.main, -1  # ends the reader
        os.close(main)

    def end(self, process: subprocess.Popen) -> int:
        """Wait for the program and return its exit code."""
        code = process.wait(timeout=120)
        self.reader.join(30)
        os.close(self.main)
        return code


def start_in_terminal(*command: object) -> tuple[subprocess.Popen, Terminal]:
    """Start a command with a controlling terminal; return both."""
    main, child = pty.openpty()
    process = subprocess.Popen(
        list(map(str, command)),
        stdin=child, stdout=child, stderr=child, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )  # fmt: skip
    os.close(child)
    return process, Terminal(main)


def same_run(one: Path, other: Path) -> bool:
    """Return whether two runs have the same weights and metrics, except for timings."""
    assert metrics(one), "no metrics"
    agents = [mrn.load(folder, trust_code=True) for folder in (one, other)]
    best = [mrn.load(folder, "best", trust_code=True) for folder in (one, other)]
    return metrics(one) == metrics(other) and same_weights(*agents) and same_weights(*best)
