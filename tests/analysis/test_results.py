"""The published results: their tables are those of their curves, and their suites can be run."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.recipes import sections
from mrn import tables
from mrn.analysis.figures import PICTURES
from mrn.analysis.runs import find_runs, group
from mrn.analysis.summary import summarize
from mrn.analysis.tables import markdown
from mrn.config import Config
from mrn.sweeps.suites import find_suite

RESULTS = Path(__file__).parents[2] / "results"
SUITES = sorted((RESULTS / "suites").glob("*.toml"))
PUBLISHED = [file for file in SUITES if (RESULTS / file.stem / "table.md").exists()]


def configs_in(folder: str) -> list[Config]:
    """All that the suites are to train into a folder."""
    suites = [suite for suite in map(find_suite, map(str, SUITES)) if suite.folder == folder]
    return [config for suite in suites for config in suite.configs()]


@pytest.mark.parametrize("file", PUBLISHED, ids=lambda file: file.stem)
def test_the_table_is_that_of_the_curves_and_all_runs_are_there(file):
    folder = RESULTS / file.stem
    runs = find_runs(folder)
    assert [run.problem for run in runs if run.problem] == []
    configs = configs_in(file.stem)
    assert {run.path.relative_to(folder).as_posix() for run in runs} == {
        f"{config.folder.as_posix()}.csv" for config in configs
    }
    epochs = {config.folder.as_posix(): config.epochs for config in configs}
    for run in runs:
        assert run.epochs == epochs[run.path.relative_to(folder).with_suffix("").as_posix()]
    table = markdown(summarize(group(runs)[""]))
    assert (folder / "table.md").read_text() == table
    page = (RESULTS / "README.md").read_text()
    assert table in page


def test_what_the_front_page_says_of_fetch_push():
    methods = group(find_runs(RESULTS / "push"))[""]["FetchPush"]
    success = {name: np.array([run.success for run in runs]) for name, runs in methods.items()}
    solved = {name: (curves >= 0.9).argmax(axis=1) + 1 for name, curves in success.items()}
    assert solved["ddpg-mrn"].tolist() == [5, 5, 5]
    assert solved["ddpg-iqe"].tolist() == [6, 6, 6]
    assert (success["ddpg-bvn"].max(axis=1) >= 0.9).sum() == 1
    assert success["ddpg-monolithic"].max() < 0.9
    assert sorted(solved["ddpg-dn"]) == [4, 6, 6]
    assert solved["ddpg-wn"].tolist() == [5, 5, 5]
    assert sorted(solved["ddpg-pqe"]) == [5, 5, 6]
    means = {name: curves.mean(axis=1) for name, curves in success.items()}
    ahead = {
        name: int((means["ddpg-mrn"][:, None] > others).sum()) for name, others in means.items()
    }
    level = {"ddpg-dn": 4, "ddpg-wn": 5, "ddpg-pqe": 7}
    behind = dict.fromkeys(("ddpg-monolithic", "ddpg-bvn", "ddpg-iqe"), 9)
    assert ahead == level | behind | {"ddpg-mrn": 3}
    for name in level:
        assert success[name][:, -1].min() >= 0.98
    released = {run.method: run.success.mean() for run in find_runs(RESULTS / "forms-push")}
    for name in level:
        assert released[f"{name}-released"] < means["ddpg-mrn"][0] - 0.15


@pytest.mark.parametrize(
    ("task", "ahead_from", "but_for", "last"),
    [("BlockRotateZ", 6, [9], (0.98, 0.49)), ("EggRotate", 9, [], (0.95, 0.63))],
)
def test_what_the_pages_say_of_the_hand(task, ahead_from, but_for, last):
    methods = group(find_runs(RESULTS / "hand"))[""][task]
    ours, theirs = (methods[f"ddpg-{name}"][0].success for name in ("mrn", "monolithic"))
    assert (ours[-1], theirs[-1]) == last
    behind = [epoch for epoch, lead in enumerate(ours - theirs, start=1) if lead < 0]
    assert [epoch for epoch in behind if epoch >= ahead_from] == but_for
    assert ahead_from - 1 in behind


def test_what_the_pages_say_of_the_pen():
    methods = group(find_runs(RESULTS / "hand"))[""]["PenRotate"]
    ours, theirs = (methods[f"ddpg-{name}"][0].success for name in ("mrn", "monolithic"))
    assert (ours[-1], theirs[-1]) == (0.05, 0.21)
    assert [epoch for epoch in range(5, 16) if ours[epoch - 1] >= theirs[epoch - 1]] == [12]
    longer = group(find_runs(RESULTS / "hand-longer"))[""]["PenRotate"]
    for name, before, last in (("mrn", ours, (0.13, 0.22)), ("monolithic", theirs, (0.17, 0.29))):
        success = longer[f"ddpg-{name}"][0].success
        assert success[:15].tolist() == before.tolist()  # the same run
        assert (success[16:].min(), success[16:].max()) == last
    (gentle,) = find_runs(RESULTS / "hand-penalty")
    assert (gentle.success[9:].min(), gentle.success[9:].max()) == (0.05, 0.19)
    assert (ours[9:].min(), ours[9:].max()) == (0, 0.05)


@pytest.mark.parametrize("table", sorted(RESULTS.rglob("table.md")), ids=lambda t: t.parent.name)
def test_the_pictures_are_those_of_the_runs(table):
    summary = summarize(group(find_runs(table.parent))[""])
    expected = {"curves"} | ({"aggregate"} if len(summary.tasks) > 1 else set())
    there = {path.name for path in table.parent.glob("*.p*") if path.stem in PICTURES}
    assert there == {f"{name}.{suffix}" for name in expected for suffix in ("pdf", "png")}


def test_there_are_published_suites():
    assert {"fetch-push", "fetch-reach", "push"} <= {file.stem for file in PUBLISHED}


@pytest.mark.parametrize("folder", sorted({find_suite(str(file)).folder for file in SUITES}))
def test_runs_kept_of_suites_are_finished_runs_of_them(folder):
    epochs = {f"{c.folder.as_posix()}.csv": c.epochs for c in configs_in(folder)}
    assert epochs
    kept = list((RESULTS / folder).rglob("seed-*.csv"))
    runs = find_runs(RESULTS / folder) if kept else []
    assert len(runs) == len(kept)
    for run in runs:
        planned = epochs[run.path.relative_to(RESULTS / folder).as_posix()]
        assert run.stopped or run.epochs == planned


@pytest.mark.parametrize("name", ["fast", "fast-ablation"])
def test_runs_of_the_recipe_fast_are_finished_runs_of_its_suites(name):
    configs = {config.folder: config for config in configs_in(name)}
    runs = find_runs(RESULTS / name)
    assert len(runs) > 5
    for run in runs:
        asked = configs[Path(run.task) / run.method / f"seed-{run.seed}"]
        assert run.epochs == asked.epochs
        assert run.config.algo_config == asked.algo_config
        assert run.config.schedule == asked.schedule
        assert run.config.replay == asked.memory
    table = (RESULTS / name / "table.md").read_text()
    assert table == markdown(summarize(group(runs)[""]))


def test_the_page_of_the_recipe_fast_is_that_of_its_runs():
    page = (RESULTS / "fast" / "README.md").read_text()
    for name, table in sections().items():
        assert tables.with_section(page, name, tables.markdown(table)) == page


def agents_page(name: str) -> dict[str, list[float]]:
    """Success over epochs by method and seed, after holding the page's table to the runs."""
    folder = RESULTS / "agents" / name
    runs = find_runs(folder)
    table = markdown(summarize(group(runs)[""]))
    assert (folder / "table.md").read_text() == table
    assert table in (RESULTS / "agents" / "README.md").read_text()
    found = {f"{run.method}/seed-{run.seed}": run.columns["success"].tolist() for run in runs}
    configs = find_suite(str(RESULTS / "suites" / f"agents-{name}.toml")).configs()
    assert found.keys() == {f"{config.method}/seed-{config.seed}" for config in configs}
    return found


