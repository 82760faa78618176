"""Runs of a sweep as forks of its process, which skip the imports."""

import os
import signal
import subprocess
import sys
from types import SimpleNamespace


class ForkedRun:
    """A run in a fork, with the methods of `subprocess.Popen` that sweeps use."""

    def __init__(self, command, stdin, stdout, stderr, env, start_new_session):
        reading, writing = os.pipe()
        self.pid, self.code = os.fork(), None
        if self.pid == 0:
            code = 1
            try:
                os.setsid()
                for number, file in enumerate((reading, stdout.fileno(), stderr.fileno())):
                    os.dup2(file, number)
                os.close(writing)
                for number, name in enumerate(("stdin", "stdout", "stderr")):
                    setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115
                sys.argv = command[3:]
                code = _train()
            finally:
                os._exit(code)
        os.close(reading)
        self.stdin = open(writing, "wb")  # noqa: SIM115 - closed by the sweep

    def poll(self):
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.code = os.waitstatus_to_exitcode(status) if pid else None
        return self.code

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)


def _train() -> int:
    from mrn.sweeps.child import main

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    sys.stdout.flush(), sys.stderr.flush()
    return code


def fork_runs() -> None:
    """Make sweeps in this process fork their runs."""
    from mrn.sweeps import backends

    replaced = {"Popen": ForkedRun, "PIPE": subprocess.PIPE}
    backends.subprocess = SimpleNamespace(**replaced, TimeoutExpired=subprocess.TimeoutExpired)
