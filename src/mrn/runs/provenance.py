"""config.json: settings, number of processes, package versions and machine of a run."""

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
from mrn.distributed import command_here
from mrn.envs.tasks import passes_arguments
from mrn.runs.layout import CONFIG, run_file
from mrn.utils.device import describe_machine, visible_gpus
from mrn.utils.errors import UserError
from mrn.utils.files import parse_json, read_error, read_limited
from mrn.utils.plugins import TRUST_FLAG, is_custom
from mrn.version import __version__

MACHINE_ENTRIES = ("cpu", "engine", "device", "threads", "precision")
"""Properties of the machine and of its use that affect results, if only by rounding."""
_PACKAGES = ("torch", "numpy", "envpool", "gymnasium", "gymnasium-robotics", "mujoco")


def read_config(path: Path, trust_code: bool | None = None) -> Config:
    """Return the settings of the run in a folder; `trust_code` as in `Config.from_json`.

    Raises:
        UserError: It is not a run folder, or its config.json is damaged.
    """
    return read_run_info(path, trust_code).config


class RunInfo(NamedTuple):
    """Content of config.json."""

    config: Config
    versions: dict[str, str]
    """Versions of Python and of the packages that affect results, and the commit if known."""
    earlier_versions: list[dict[str, str]]
    """Versions and processors of earlier parts of the run, if any of them differ."""
    machine: dict[str, str]
    processes: int = 1
    """Number of processes that train the run."""
    task: Mapping[str, Any] = MappingProxyType({})
    """Specification of the task when the run started."""


def read_run_info(path: Path, trust_code: bool | None = None) -> RunInfo:
    """Return the content of a run's config.json; `trust_code` as in `Config.from_json`.

    Raises:
        UserError: It is not a run folder, or its config.json is damaged.
    """
    file = run_file(path, CONFIG)
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path} is not a run folder: it has no {CONFIG}") from None
    except OSError as error:
        raise read_error(file, error) from None
    return read_run_info_file(file, trust_code)


def read_run_info_file(file: Path, trust_code: bool | None = None) -> RunInfo:
    """Return the content of a config.json anywhere; `trust_code` as in `Config.from_json`.

    Raises:
        UserError: The file is missing or damaged.
    """
    about = parse_json(read_limited(file), str(file))
    if not isinstance(about, dict):
        raise UserError(f"{file} is damaged: it does not contain the settings of a run")
    earlier = about.get("earlier_versions")
    return RunInfo(
        Config.from_json(about.get("config"), str(file), trust_code),
        _as_strings(about.get("versions")),
        [_as_strings(each) for each in earlier] if isinstance(earlier, list) else [],
        _as_strings(about.get("machine")),
        count if type(count := about.get("processes")) is int and count > 0 else 1,
        task if isinstance(task := about.get("task"), dict) else {},
    )


def _as_strings(table: Any) -> dict[str, str]:
    """Convert an untrusted table to strings."""
    table = table if isinstance(table, dict) else {}
    return {str(name): str(value) for name, value in table.items() if value is not None}


def with_original_machine(config: Config, path: Path) -> Config:
    """Fill unset `engine`, `threads`, `device` and `precision` with the run's original values.

    Another number of threads or type of device would change the order of floating-point sums. If
    the original GPU or EnvPool is gone, or bfloat16 instructions are missing, the run resumes
    without them.
    """
    original = read_run_info(path).machine if (path / CONFIG).exists() else {}
    threads = int(original["threads"]) if original.get("threads", "").isdecimal() else None
    # Until version 0.2, `auto` was a GPU if there was one.
    keep_gpu = config.device == "auto" and original.get("device") == "cuda" and visible_gpus()
    device = "cuda" if keep_gpu else config.device
    # EnvPool may have been installed since.
    keep_gymnasium = config.engine == "auto" and original.get("engine") == "gymnasium"
    engine = "gymnasium" if keep_gymnasium else config.engine
    settings: Any = config.algo_config
    if settings.precision == "auto" and "precision" in original:
        settings = replace(settings, precision=original["precision"])
    threads = config.threads or threads
    return replace(config, engine=engine, threads=threads, device=device, algo_config=settings)


def resume_command(path: Path, config: Config, processes: int = 1) -> str:
    """Return the shell command that resumes the run in a folder."""
    return f"{command_here(processes)} resume {run_arguments(path, config)}"


def run_arguments(path: Path, config: Config) -> str:
    """Return the run folder as argument of a command, with the consent that its code needs."""
    custom = any(map(is_custom, (config.task, config.critic, config.algo)))
    needs_consent = custom or passes_arguments(config.task, config.env_kwargs)
    return shlex.quote(str(path)) + (f" {TRUST_FLAG}" if needs_consent else "")


def check_processes(path: Path, processes: int) -> None:
    """Check the number of processes of a resumed run: each has its own replay buffer.

    Raises:
        UserError: The number differs; the message contains the correct command.
    """
    original = read_run_info(path).processes if (path / CONFIG).exists() else processes
    if original != processes:
        command = resume_command(path, read_config(path), original)
        raise UserError(
            f"{path} was trained by {original} {'process' if original == 1 else 'processes'}, not "
            f"{processes}; resume it with: {command}"
        )


def provenance(path: Path | None, machine: Mapping[str, str]) -> dict[str, Any]:
    """Return versions and machine, and those of earlier parts of the run if they differ.

    Args:
        path: The folder of a run to resume, or None for a new run.
        machine: `engine`, `threads`, `device` and `precision` of the run.
    """
    hardware, current, earlier = {**describe_machine(), **machine}, versions() | commit(), []
    if path and (path / CONFIG).exists():
        info = read_run_info(path)
        earlier = [dict(each) for each in info.earlier_versions]
        previous = info.versions | {k: v for k, v in info.machine.items() if k in MACHINE_ENTRIES}
        changed = [
            f"{name} was {old}, now {new}"
            for name, old in previous.items()
            if (new := (current | hardware).get(name, "unknown")) != old
        ]
        if changed:
            earlier.append(previous)
            warnings.warn(
                f"{path} was started in a different setup: {'; '.join(changed)}; its results may "
                "differ from those of an uninterrupted run",
                stacklevel=2,
            )
    return {
        "versions": current,
        "machine": hardware,
        **({"earlier_versions": earlier} if earlier else {}),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect results."""
    found = {"python": platform.python_version(), "mrn": __version__}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def commit(code: Path = Path(__file__).parents[1]) -> dict[str, str]:
    """Return the last commit of the code and whether it was edited, or nothing if unknown.

    An installed package may be inside an unrelated repository that does not track it.
    """
    if not _git(code, "ls-files", "--error-unmatch", "."):
        return {}
    found = _git(code, "log", "-1", "--format=%H", "--", ".")
    if not found:
        return {}
    edits = _git(code, "status", "-s", ".")
    return {"commit": found + (", perhaps edited" if edits is None else ", edited" * bool(edits))}


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a git command, or None if it fails or git is missing."""
    command = ["git", "--no-optional-locks", *arguments]  # never blocks a concurrent git
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        return subprocess.check_output(
            command, cwd=folder, env=env, stderr=subprocess.DEVNULL, encoding="utf-8", timeout=10
        ).strip()
    except (OSError, subprocess.SubprocessError):
        return None
