"""The published files, installed into an empty environment with the core's dependencies alone."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from itertools import chain
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import mrn

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = ("torch", "numpy", "safetensors")


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run([str(each) for each in command], cwd=cwd, capture_output=True, text=True)


def name_of(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    """Build the sdist from a copy of the source, and the wheel from it; return them by suffix."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for file in ROOT.glob("*.*"):
        if file.is_file():
            shutil.copy(file, source)
    shutil.copy(ROOT / "LICENSE", source)
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=ignore)

    def build(kind: str, folder: Path) -> Path:
        code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
        done = run(sys.executable, "-c", code, cwd=folder)
        assert done.returncode == 0, done.stderr
        return out / done.stdout.split()[-1]

    sdist = build("sdist", source)
    with tarfile.open(sdist) as archive:
        archive.extractall(out, filter="data")
    return {".gz": sdist, ".whl": build("wheel", out / sdist.name.removesuffix(".tar.gz"))}


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


def test_files_are_complete(built):
    with tarfile.open(built[".gz"]) as archive:
        source = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CITATION.cff", "constraints.txt", "pyproject.toml"} <= source
    assert not [name for name in source if name.startswith("tests")]
    with zipfile.ZipFile(built[".whl"]) as archive:
        names = set(archive.namelist())
    tracked = {file for file in (ROOT / "src" / "mrn").rglob("*") if file.is_file()}
    expected = {
        str(file.relative_to(ROOT / "src")) for file in tracked if "__pycache__" not in file.parts
    }
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"mrn/py.typed", "mrn/zoo/FetchPush/latest.safetensors"} <= expected


def test_metadata_of_the_wheel(core):
    (site,) = core.glob("lib/python*/site-packages")
    (about,) = metadata.distributions(name="mrn-rl", path=[str(site)])
    assert about.version == mrn.__version__
    fields = about.metadata
    assert fields["Requires-Python"] == ">=3.11"
    assert fields["License-Expression"] == "MIT"
    versions = {name.rsplit(" ", 1)[1] for name in fields.get_all("Classifier") if "3." in name}
    assert versions == {"3.11", "3.12", "3.13"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [{"name": fields["Author"]}] == citation["authors"]
    assert citation["preferred-citation"]["url"] in fields.get_all("Project-URL")[0]
    assert set(citation["keywords"]) <= set(fields["Keywords"].split(","))


def test_constraints_are_within_the_ranges():
    """`pip install -c constraints.txt` must find a solution, with exact physics."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {name_of(line): line.partition("==")[2] for line in lines if "==" in line}
    assert {"mujoco": "3.6.0", "envpool": "1.2.5", "gymnasium-robotics": "1.4.2"}.items() <= (
        pins.items()
    )
    requirements = [*PROJECT["dependencies"], *chain(*PROJECT["optional-dependencies"].values())]
    for requirement in map(Requirement, requirements):
        if name_of(requirement.name) != "mrn-rl":
            pin = pins.get(name_of(requirement.name))
            assert pin is None or pin in requirement.specifier, requirement
            assert pin or requirement.name == "setuptools"


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
