"""Hostile names: control characters, formulas, and text that is not Unicode."""

import csv
import json

import pytest

import mrn
from mrn.analysis.runs import find_runs
from mrn.runs.metrics import check_columns
from mrn.utils.console import SafeConsole
from mrn.utils.tables import csv_text, markdown_table, print_table
from mrn.utils.terminal import printable
from tests.cli.helpers import exit_code, run_command
from tests.sweeps.helpers import write_run

ESCAPE = "\x1b]0;owned\x07"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain, ü and 漢\n\tfine", "plain, ü and 漢\n\tfine"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\x9b2J", "\\x9b2J"),  # the same as a single character
        ("a\rb\x00", "a\\rb\\x00"),
        ("\u202egnp.exe", "\\u202egnp.exe"),  # reverses the order of letters
        ("\udcff", "\\udcff"),
    ],
)
def test_printable(text, expected):
    assert printable(text) == expected


def test_consoles_and_tables_escape_names(capsys):
    print_table((("name",), [(ESCAPE,)]))
    SafeConsole(force_terminal=True, highlight=False).print(f"{ESCAPE} [bold]bold[/]")
    output = capsys.readouterr().out
    assert output.count("\\x1b]0;owned\\x07") == 2
    assert "\x1b]" not in output
    assert "\x1b[1mbold" in output  # own styles remain


@pytest.mark.filterwarnings("default")  # runs not drawn
def test_folder_names_do_not_reach_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / ESCAPE, [0.5, 0.7], 1)
    (tmp_path / ESCAPE / "damaged").mkdir()
    (tmp_path / ESCAPE / "damaged" / "config.json").write_text("{}", encoding="utf-8")
    run_command(monkeypatch, "report", ESCAPE, "-o", f"{ESCAPE}page")
    run_command(monkeypatch, "figures", ESCAPE, "-o", f"{ESCAPE}out")
    for words in (("eval", ESCAPE), ("resume", ESCAPE), ("sweep", f"{ESCAPE}.toml")):
        assert exit_code(monkeypatch, *words) == 2
    shown = "".join(capsys.readouterr())
    assert "owned" in shown
    assert "\x1b" not in shown


def test_spreadsheets_do_not_run_names(tmp_path, monkeypatch):
    assert [csv_text(name) for name in ("=1+1", "+1", "-1", "@x", "\t=1", "a=1")] == [
        "'=1+1", "'+1", "'-1", "'@x", "'\t=1", "a=1",
    ]  # fmt: skip
    monkeypatch.chdir(tmp_path)
    write_run(tmp_path / "runs", [0.5, 0.7], 1, task="=1+1|cmd")
    run_command(monkeypatch, "figures", "runs", "-o", "out")
    with open("out/table.csv", newline="", encoding="utf-8") as file:
        assert [row["task"] for row in csv.DictReader(file)] == ["'=1+1|cmd"]


def test_columns_cannot_be_formulas(tmp_path):
    file = write_run(tmp_path, [0.5], 1) / "metrics.csv"
    header, row = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{header},=1+1|cmd\n{row},1\n", encoding="utf-8")
    (run,) = find_runs(tmp_path)
    assert "columns are missing, duplicated or invalid" in run.problem
    with pytest.raises(mrn.UserError, match="must be a tuple of unique names"):
        check_columns(("=1+1",), "METRICS")


def test_markdown_cells_end_neither_cell_nor_row():
    table = markdown_table((("a",), [("x | y\n| z\u2028\x1b",)]))
    assert table.splitlines()[2] == "| x \\| y \\| z \\x1b |"


def test_half_a_character_is_a_damaged_file(tmp_path):
    folder = write_run(tmp_path, [0.5], 1)
    about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    about["config"]["task"] = "\ud800"
    (folder / "config.json").write_text(json.dumps(about), encoding="utf-8")
    (run,) = find_runs(tmp_path)
    assert "task must be valid Unicode text" in run.problem
