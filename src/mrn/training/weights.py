"""Lookup of the weights that a user names: a run folder, a file, or a policy of the zoo."""

from pathlib import Path

from mrn.config import Config
from mrn.envs import EXTRA_TASKS, TASKS, TaskSpec
from mrn.runs.layout import CONFIG, WEIGHTS, run_file, weights_file
from mrn.runs.policy_file import read_policy
from mrn.runs.provenance import read_run_info
from mrn.runs.run_dir import check_settings, check_task
from mrn.utils.errors import UserError, lookup
from mrn.utils.files import as_path
from mrn.utils.validation import from_dict
from mrn.zoo import PREFIX, entries, find_entry


def find_weights(run: str | Path, weights: str = "latest") -> Path:
    """Return the weights file of a run folder or of `zoo:NAME`, or the given file itself.

    Raises:
        UserError: There is no such file, it belongs to another run than its folder, or `weights`
            is unknown.
    """
    entry = find_entry(run)
    path = entry or as_path("run", run)
    lookup("weights", weights, dict.fromkeys(WEIGHTS))
    if path.is_dir():
        name = weights_file(path, weights).name
        path = path / name if entry else run_file(path, name)
        if not path.exists():
            reason = "it is not a run folder, or no epoch is finished yet"
            if entry:
                reason = "zoo policies have only their latest weights"
            raise UserError(f"{run} has no {path.name}: {reason}")
        _check_owner(path)
    elif not path.exists():
        raise UserError(f"no run folder or weights file {run}{_hint(str(run))}")
    elif weights != WEIGHTS[0]:
        raise UserError(f"{run} is a weights file; pass its run folder to choose {weights!r}")
    return path


def _check_owner(file: Path) -> None:
    """Check that weights have the settings of the run folder that contains them.

    Raises:
        UserError: They belong to another run, for example to another seed.
    """
    if not (file.parent / CONFIG).exists():
        return
    info, (about, _) = read_run_info(file.parent), read_policy(file)
    remedy = f"These weights are of another run; remove {file}"
    config = Config.from_json(about.get("config"), str(file))
    check_settings(info.config, config, str(file.parent), remedy)
    check_task(info.task, from_dict(TaskSpec, about.get("task"), str(file)), str(file.parent))


def _hint(name: str) -> str:
    """Return what a task's name may stand for; a policy has another name than its task."""
    if name in entries():
        return f"; {PREFIX}{name} is a pretrained policy for this task"
    is_task = name in TASKS or name in EXTRA_TASKS
    return f"; it is a task: train a policy first, with `mrn train {name}`" if is_task else ""


def output_folder(run: str | Path) -> Path:
    """Return where to write files about a run: its folder, or the current one for the zoo."""
    path = Path(run)
    return path if path.is_dir() else path.parent


def run_folder(run: str | Path) -> Path | None:
    """Return the run folder that a user named, or None for a weights file or the zoo."""
    return Path(run) if find_entry(run) is None and Path(run).is_dir() else None
