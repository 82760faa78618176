"""Shell completion, and the documented exit codes."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mrn
from mrn.utils.signals import STOP_SIGNALS
from tests.cli.helpers import exit_code

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "cli.md").read_text()
SHELLS = re.findall(r"^mrn --tyro-print-completion (\w+) >", PAGE, re.M)


@pytest.mark.parametrize("shell", SHELLS)
def test_documented_shells_have_a_script(shell, monkeypatch, capsys):
    assert exit_code(monkeypatch, "--tyro-print-completion", shell) in (0, None)
    script = capsys.readouterr().out
    assert "_tyro_mrn" in script
    assert "--stop-at" in script


def test_bash_completes_commands_and_options(tmp_path):
    command = [sys.executable, "-m", "mrn", "--tyro-print-completion", "bash"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tmp_path / "mrn.bash").write_text(script)

    def complete(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in words)
        code = (
            f"source mrn.bash; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _tyro_mrn; "
            "printf '%s\\n' \"${COMPREPLY[@]}\""
        )
        done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert not done.stderr
        return {word.strip() for word in done.stdout.splitlines()}

    assert complete("mrn", "re") == {"report", "resume", "recipes"}
    assert "--checkpoint-every" in complete("mrn", "resume", "--ch")


def test_all_exit_codes_are_documented():
    rows = re.findall(r"^\| ([\d, ]+) \| .+ \|$", PAGE, re.M)
    documented = [int(code) for row in rows for code in row.split(",")]
    signals = [128 + number for number in STOP_SIGNALS]
    errors = [mrn.UserError.exit_code, mrn.RunError.exit_code]
    assert sorted(documented) == sorted([0, 1, *errors, *signals])
    assert 128 + signal.SIGINT == 130
