"""Finding runs: each once, with its settings if known."""

import json
import shutil

import pytest

from mrn.analysis.figures import draw_figures
from mrn.analysis.report import write_report
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.analysis.tables import markdown
from mrn.utils.errors import UserError
from tests.sweeps.helpers import write_run


def test_figures_beside_runs_are_not_counted_twice(tmp_path):
    write_run(tmp_path / "mine", [0.5, 0.7], 1)
    write_run(tmp_path / "mine", [0.5, 0.9], 2)
    draw_figures(tmp_path, tmp_path)
    table = (tmp_path / "mine/table.md").read_bytes()
    assert (tmp_path / "mine/FetchPush/ddpg-mrn/seed-1.csv").exists()
    runs = find_runs(tmp_path)
    assert [run.name for run in runs] == ["mine/FetchPush/ddpg-mrn/1", "mine/FetchPush/ddpg-mrn/2"]
    assert all(run.path.is_dir() for run in runs)
    draw_figures(tmp_path, tmp_path)
    assert (tmp_path / "mine/table.md").read_bytes() == table


def test_figures_inside_the_runs_folder_are_not_drawn_again(tmp_path):
    write_run(tmp_path / "mine", [0.5, 0.7], 1)
    for _ in range(2):
        draw_figures(tmp_path, tmp_path / "figures")
    assert [p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("table.md")] == [
        "figures/mine/table.md"
    ]
    # CSVs without an original count, and an output folder above the root changes nothing.
    shutil.rmtree(tmp_path / "mine")
    assert [run.name for run in find_runs(tmp_path, tmp_path / "figures")] == [
        "figures/mine/FetchPush/ddpg-mrn/1"
    ]
    (run,) = find_runs(tmp_path / "figures/mine", tmp_path)
    assert run.name == "FetchPush/ddpg-mrn/1"


def test_two_runs_of_the_same_name_raise(tmp_path):
    folder = write_run(tmp_path, [0.5, 0.7], 1)
    other = folder.with_name("seed-01.csv")
    shutil.copy(folder / "metrics.csv", other)
    with pytest.raises(UserError, match="two runs of FetchPush/ddpg-mrn/1") as refused:
        find_runs(tmp_path)
    assert f"{folder} and {other}" in str(refused.value) or f"{other} and {folder}" in str(
        refused.value
    )


def test_file_without_a_seed_is_named_and_skipped(tmp_path):
    folder = write_run(tmp_path / "runs", [0.5, 0.6])
    place = tmp_path / "alone/FetchPush/mine"
    place.mkdir(parents=True)
    for name in ("seed-a", "seed-b", "seed-1"):
        (place / f"{name}.csv").write_bytes((folder / "metrics.csv").read_bytes())
    runs = find_runs(tmp_path / "alone")
    assert [run.seed for run in runs if not run.problem] == [1]
    assert ["'a' is not a seed" in run.problem for run in runs] == [False, True, False]
    with pytest.warns(UserWarning, match=r"not drawn: .*seed-a.csv: .*seed-b.csv: 'b' is not a"):
        draw_figures(tmp_path / "alone", tmp_path / "out")
    # A method that is not named ALGO-CRITIC is shown as it is.
    assert "| FetchPush | mine | 1 |" in markdown(summarize(group(runs)[""]))


def test_subfolder_of_an_experiment_is_one_experiment(tmp_path):
    write_run(tmp_path / "mine", [0.5], 1)
    write_run(tmp_path / "mine", [0.5], 1, critic="bvn")
    for root in ("mine", "mine/FetchPush"):
        assert {run.experiment for run in find_runs(tmp_path / root)} == {""}
    assert {run.experiment for run in find_runs(tmp_path)} == {"mine"}
    (single,) = find_runs(tmp_path / "mine/FetchPush/ddpg-mrn/seed-1")
    assert (single.experiment, single.method) == ("", "ddpg-mrn")


