"""Files that name a module: no command imports it without consent."""

import itertools
import json
import sys
from pathlib import Path

import pytest

import mrn
from mrn.runs.policy_file import read_policy, write_policy
from tests.reliability.hostile.cases import SEED, numbered, shuffled
from tests.reliability.hostile.forgeries import seal
from tests.reliability.hostile.readers import READERS, RUN
from tests.reliability.hostile.sandbox import OUT, SITE, VICTIM, WORK

FIELDS = {"task": "canary:Env-v0", "critic": "canary:critic", "algo": "canary:Algorithm"}
PLACES = (WORK, SITE)
"""Folders from which Python would import the module: the current one, and one on the path."""
FILE = f"{RUN}/latest.safetensors"
COMMANDS = {
    **{name: (reader.words, reader.writes) for name, reader in READERS.items()},
    "eval file": (("eval", FILE, "--episodes=1"), OUT),
    "inspect file": (("inspect", FILE, "--episodes=2", f"--out=../{OUT}"), OUT),
    "export file": (("export", FILE, f"../{OUT}/policy.onnx"), OUT),
    "video file": (("video", FILE, f"../{OUT}/video.mp4"), OUT),
    "train": (("train", f"--config={RUN}/config.json", f"--run-dir=../{OUT}/run"), OUT),
}
NEVER = ("report", "figures", "sweep")
"""Commands that import no module that a run folder names, and have no option for it."""


def name_module(about: dict, field: str) -> dict:
    """Return the content of a file, with the module in its settings."""
    about["config"][field] = FIELDS[field]
    if field == "task" and "task" in about:
        about["task"]["env_id"] = FIELDS[field]
    return about


def plant(root: Path, field: str, place: str) -> Path:
    """Name the module in all files of a run; return the file that an import writes."""
    for file in (root / VICTIM).rglob("*.json"):
        if "config" in (about := json.loads(file.read_text())):
            file.write_text(json.dumps(name_module(about, field)))
    for checkpoint in (root / VICTIM).glob("checkpoints/0*"):
        seal(checkpoint)
    for file in (root / VICTIM).glob("*.safetensors"):
        about, tensors = read_policy(file)
        write_policy(file, name_module(about, field), tensors)
    module = root / place / "canary.py"
    module.write_text("from pathlib import Path\nPath(__file__).with_name('imported').touch()\n")
    return module.with_name("imported")


@numbered(shuffled(list(itertools.product(COMMANDS, FIELDS, PLACES))), short=12)
def test_command_imports_only_with_consent(case, rng, make_sandbox, tally):
    name, field, place = case
    sandbox, (words, writes) = make_sandbox(), COMMANDS[name]
    imported = plant(sandbox.root, field, place)
    done = sandbox.run(*words, writes=(writes,))  # fails if the module writes its file
    assert not imported.exists()
    if name not in NEVER:
        assert done.returncode == 2
        assert "'canary'" in done.stderr
        assert "--trust-code" in done.stderr
        sandbox.run(*words, "--trust-code", writes=(writes, place))
        assert imported.exists() or (name.startswith("export") and field == "task")  # no need
    tally(f"commands on files that name a module, none imported it, seed {SEED}", name)


@numbered(shuffled(list(itertools.product(FIELDS, PLACES, ("folder", "file")))), short=4)
def test_load_imports_only_with_consent(case, rng, make_sandbox, monkeypatch, tally):
    field, place, given = case
    sandbox = make_sandbox()
    imported = plant(sandbox.root, field, place)
    monkeypatch.chdir(sandbox.root / WORK)
    monkeypatch.syspath_prepend(sandbox.root / SITE)
    policy = sandbox.victim if given == "folder" else sandbox.victim / "latest.safetensors"
    with pytest.raises(mrn.UserError, match="canary.*trust_code=True"):
        mrn.load(policy)
    assert not imported.exists()
    try:
        mrn.load(policy, trust_code=True).task  # noqa: B018 - creates the environment
    except mrn.UserError:  # the module has no such object
        pass
    finally:
        sys.modules.pop("canary", None)
    assert imported.exists()
    tally(f"mrn.load of files that name a module, none imported it, seed {SEED}", given)
