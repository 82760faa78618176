"""Output of `mrn toy`: figures, CSV files and tables."""

import csv
import io
import signal
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mrn.studies.toy.figure import asymmetric_share, draw_parts, draw_study
from mrn.studies.toy.models import MODELS
from mrn.studies.toy.study import (
    SENSITIVITY_ETAS,
    SENSITIVITY_MODELS,
    Fit,
    constant_error,
    sensitivity,
    study,
)
from mrn.utils.device import default_threads
from mrn.utils.errors import Interrupted
from mrn.utils.files import make_writable_folder, write_atomically
from mrn.utils.plotting import import_pyplot
from mrn.utils.tables import Table, require_sections, write_sections

Row = dict[str, str]


def run(folder: Path, with_sensitivity: bool = False, page: Path | None = None) -> list[Table]:
    """Run the study, write figures and CSV files, and return the tables.

    Args:
        folder: Output folder; created if missing.
        with_sensitivity: Also vary the settings to see when MRN beats the monolithic network.
        page: Markdown page whose marked sections are replaced by the tables.

    Raises:
        UserError: The folder cannot be created, or a section of the page is missing.
        Interrupted: Ctrl-C stopped the study; all worker processes have exited.
    """
    try:
        return _run(folder, with_sensitivity, page)
    except KeyboardInterrupt:
        message = f"{signal.SIGINT.name}: the study was not finished; restart it with `mrn toy`"
        raise Interrupted(signal.SIGINT, message) from None


def _run(folder: Path, with_sensitivity: bool, page: Path | None) -> list[Table]:
    import_pyplot()  # fail before the training if Matplotlib is missing
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
        variations = sensitivity(workers)
        rows = (
            {"change": label} | row for label, group in variations.items() for row in _best(group)
        )
        _write_csv(folder / "sensitivity.csv", rows)
        tables["sensitivity"] = sensitivity_table(folder)
    if page:
        write_sections(page, tables)
    return list(tables.values())


def best_table(folder: Path) -> Table:
    """Return the best errors by network and eta, with mean and standard error over seeds."""
    rows = _read_csv(folder / "best.csv")
    etas = list(dict.fromkeys(row["eta"] for row in rows))
    titles = {name: model.title for name, model in MODELS.items()}
    titles["constant"] = "best constant"
    body = [
        (title, *(_mean_and_error(_errors(rows, model=name, eta=eta)) for eta in etas))
        for name, title in titles.items()
    ]
    return ("best error", *(f"eta = {eta}" for eta in etas)), body


def sensitivity_table(folder: Path) -> Table:
    """Return the best errors of two networks by changed setting, as means over seeds."""
    rows = _read_csv(folder / "sensitivity.csv")
    columns = [(eta, name) for eta in map(str, SENSITIVITY_ETAS) for name in SENSITIVITY_MODELS]
    body = [
        (
            change,
            *(_mean(_errors(rows, change=change, eta=eta, model=name)) for eta, name in columns),
        )
        for change in dict.fromkeys(row["change"] for row in rows)
    ]
    return (
        "changed setting",
        *(f"{MODELS[name].title}, eta = {eta}" for eta, name in columns),
    ), body


def _errors(rows: list[Row], **where: str) -> list[float]:
    """Return the errors of all seeds in the matching rows."""
    return [float(row["error"]) for row in rows if all(row[key] == where[key] for key in where)]


def _mean(errors: list[float]) -> str:
    return f"{np.mean(errors):.4f}"


def _mean_and_error(errors: list[float]) -> str:
    return f"{_mean(errors)} ± {np.std(errors, ddof=1) / len(errors) ** 0.5:.4f}"


def _best(fits: Iterable[Fit]) -> Iterable[Row]:
    """Yield a row per network: its lowest error and the iteration."""
    for fit in fits:
        for (i, j), error in np.ndenumerate(fit.best):
            yield _row(fit, i, j) | _format_error(int(fit.best_iteration[i, j]), error)


def _constants(fit: Fit) -> Iterable[Row]:
    """Yield a row per eta and seed: the error of the best constant."""
    for i, j in np.ndindex(fit.best.shape):
        error = constant_error(fit.settings, fit.settings.etas[i], fit.settings.seeds[j])
        yield _row(fit, i, j) | {"model": "constant", "parameters": "1"} | _format_error("", error)


def _curves(fits: Iterable[Fit]) -> Iterable[Row]:
    """Yield a row per network and measurement."""
    for fit in fits:
        for (time, i, j), error in np.ndenumerate(fit.errors):
            yield _row(fit, i, j) | _format_error(fit.iterations[time], error)


def _shares(fit: Fit) -> Iterable[Row]:
    """Yield a row per network: the share of its asymmetric part."""
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


def _format_error(iteration: int | str, error: float) -> Row:
    return {"iteration": str(iteration), "error": f"{error:.6g}"}


def _write_csv(path: Path, rows: Iterable[Row]) -> None:
    rows = list(rows)
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_atomically(path, text.getvalue().encode())


def _read_csv(path: Path) -> list[Row]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
