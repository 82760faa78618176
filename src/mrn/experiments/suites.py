"""Which runs belong together: the paper's experiments, and a user's own in a TOML file."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from mrn.checked import from_dict
from mrn.config import Config, flatten
from mrn.envs import TASKS
from mrn.errors import UserError, unknown
from mrn.experiments.suite import LISTS, Suite
from mrn.files import read_bounded

PAPER_CRITICS = ("mrn", "monolithic", "bvn", "dn", "wn", "pqe")
ABLATIONS = ("mrn", "mrn-sym", "mrn-asym", "mrn-sag")
FETCH = tuple(name for name in TASKS if name.startswith("Fetch"))

# Suites that differ in their choice of runs alone share a folder, and so the runs.
SUITES: Mapping[str, Suite] = {
    "paper-main": Suite(tuple(TASKS), PAPER_CRITICS, folder="paper"),
    "paper-ablation": Suite(tuple(TASKS), ABLATIONS, folder="paper"),
    "paper-ablation-lr": Suite(tuple(TASKS), ABLATIONS, settings={"learning_rate": 2e-3}),
    "fetch": Suite(FETCH, PAPER_CRITICS, folder="paper"),
    "quick": Suite(
        ("FetchReach",), ("mrn", "monolithic"), seeds=(100,), settings={"cycles": 4, "epochs": 5}
    ),
}


def find_suite(name: str) -> Suite:
    """The suite of that name, or in that TOML file.

    Raises:
        UserError: There is neither, or the file is not a suite.
    """
    if name in SUITES:
        suite, title = SUITES[name], name
    elif Path(name).suffix == ".toml":
        suite, title = _read(Path(name)), Path(name).stem
    else:
        raise UserError(f"{unknown('suite', name, list(SUITES))} Or the name of a .toml file.")
    return replace(suite, folder=suite.folder or title)


def _read(path: Path) -> Suite:
    try:
        data = tomllib.loads(read_bounded(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not TOML: {error}") from None
    try:
        _check_top(data)
        suite: Suite = from_dict(Suite, data, str(path))
        suite.configs()
    except UserError as error:
        where = f"{path}: "
        raise UserError(where + str(error).removeprefix(where)) from None
    return suite


def _check_top(data: dict[str, Any]) -> None:
    """Say what to do about the likely mistakes above the tables.

    Raises:
        UserError: One of them was made.
    """
    for name, many in LISTS.items():
        if name in data and not isinstance(data[name], dict):
            raise UserError(f"{name} must be a list named {many!r}: {many} = [...]")
    strange = sorted(set(data) - {item.name for item in fields(Suite)})
    settings = set(flatten(Config("any task").to_dict())) - set(LISTS)
    if strange and strange[0] in settings:
        raise UserError(f"{strange[0]} is a setting of the runs: put it under [settings]")
    if not strange and "tasks" not in data:
        raise UserError('tasks is missing, for example tasks = ["FetchPush"]; mrn tasks lists them')