def test_every_agent_reaches():
    found = agents_page("reach")
    below = {"ddpg-mrn/seed-200": 0.94, "gcsl-none/seed-100": 0.88}
    for name, success in found.items():
        assert len(success) == 5
        assert max(success) >= 0.95
        assert success[-1] == below.get(name, success[-1])
        assert (success[-1] < 0.95) == (name in below)
        if name.startswith("wgcsl"):
            assert success[0] >= 0.98


def test_which_agents_push():
    found = agents_page("push")
    page = (RESULTS / "agents" / "README.md").read_text()
    for name, success in found.items():
        method, _, seed = name.partition("/seed-")
        agent = method.partition("-")[0]
        cells = [f"{100 * value:.0f}" for value in success] + [""] * (8 - len(success))
        row = f"| `{agent}` | {seed} | {' | '.join(cells)} |".replace("|  |", "| |")
        assert row.replace("|  |", "| |") in page
        if agent in ("sac", "td3"):
            assert success[-1] >= 0.9 > max(success[:-1])
            assert max(success[:6]) >= 0.8  # within 75,000 steps
        else:
            assert len(success) == 8
            assert max(success) <= 0.15


def test_the_page_of_the_environments_of_others_is_that_of_its_runs():
    folder = RESULTS / "others"
    configs = {config.folder: config for config in configs_in("others")}
    runs = {run.path.relative_to(folder).with_suffix(""): run for run in find_runs(folder)}
    assert runs.keys() == configs.keys()
    for path, config in configs.items():
        assert runs[path].epochs == config.epochs
        kept = runs[path].config
        assert (kept.schedule, kept.algo_config, kept.memory) == (
            config.schedule,
            config.algo_config,
            config.replay,
        )
    table = markdown(summarize(group(list(runs.values()))[""]))
    assert (folder / "table.md").read_text() == table
    assert table in (folder / "README.md").read_text()
    panda, maze = (
        {run.seed: run.columns for run in runs.values() if name in run.task}
        for name in ("PandaReach", "PointMaze")
    )
    assert len(panda) == len(maze) == 3
    for columns in panda.values():
        assert (columns["success"][3:] == 1).all()  # "at 100 % after 200 episodes, and stay there"
        assert columns["env_steps"][3] in (8_640, 8_688, 8_834)
    assert sum(columns["success"][2] == 1 for columns in panda.values()) == 2
    success = {seed: columns["success"] for seed, columns in maze.items()}
    mean = sum(success.values()) / 3
    assert mean[14] >= 0.9 > mean[:14].max()
    assert mean[18:].min() >= 0.9 > mean[17]
    assert [success[seed][-1] for seed in (100, 200, 300)] == [0.91, 0.92, 1.0]
    assert (success[200][5], success[200][11]) == (1.0, 0.78)
    assert (success[100][2:11].min(), success[100][2:11].max()) == (0.66, 0.84)
    assert (success[100][11], success[100][12:].min()) == (0.98, 0.71)
    assert (success[300][:14].max(), success[300][14:].min()) == (0.89, 0.96)
    assert (success[100][11], success[200][11], success[300][11]) == (0.98, 0.78, 0.79)
    late = [columns["success_any"][7:] - columns["success"][7:] for columns in maze.values()]
    assert [sorted(100 * gap[gap > 0]) for gap in late] == [
        [],
        pytest.approx([2]),
        pytest.approx([1, 4]),
    ]


def test_two_processes_reach_as_the_page_of_scale_says():
    (run,) = find_runs(RESULTS / "scale")
    assert run.about.processes == 2
    assert run.columns["success"].tolist()[2:] == [1, 1, 1]
    assert run.columns["env_steps"][2] == 7_500
