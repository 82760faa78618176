"""`mrn toy`: the study, its pictures, its numbers as CSV, and its tables for a page."""

import csv
import io
import signal
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mrn.studies.toy.figure import asymmetric_share, draw_parts, draw_study
from mrn.studies.toy.models import MODELS
from mrn.studies.toy.study import CHANGED, CHANGED_ETAS, Fit, constant_error, sensitivity, study
from mrn.utils.device import default_threads
from mrn.utils.errors import Interrupted
from mrn.utils.files import make_writable_folder, write_atomically
from mrn.utils.plotting import import_pyplot
from mrn.utils.tables import Table, require_sections, write_sections

Row = dict[str, str]


def run(folder: Path, with_sensitivity: bool = False, page: Path | None = None) -> list[Table]:
    """Run the study, write pictures and CSV files into the folder, and return the tables.

    Args:
        folder: Made if missing.
        with_sensitivity: Also measure what decides between MRN and the monolithic network.
        page: A Markdown page whose marked sections are replaced by the tables.

    Raises:
        UserError: The folder cannot be made, or the page has no place for the tables.
        Interrupted: Ctrl-C ended it; all its processes have ended.
    """
    try:
        return _run(folder, with_sensitivity, page)
    except KeyboardInterrupt:
        message = f"{signal.SIGINT.name}: the study was not finished; start it again with mrn toy"
        raise Interrupted(signal.SIGINT, message) from None


def _run(folder: Path, with_sensitivity: bool, page: Path | None) -> list[Table]:
    import_pyplot()  # if it is missing, say so before minutes of training, not after
    if page:
        require_sections(page, ["best", "sensitivity"] if with_sensitivity else ["best"])
    make_writable_folder(folder)
    workers = default_threads()
    fits = study(workers)
    _write_csv(folder / "curves.csv", _curves(fits))
    _write_csv(folder / "best.csv", [*_best(fits), *_constants(fits[0])])
    _write_csv(folder / "shares.csv", _shares(fits[0]))
    draw_study(fits, folder / "toy")
    draw_parts(fits[0], folder / "parts")
    tables = {"best": best_table(folder)}
    if with_sensitivity:
        changed = sensitivity(workers)
        rows = ({"change": what} | row for what, some in changed.items() for row in _best(some))
        _write_csv(folder / "sensitivity.csv", rows)
        tables["sensitivity"] = sensitivity_table(folder)
    if page:
        write_sections(page, tables)
    return list(tables.values())


def best_table(folder: Path) -> Table:
    """Best errors by kind of network and eta, mean and standard error over seeds."""
    rows = _read_csv(folder / "best.csv")
    etas = list(dict.fromkeys(row["eta"] for row in rows))
    titles = {name: model.title for name, model in MODELS.items()}
    titles["constant"] = "the best constant"
    body = [
        (title, *(_mean_and_error(_errors(rows, model=name, eta=eta)) for eta in etas))
        for name, title in titles.items()
    ]
    return ("best error", *(f"eta = {eta}" for eta in etas)), body


def sensitivity_table(folder: Path) -> Table:
    """Means over seeds of the best errors of two networks, by what was changed."""
    rows = _read_csv(folder / "sensitivity.csv")
    columns = [(eta, name) for eta in map(str, CHANGED_ETAS) for name in CHANGED]
    body = [
        (
            change,
            *(_mean(_errors(rows, change=change, eta=eta, model=name)) for eta, name in columns),
        )
        for change in dict.fromkeys(row["change"] for row in rows)
    ]
    return ("changed", *(f"{MODELS[name].title}, eta = {eta}" for eta, name in columns)), body


def _errors(rows: list[Row], **where: str) -> list[float]:
    """Over seeds."""
    return [float(row["error"]) for row in rows if all(row[key] == where[key] for key in where)]


def _mean(errors: list[float]) -> str:
    return f"{np.mean(errors):.4f}"


def _mean_and_error(errors: list[float]) -> str:
    return f"{_mean(errors)} ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.4f}"


def _best(fits: Iterable[Fit]) -> Iterable[Row]:
    """A row per network: its lowest error, and when."""
    for fit in fits:
        for (i, j), error in np.ndenumerate(fit.best):
            yield _row(fit, i, j) | _measured(int(fit.best_iteration[i, j]), error)


def _constants(fit: Fit) -> Iterable[Row]:
    """A row per problem: the error of the best constant."""
    for i, j in np.ndindex(fit.best.shape):
        error = constant_error(fit.settings, fit.settings.etas[i], fit.settings.seeds[j])
        yield _row(fit, i, j) | {"model": "constant", "parameters": "1"} | _measured("", error)


def _curves(fits: Iterable[Fit]) -> Iterable[Row]:
    """A row per network and measurement."""
    for fit in fits:
        for (time, i, j), error in np.ndenumerate(fit.errors):
            yield _row(fit, i, j) | _measured(fit.iterations[time], error)


def _shares(fit: Fit) -> Iterable[Row]:
    """A row per network: the share of its asymmetric part."""
    for i, j in np.ndindex(fit.best.shape):
        share = asymmetric_share(fit, fit.settings.etas[i], fit.settings.seeds[j])
        yield _row(fit, i, j) | {"asymmetric_share": f"{share:.4f}"}


def _row(fit: Fit, eta: int, seed: int) -> Row:
    return {
        "model": fit.name,
        "parameters": str(fit.parameters),
        "eta": str(fit.settings.etas[eta]),
        "seed": str(fit.settings.seeds[seed]),
    }


def _measured(iteration: int | str, error: float) -> Row:
    return {"iteration": str(iteration), "error": f"{error:.6g}"}


def _write_csv(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _read_csv(path: Path) -> list[Row]:
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
