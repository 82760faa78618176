"""Wheel and sdist, installed into an empty environment with the core's dependencies alone."""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CORE = ("torch", "numpy", "safetensors")


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([str(each) for each in command], cwd=cwd, capture_output=True, text=True)


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """Build both files from a copy of the source; return their paths by suffix."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignore)
    code = f"from setuptools.build_meta import *; build_sdist({str(out)!r})"
    done = run(sys.executable, "-c", f"{code}; build_wheel({str(out)!r})", cwd=source)
    assert done.returncode == 0, done.stderr
    return {file.suffix: file for file in out.iterdir()}


def link_distribution(name: str, folder: Path) -> None:
    """Link an installed distribution and what it requires into another environment."""
    try:
        files = metadata.files(name) or []
    except metadata.PackageNotFoundError:  # for another platform or Python version
        return
    tops = {file.parts[0] for file in files} - {"..", "__pycache__"}
    if all((folder / top).exists() for top in tops):
        return
    for top in tops:
        if not (folder / top).exists():
            (folder / top).symlink_to(metadata.distribution(name).locate_file(top))
    for requirement in metadata.requires(name) or []:
        if "extra ==" not in requirement:
            link_distribution(name_of(requirement), folder)


@pytest.fixture(scope="module")
def core(built, tmp_path_factory) -> Path:
    """Return an environment with the wheel and its dependencies, without any extra."""
    folder = tmp_path_factory.mktemp("core")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in CORE:
        link_distribution(name, site)
    python = folder / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index")
    done = run(*pip, built[".whl"], cwd=folder)  # fails if the wheel needs anything else
    assert done.returncode == 0, done.stderr
    return folder


def test_core_alone_trains_a_critic_in_a_plain_torch_loop(core):
    program = """
import torch, mrn
torch.manual_seed(0)
critic = mrn.make_critic("mrn", state_dim=2, action_dim=1, goal_dim=2, hidden_dim=32)
optimizer = torch.optim.Adam(critic.parameters(), 1e-2)
for step in range(150):
    state, action, goal = torch.rand(64, 2), torch.zeros(64, 1), torch.rand(64, 2)
    loss = (critic(state, action, goal) + (state - goal).norm(dim=1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    first = loss.item() if step == 0 else first
assert loss.item() < first / 10, (first, loss.item())

from mrn.algorithms import ALGORITHMS, DDPG
from mrn.algorithms.losses import bellman_target
algorithm = DDPG(mrn.critics.Dims(2, 1, 2), lambda: critic, DDPG.Settings(hidden_dim=32))
assert algorithm.act(state, goal).shape == (64, 1)
for name in ("train", "load", "Agent", "Config"):
    try:
        getattr(mrn, name)
    except mrn.UserError as error:
        print(error)
"""
    done = run(core / "bin" / "python", "-c", program, cwd=core)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 4
    assert set(re.sub(r"^\w+", "X", done.stdout, flags=re.M).splitlines()) == {
        "X is missing: pip install 'mrn-rl[train]'"
    }


def test_command_without_the_extra_shows_how_to_install_it(core):
    done = run(core / "bin" / "mrn", "train", "FetchReach", cwd=core)
    assert done.returncode == 2
    assert re.fullmatch(r"error: \w+ is missing: pip install 'mrn-rl\[train\]'\n", done.stderr)


def test_core_requires_only_torch_numpy_and_safetensors():
    assert {name_of(each) for each in PROJECT["dependencies"]} == set(CORE)


def test_dev_includes_every_extra():
    extras = PROJECT["optional-dependencies"]
    own = next(each for each in extras["dev"] if each.startswith("mrn-rl["))
    assert set(own[len("mrn-rl[") : -1].split(",")) == set(extras) - {"dev", "bench"}