def test_runs_with_custom_folders_are_compared(tmp_path):
    """As with `mrn train --run-dir`; settings distinguish methods, folders do not."""
    places = {
        "a": {"seed": 1},
        "b/c": {"seed": 2},
        "fine": {"seed": 1, "learning_rate": 0.002},
        "fine again": {"seed": 2, "learning_rate": 0.002, "threads": 1},
        "other": {"seed": 1, "critic": "bvn"},
    }
    for place, settings in places.items():
        folder = write_run(tmp_path / "made", [0.5, 0.6], **settings)
        (tmp_path / "runs" / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(folder, tmp_path / "runs" / place)
    runs = tmp_path / "runs"
    (tasks,) = group(find_runs(runs)).values()
    assert {method: [run.seed for run in each] for method, each in tasks["FetchPush"].items()} == {
        "ddpg-mrn+learning_rate=0.001": [1, 2],
        "ddpg-mrn+learning_rate=0.002": [1, 2],
        "ddpg-bvn": [1],
    }
    draw_figures(runs, tmp_path / "out")
    found = find_runs(tmp_path / "out")  # copies are read under the same names
    assert [run.problem for run in found] == [""] * 5
    assert {run.method for run in found} == set(tasks["FetchPush"])
    # A repetition with the same seed is not a second seed.
    shutil.copytree(runs / "a", runs / "z")
    assert {run.experiment for run in find_runs(runs)} == {"", "z"}


def test_task_named_as_a_parent_folder_stays_in_the_output_folder(tmp_path):
    folder = write_run(tmp_path / "runs", [0.5], 1, "my_package.envs:MyReach-v0")
    about = json.loads((folder / "config.json").read_text())
    about["config"]["task"] = ".."
    (folder / "config.json").write_text(json.dumps(about))
    written = draw_figures(tmp_path / "runs", tmp_path / "out/figures")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["figures"]
    assert not any(".." in path.parts for path in written)


@pytest.mark.parametrize(
    ("column", "value"),
    [("success", 98), ("success", -0.1), ("success", "nan"), ("success_any", 1.5),
     ("env_steps", -5), ("env_steps", "inf"), ("update_seconds", -1)],
)  # fmt: skip
def test_values_out_of_range_mark_a_run_as_damaged(tmp_path, column, value):
    file = write_run(tmp_path, [0.5, 0.7], 1) / "metrics.csv"
    head, first, last = file.read_text().splitlines()
    cells = last.split(",")
    cells[head.split(",").index(column)] = str(value)
    file.write_text("\n".join([head, first, ",".join(cells)]) + "\n")
    (run,) = find_runs(tmp_path)
    assert f"metrics.csv is damaged in line 3: {column} must be " in run.problem
    assert f", got {value}" in run.problem


def test_damaged_runs_are_listed_below_the_table(tmp_path):
    for seed in (1, 2, 3):
        write_run(tmp_path, [0.5, 0.7], seed)
    for seed, file in ((2, "metrics.csv"), (3, "config.json")):
        (tmp_path / f"FetchPush/ddpg-mrn/seed-{seed}" / file).write_text("{")
        with pytest.warns(UserWarning, match=f"not drawn: .*seed-{seed}"):
            draw_figures(tmp_path, tmp_path / "out")
        table = (tmp_path / "out/table.md").read_text()
        assert f"Not counted: FetchPush/ddpg-mrn/{seed}: " in table
        runs = find_runs(tmp_path)
        assert not summarize(group(runs)[""], [run for run in runs if run.problem]).rows[0].complete
        with pytest.warns(UserWarning, match=f"not shown: .*seed-{seed}"):
            _, finished = write_report(tmp_path, tmp_path / "page")
        assert finished  # no more results will follow


def test_files_of_others_are_not_overwritten(tmp_path):
    write_run(tmp_path / "runs", [0.5, 0.7], 1)
    site = tmp_path / "site"
    for write, name in ((write_report, "index.html"), (draw_figures, "table.md")):
        site.mkdir()
        (site / name).write_text("precious")
        with pytest.raises(UserError, match=f"{name} is not .*use force to overwrite it"):
            write(tmp_path / "runs", site)
        assert [path.name for path in site.iterdir()] == [name]
        assert (site / name).read_text() == "precious"
        write(tmp_path / "runs", site, force=True)
        assert "precious" not in (site / name).read_text()
        write(tmp_path / "runs", site)  # its own files
        shutil.rmtree(site)


def test_videos_with_uppercase_suffixes_are_shown(tmp_path):
    folder = write_run(tmp_path / "runs", [0.5], 1)
    (folder / "policy.MP4").write_bytes(b"video")
    page, _ = write_report(tmp_path / "runs", tmp_path / "page")
    assert "data:video/mp4;base64,dmlkZW8=" in page.read_text()


def test_figures_copy_metrics_with_settings(tmp_path):
    task = "my_package.envs:MyReach-v0"
    folder = write_run(tmp_path / "runs", [0.5, 0.7], 1, task, cycles=7, epochs=5)
    about = json.loads((folder / "config.json").read_text())
    about["machine"] = {"cpu": "Z80", "cores": 1, "gpu": None}
    (folder / "config.json").write_text(json.dumps(about))
    draw_figures(tmp_path / "runs", tmp_path / "out")
    copy = tmp_path / "out/my_package.envs_MyReach-v0/ddpg-mrn/seed-1.json"
    assert json.loads(copy.read_text()) == about
    (run,) = find_runs(tmp_path / "out")
    assert run.path == copy.with_suffix(".csv")
    assert (run.task, run.seed, run.planned, run.finished) == (task, 1, 5, False)
    assert run.config.schedule.cycles == 7
    assert run.info.versions == about["versions"]
    assert run.info.machine == {"cpu": "Z80", "cores": "1"}
    assert run.episodes.tolist() == [140, 280]
    # Copies can be copied again.
    draw_figures(tmp_path / "out", tmp_path / "again")
    assert (
        json.loads((tmp_path / "again" / copy.relative_to(tmp_path / "out")).read_text()) == about
    )


def test_metrics_of_other_settings_are_not_overwritten(tmp_path):
    write_run(tmp_path / "runs", [0.9], 1)
    draw_figures(tmp_path / "runs", tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")}
    write_run(tmp_path / "others", [0.1, 0.2], 1, learning_rate=5e-3)
    with pytest.raises(
        UserError, match=r"seed-1.json has different settings: .*another output folder"
    ):
        draw_figures(tmp_path / "others", tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before
    for path in (tmp_path / "others").rglob("metrics.csv"):  # metrics without settings
        bare = tmp_path / "bare/FetchPush/ddpg-mrn/seed-1.csv"
        bare.parent.mkdir(parents=True)
        path.rename(bare)
    with pytest.raises(
        UserError, match=r"has no settings, but .*seed-1.json belongs to other metrics"
    ):
        draw_figures(tmp_path / "bare", tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.*")} == before
    write_run(tmp_path / "begun", [], 1, learning_rate=5e-3, epochs=3)  # nothing to copy yet
    write_run(tmp_path / "begun", [0.8], 2)
    with pytest.warns(UserWarning, match="1 because no epoch is finished yet"):
        draw_figures(tmp_path / "begun", tmp_path / "out")
    write_run(tmp_path / "longer", [0.9, 0.95], 1)
    draw_figures(tmp_path / "longer", tmp_path / "out")
    assert find_runs(tmp_path / "out")[0].epochs == 2


def test_settings_of_another_run_are_not_used(tmp_path):
    write_run(tmp_path / "runs", [0.5], 1)
    draw_figures(tmp_path / "runs", tmp_path / "out")
    file = tmp_path / "out/FetchPush/ddpg-mrn/seed-1.csv"
    for suffix in (".csv", ".json"):
        file.with_suffix(suffix).rename(file.with_name(f"seed-2{suffix}"))
    (run,) = find_runs(tmp_path / "out")
    assert "holds the settings of another run, FetchPush/ddpg-mrn/seed-1" in run.problem
    file.with_name("seed-2.json").write_text("[]")
    (run,) = find_runs(tmp_path / "out")
    assert "seed-2.json is damaged" in run.problem
    file.with_name("seed-2.json").unlink()
    (run,) = find_runs(tmp_path / "out")
    assert (run.problem, run.seed, run.config) == ("", 2, None)


@pytest.mark.parametrize("machine", [None, "a laptop", ["x"], 3])
def test_malformed_machine_is_ignored(tmp_path, machine):
    folder = write_run(tmp_path, [0.5], 1)
    about = json.loads((folder / "config.json").read_text()) | {"machine": machine}
    (folder / "config.json").write_text(json.dumps(about))
    (run,) = find_runs(tmp_path)
    assert run.problem == ""
    assert run.info.machine == {}
