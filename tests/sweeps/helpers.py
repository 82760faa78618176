"""A suite of six tiny runs, and sweeps over it in processes of their own."""

from pathlib import Path

import mrn
from mrn.envs import TASKS, find_task
from mrn.runs.metrics import COLUMNS
from mrn.runs.run_dir import RunDir
from tests.commands import Command
from tests.training.helpers import TINY, metrics

SETTINGS = {k: v for k, v in TINY.items() if k != "threads"} | {"epochs": 3}
NAMES = [f"FetchReach/ddpg-{c}/seed-{s}" for s in (1, 2) for c in ("mrn", "monolithic", "bvn")]


def write_suite(folder: Path, count: int = 6, **settings) -> Path:
    """The first so many of the six: one run, or two or three of one seed."""
    critics = ["mrn", "monolithic", "bvn"][:count]
    lines = [f"{name} = {value}" for name, value in (SETTINGS | settings).items()]
    file = folder / "tiny.toml"
    file.write_text(
        f'tasks = ["FetchReach"]\ncritics = {critics}\n'
        f"seeds = {[1, 2] if count == 6 else [1]}\n[settings]\n" + "\n".join(lines)
    )
    return file


def start_sweep(folder: Path, *options: str, count: int = 6, prepare=None) -> Command:
    words = ("sweep", write_suite(folder, count), "--runs", folder / "runs", "--threads=1")
    return Command(*words, *options, prepare=prepare)


def finish(process: Command, code: int = 0) -> str:
    output = "".join(process.communicate(timeout=600))
    assert process.returncode == code, output
    return output


def process_in_epoch_2(runs: Path) -> int | None:
    """The number of a process that has finished an epoch of its run, and not all."""
    for lock in runs.rglob(".lock"):
        try:
            if len(metrics(lock.parent)) in (1, 2):
                return int(lock.read_text())
        except (FileNotFoundError, ValueError):  # it is just beginning, or ending
            continue
    return None


def results(folder: Path, names=NAMES) -> dict[str, list[dict[str, str]]]:
    return {name: metrics(folder / "runs" / "tiny" / name) for name in names}


def write_run(root: Path, success: list[float | None], seed=100, task="FetchPush", **settings):
    """A run folder with a given learning curve."""
    config = mrn.Config.of(task, seed=seed, **{"epochs": len(success)} | settings)
    plan = config.schedule
    rows = []
    for epoch, value in enumerate(success, start=1):
        row = dict.fromkeys(COLUMNS, 1.0) | {"epoch": epoch, "success": value}
        row["env_steps"] = epoch * plan.cycles * plan.num_envs * 50
        rows.append(row)
    shape = find_task(task).spec if task in TASKS else TASKS["FetchPush"].spec
    with RunDir(root / config.folder, config, shape) as run:
        run.begin(rows or None)
    return root / config.folder
