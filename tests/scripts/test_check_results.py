"""`make check-results` passes on consistent results and fails on broken ones."""

import json
import shutil

import pytest

from scripts import check_results
from scripts.check_results import find_problems
from scripts.draw_results import main as draw_results
from scripts.studies import ROOT

STUDY = "fetch-pick-slide"
INDEX = f"""# Results

| task | critics | seeds | verdict | study |
| --- | --- | --- | --- | --- |
| FetchPick | none | 2 | open | [{STUDY}]({STUDY}/README.md) |
"""
PAGE = "# Study\n\n![Curves](curves.png)\n\n<!-- table: begin -->\n<!-- table: end -->\n"


@pytest.fixture(scope="module")
def consistent(tmp_path_factory):
    """A small repository with one study, and every generated page."""
    root = tmp_path_factory.mktemp("repository")
    shutil.copytree(ROOT / "results" / STUDY, root / "results" / STUDY)
    stored = root / "results" / "fast-recipe" / "exploration.json"
    stored.parent.mkdir()
    shutil.copy(ROOT / "results" / "fast-recipe" / "exploration.json", stored)
    shutil.copytree(ROOT / "benchmarks" / "results", root / "benchmarks" / "results")
    (root / "docs").mkdir()
    for page in (ROOT / "docs").glob("*.md"):
        shutil.copy(page, root / "docs")
    (root / "results" / "README.md").write_text(INDEX)
    (root / "results" / STUDY / "README.md").write_text(PAGE)
    draw_results(root)
    return root


@pytest.fixture
def copy(consistent, tmp_path):
    shutil.copytree(consistent, tmp_path / "copy")
    return tmp_path / "copy"


def test_consistent_results_have_no_problems(copy, capsys):
    assert find_problems(copy) == []
    check_results.main(copy)
    assert capsys.readouterr().out == "results match their runs\n"


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def change_metrics(study):
    edit(study / "FetchPick" / "ddpg-mrn" / "seed-100.csv", "600000,", "600001,")


def change_table(study):
    edit(study / "table.md", "83.5", "93.5")


def change_page(study):
    edit(study / "README.md", "83.5", "93.5")


def change_docs(study):
    edit(study.parents[1] / "docs" / "scale.md", "1,466", "9,466")


def change_suite(study):
    edit(study / f"{STUDY}.toml", "epochs = 12", "epochs = 13")


def remove_seed_from_suite(study):
    edit(study / f"{STUDY}.toml", "[100, 200]", "[100]")


def break_suite(study):
    edit(study / f"{STUDY}.toml", "epochs = 12", "epoch = 12")


def use_old_setting_name(study):
    file = study / "FetchPick" / "ddpg-mrn" / "seed-100.json"
    data = json.loads(file.read_text())
    data["config"]["agent"] = data["config"].pop("algo")
    file.write_text(json.dumps(data))


def truncate_settings(study):
    (study / "FetchPick" / "ddpg-mrn" / "seed-200.json").write_text("{")


def remove_metrics(study):
    (study / "FetchPick" / "ddpg-mrn" / "seed-200.csv").unlink()


def remove_figure(study):
    (study / "curves.png").unlink()


def break_link(study):
    edit(study / "README.md", "curves.png", "curve.png")


def change_seeds_of_index(study):
    edit(study.parent / "README.md", "| 2 |", "| 3 |")


def drop_from_index(study):
    (study.parent / "README.md").write_text("# Results\n")


def lengthen_index(study):
    with (study.parent / "README.md").open("a") as index:
        index.write("\n" * 80)


def add_unknown_section(study):
    with (study / "README.md").open("a") as page:
        page.write("<!-- unknown: begin -->\n<!-- unknown: end -->\n")


@pytest.mark.parametrize(
    ("breakage", "problem"),
    [
        (change_metrics, f"{STUDY}: figures were drawn from other runs"),
        (change_table, f"{STUDY}/table.md does not match its runs"),
        (change_page, f"results/{STUDY}/README.md: a table is outdated"),
        (change_docs, "docs/scale.md: a table is outdated"),
        (change_suite, "12 epochs, the suite has 13"),
        (remove_seed_from_suite, "seed-200: no suite of fetch-pick-slide has this run"),
        (break_suite, "epoch"),
        (use_old_setting_name, "settings have old names"),
        (truncate_settings, "seed-200"),
        (remove_metrics, "seed-200.json: no metrics next to it"),
        (remove_figure, "figures are [], expected ['curves']"),
        (break_link, "broken link curve.png"),
        (change_seeds_of_index, "has [2] seeds, not 3"),
        (drop_from_index, f"no row for {STUDY}"),
        (lengthen_index, "at most 80 are allowed"),
        (add_unknown_section, "no code generates the section 'unknown'"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_broken_results_are_reported(breakage, problem, copy, capsys):
    breakage(copy / "results" / STUDY)
    with pytest.raises(SystemExit) as exit_info:
        check_results.main(copy)
    assert exit_info.value.code == 1
    assert problem in capsys.readouterr().out
