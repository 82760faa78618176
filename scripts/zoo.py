"""Add a trained run to the zoo: `python -m scripts.zoo RUN`.

Saves the policy in half precision, loads it again and evaluates 500 episodes on both engines, so
that the card describes the weights a user gets. `make pages` updates docs/zoo.md.
"""

import dataclasses
import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Annotated

import tyro

import mrn
from mrn import zoo
from mrn.integrations.video import record
from mrn.runs.layout import CONFIG, METRICS, weights_file
from mrn.runs.metrics import read_metrics
from mrn.runs.provenance import read_run_info
from mrn.utils.errors import report_errors
from mrn.utils.files import write_atomically
from mrn.utils.tables import markdown_table
from scripts.studies import ROOT

VIDEOS = ROOT / "docs" / "zoo"
EPISODES, SEED = 500, 1000


def add(
    run: Annotated[Path, tyro.conf.Positional],
    weights: str = "latest",
    commit: str = "HEAD",
) -> None:
    """Add a run to the zoo: settings, metrics, weights, a card and a video.

    Args:
        run: Run folder. The policy is named after its task.
        weights: `latest` or `best`.
        commit: Commit of this repository that the run was trained with.
    """
    agent, info = mrn.load(run, weights, "cpu"), read_run_info(run)
    name = agent.config.task
    folder = zoo.FOLDER / name
    folder.mkdir(exist_ok=True)
    for file in (CONFIG, METRICS):
        shutil.copy(run / file, folder / file)
    agent.save(weights_file(folder), small=True)
    agent = mrn.load(folder, device="cpu")
    rows = read_metrics(folder / METRICS)
    card = {
        "task": name,
        "method": agent.config.method,
        "seed": agent.config.seed,
        "weights": weights,
        "command": f"mrn train {shlex.join(info.config.arguments())}",
        "commit": _git("rev-parse", "--short=12", commit),
        "machine": info.machine,
        "episodes": round(rows[-1]["env_steps"] / agent.spec.horizon),
        "env_steps": int(rows[-1]["env_steps"]),
        "minutes": sum(row["rollout_seconds"] + row["update_seconds"] for row in rows) / 60,
        "engines": {},
    }
    for engine in ("envpool", "gymnasium"):
        evaluation = agent.evaluate(EPISODES, SEED, engine)
        interval = {"low": evaluation.interval.low, "high": evaluation.interval.high}
        card["engines"][engine] = dataclasses.asdict(evaluation) | interval
    VIDEOS.mkdir(exist_ok=True)
    record(agent, VIDEOS / f"{name}.gif", episodes=4, grid=True, force=True)
    write_atomically(folder / zoo.CARD, (json.dumps(card, indent=2) + "\n").encode())


def cards() -> str:
    """Return the table and the cards of all policies as Markdown."""
    return "\n\n".join([markdown_table(zoo.table()), *map(_describe, zoo.entries())])


def _describe(name: str) -> str:
    card = zoo.entries()[name]
    return (
        f"### {name}\n\n![{name}: four episodes](zoo/{name}.gif)\n\n"
        f"`{card['command']}`, commit {card['commit']}, {card['env_steps']:,} environment steps, "
        f"{card['minutes']:.1f} minutes of training."
    )


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True
    ).stdout.strip()


if __name__ == "__main__":
    with report_errors():
        tyro.cli(add)
