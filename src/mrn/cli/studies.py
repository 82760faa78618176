"""Commands for analysis: `mrn toy`, `mrn theory` and `mrn inspect`."""

from pathlib import Path
from typing import Annotated

import tyro

from mrn.utils.console import console
from mrn.utils.tables import print_table
from mrn.utils.terminal import show


def toy(
    out: Annotated[Path, tyro.conf.arg(aliases=("-o",))] = Path("toy"),
    sensitivity: bool = False,
    write_docs: Path | None = None,
) -> None:
    """Run the paper's toy example: learn shortest paths in a square from 20 pairs of points.

    Args:
        out: Output folder for figures (PDF, PNG) and data (CSV).
        sensitivity: Also vary the setup to see when MRN beats the monolithic network.
        write_docs: Markdown page whose marked sections are replaced by the tables.
    """
    from mrn.studies.toy.report import run

    for table in run(out, sensitivity, write_docs):
        print_table(table)
    show(f"Figures and data are in {out}.")


def theory(write_docs: Path | None = None) -> None:
    """Check the paper's theory on small MDPs with exact optimal values.

    Args:
        write_docs: Markdown page whose marked sections are replaced by the tables.
    """
    from mrn.studies.theory.report import run

    run(write_docs, show, print_table)


def inspect(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    episodes: int = 100,
    weights: str = "latest",
    engine: str = "auto",
    seed: int = 0,
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None,
    force: bool = False,
    trust_code: bool = False,
) -> None:
    """Inspect a trained critic: is -Q a quasimetric, and does it match the steps to the goal?

    Args:
        run: Run folder, weights file, or `zoo:NAME` (see `mrn zoo`).
        episodes: Number of episodes.
        weights: `latest`, or `best` for the epoch with the highest success rate.
        engine: Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool if it has the task).
        seed: Seed of the environments and of the sampled triples.
        out: Output folder for inspect.json and inspect.png. Defaults to the run folder, or to the
            current folder for the zoo.
        force: Overwrite existing files.
        trust_code: Import the custom modules that the run names.
    """
    import mrn
    from mrn.studies.inspection import measure, report
    from mrn.training.weights import output_folder
    from mrn.utils.plotting import import_pyplot

    import_pyplot()  # fail before the rollouts if Matplotlib is missing
    folder = out or output_folder(run)
    report.prepare(folder, force)
    agent = mrn.load(run, weights, trust_code=trust_code)
    moments = measure.collect_samples(agent, episodes, seed, engine, progress=True)
    found = measure.inspect(agent, moments, seed)
    console().print(report.table(found))
    for path in report.write(found, agent, moments, folder):
        show(path)
