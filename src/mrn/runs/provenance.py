"""What config.json says of a run: its settings, its processes, and where it was trained."""

import os
import platform
import shlex
import subprocess
import warnings
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from mrn.config import Config
from mrn.distributed import launch_command
from mrn.runs.layout import CONFIG
from mrn.utils.device import describe_machine
from mrn.utils.errors import UserError
from mrn.utils.files import parse_json, read_limited

ROUNDING = ("cpu", "device", "threads")
"""What of a machine decides how sums are rounded."""
_PACKAGES = ("mrn", "torch", "numpy", "envpool", "gymnasium", "gymnasium-robotics", "mujoco")


def read_config(path: Path) -> Config:
    """The settings of the run in a folder.

    Raises:
        UserError: It is no run folder, or its config.json is damaged.
    """
    return read_run_info(path).config


class RunInfo(NamedTuple):
    """What config.json says of a run."""

    config: Config
    versions: dict[str, str]
    """Of Python and the packages that decide a result, and the commit of mrn where there is one."""
    earlier_versions: list[dict[str, str]]
    """Of earlier parts of the run, with their processors, where any of these was another."""
    machine: dict[str, str]
    processes: int = 1
    """How many trained it together."""
    task: Mapping[str, Any] = MappingProxyType({})
    """The shape of the task, as the environment was when it was begun."""


def read_run_info(path: Path, imports: bool = True) -> RunInfo:
    """All that is known of the run in a folder; `imports` as in `Config.from_json`.

    Raises:
        UserError: It is no run folder, or its config.json is damaged.
    """
    file = path / CONFIG
    if not file.exists():
        raise UserError(f"{path} is no run folder: it has no {CONFIG}")
    return read_run_info_file(file, imports)


def read_run_info_file(file: Path, imports: bool = True) -> RunInfo:
    """All that a config.json says, wherever it lies; `imports` as in `Config.from_json`.

    Raises:
        UserError: It is missing or damaged.
    """
    about = parse_json(read_limited(file), str(file))
    if not isinstance(about, dict):
        raise UserError(f"{file} is damaged: it is not the settings of a run")
    earlier = about.get("earlier_versions")
    return RunInfo(
        Config.from_json(about.get("config"), str(file), imports),
        _texts(about.get("versions")),
        [_texts(each) for each in earlier] if isinstance(earlier, list) else [],
        _texts(about.get("machine")),
        count if type(count := about.get("processes")) is int and count > 0 else 1,
        task if isinstance(task := about.get("task"), dict) else {},
    )


def _texts(table: Any) -> dict[str, str]:
    """A table of texts, of unknown origin."""
    table = table if isinstance(table, dict) else {}
    return {str(name): str(value) for name, value in table.items() if value is not None}


def with_original_machine(config: Config, path: Path) -> Config:
    """What settings leave to the machine, as it was when the run in a folder was begun.

    Another number of threads, or a GPU that there was not, rounds sums in another order. A GPU that
    is no longer there is no reason not to go on.
    """
    begun = read_run_info(path).machine if (path / CONFIG).exists() else {}
    threads = int(begun["threads"]) if begun.get("threads", "").isdecimal() else None
    stays = config.device == "auto" and begun.get("device") == "cpu"
    device = "cpu" if stays else config.device
    return replace(config, threads=config.threads or threads, device=device)


def check_processes(path: Path, processes: int) -> None:
    """Refuse to go on with another number of processes: each has its part of the replay.

    Raises:
        UserError: Says the command that is right.
    """
    before = read_run_info(path).processes if (path / CONFIG).exists() else processes
    if before != processes:
        command = f"{launch_command(before)} resume {shlex.quote(str(path))}"
        raise UserError(
            f"{path} is a run of {before} {'process' if before == 1 else 'processes'}, not of "
            f"{processes}: to go on with it: {command}"
        )


def provenance(path: Path, place: Mapping[str, str]) -> dict[str, Any]:
    """Versions and machine, and those of earlier parts of the run where they differ.

    Args:
        path: The run's folder.
        place: Which part of the machine is used: `threads` and `device`.
    """
    here, now, earlier = {**describe_machine(), **place}, versions() | commit(), []
    if (path / CONFIG).exists():
        about = read_run_info(path)
        earlier = [dict(each) for each in about.earlier_versions]
        before = about.versions | {k: v for k, v in about.machine.items() if k in ROUNDING}
        changed = [
            f"{name} was {old}, now {new}"
            for name, old in before.items()
            if (new := (now | here).get(name, "unknown")) != old
        ]
        if changed:
            earlier.append(before)
            warnings.warn(
                f"{path} was begun elsewhere or otherwise: {'; '.join(changed)}; its "
                "numbers may differ from those of a run that was not interrupted",
                stacklevel=2,
            )
    return {"versions": now, "machine": here} | ({"earlier_versions": earlier} if earlier else {})


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit(code: Path = Path(__file__).parents[1]) -> dict[str, str]:
    """The last commit of the code, and whether it was edited since; nothing where none is known.

    An installed package may lie in a repository that is another's and does not track it. What
    counts is the code as it lies there when a run begins.
    """
    if not _git(code, "ls-files", "--error-unmatch", "."):
        return {}
    found = _git(code, "log", "-1", "--format=%H", "--", ".")
    if not found:
        return {}
    edits = _git(code, "status", "-s", ".")
    return {"commit": found + (", perhaps edited" if edits is None else ", edited" * bool(edits))}


def _git(folder: Path, *arguments: str) -> str | None:
    """What git says of the repository of a folder; None where it fails or is missing."""
    command = ["git", "--no-optional-locks", *arguments]  # so that it never stops another git
    here = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.check_output(
            command, cwd=folder, env=here, stderr=subprocess.DEVNULL, text=True, timeout=10
        ).strip()
    except (OSError, subprocess.SubprocessError):
        return None
