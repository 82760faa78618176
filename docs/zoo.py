"""Adds a trained run to the zoo, and writes the cards of docs/zoo.md: `python docs/zoo.py RUN`.

The policy is saved small, loaded again, and played over 500 episodes on both engines; what the card
says is measured with what a user gets. Without a run it writes the page anew from the cards.
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
from mrn.utils.tables import markdown_table, write_sections

PAGE = Path(__file__).with_name("zoo.md")
PICTURES = Path(__file__).with_name("zoo")
EPISODES, SEED = 500, 1000


def main(
    run: Annotated[Path | None, tyro.conf.Positional] = None,
    weights: str = "latest",
    commit: str = "HEAD",
) -> None:
    """Add a run to the zoo.

    Args:
        run: The run's folder; its task is the policy's name.
        weights: `latest`, or `best`.
        commit: Of this repository, with which it was trained.
    """
    if run is not None:
        add(run, weights, commit)
    text = "\n\n".join([markdown_table(zoo.table()), *map(_describe, zoo.entries())])
    write_sections(PAGE, {"cards": text})


def add(run: Path, weights: str, commit: str) -> None:
    """Keep a run's settings, metrics and small weights, measure these, and make the card."""
    agent, about = mrn.load(run, weights, "cpu"), read_run_info(run)
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
        "command": f"mrn train {shlex.join(about.config.arguments())}",
        "commit": _git("rev-parse", "--short=12", commit),
        "machine": about.machine,
        "episodes": round(rows[-1]["env_steps"] / agent.spec.horizon),
        "env_steps": int(rows[-1]["env_steps"]),
        "minutes": sum(row["rollout_seconds"] + row["update_seconds"] for row in rows) / 60,
        "engines": {},
    }
    for engine in ("envpool", "gymnasium"):
        found = agent.evaluate(EPISODES, SEED, engine)
        interval = {"low": found.interval.low, "high": found.interval.high}
        card["engines"][engine] = dataclasses.asdict(found) | interval
    PICTURES.mkdir(exist_ok=True)
    record(agent, PICTURES / f"{name}.gif", episodes=4, grid=True, force=True)
    write_atomically(folder / zoo.CARD, (json.dumps(card, indent=2) + "\n").encode())


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True
    ).stdout.strip()


def _describe(name: str) -> str:
    """The part of the page that tells of one policy."""
    card = zoo.entries()[name]
    return (
        f"### {name}\n\n![{name}: four episodes](zoo/{name}.gif)\n\n"
        f"`{card['command']}`, commit {card['commit']}, {card['env_steps']:,} environment steps, "
        f"{card['minutes']:.1f} minutes of playing and learning."
    )


if __name__ == "__main__":
    with report_errors():
        tyro.cli(main)
