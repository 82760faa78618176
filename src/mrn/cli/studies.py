"""Commands that look closer: the toy example, the theory, a trained critic."""

from pathlib import Path
from typing import Annotated

import tyro

from mrn.utils.tables import console, print_table


def toy(
    out: Annotated[Path, tyro.conf.arg(aliases=("-o",))] = Path("toy"),
    sensitivity: bool = False,
    write_docs: Path | None = None,
) -> None:
    """Learn shortest paths in a square from 20 pairs of points: the paper's toy example.

    Args:
        out: The folder for the pictures (PDF, PNG) and the numbers (CSV).
        sensitivity: Also measure what decides between MRN and the monolithic network.
        write_docs: A Markdown page whose marked sections are replaced by the tables.
    """
    from mrn.studies.toy.report import run

    for table in run(out, sensitivity, write_docs):
        print_table(table)
    print(f"Pictures and numbers are in {out}.")


def theory(write_docs: Path | None = None) -> None:
    """Check the paper's theory on exact optimal values of small problems.

    Args:
        write_docs: A Markdown page whose marked sections are replaced by the tables.
    """
    from mrn.studies.theory.report import run

    for table in run(write_docs):
        print_table(table)


def inspect(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    episodes: int = 100,
    weights: str = "latest",
    engine: str = "auto",
    seed: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
) -> None:
    """Look into a trained critic: is -Q a distance, does it count steps, what is it made of?

    Args:
        run: A run folder, a weights file, or `zoo:NAME` (`mrn zoo`).
        episodes: Episodes to play.
        weights: `latest`, or `best`.
        engine: `envpool`, `gymnasium`, or `auto`.
        seed: Seed of the environments and of the triples.
        out: Where inspect.json and inspect.png go; by default the run's folder.
    """
    import mrn
    from mrn.agent import output_folder
    from mrn.studies.inspection import measure, report
    from mrn.utils.plotting import import_pyplot

    import_pyplot()  # before the work: it may not be installed
    agent = mrn.load(run, weights)
    moments = measure.collect_samples(agent, episodes, seed, engine, progress=True)
    found = measure.inspect(agent, moments, seed)
    console().print(report.table(found))
    for path in report.write(found, agent, moments, out or output_folder(run)):
        print(path)
