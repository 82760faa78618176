"""Tests of the pretrained policies and of their compressed files."""

import fnmatch
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import mrn
from mrn import zoo
from mrn.runs.metrics import read_metrics
from mrn.runs.policy_file import compress_policy, expand_policy
from mrn.runs.provenance import read_config
from mrn.utils.tables import markdown_table
from tests.commands import mrn as command
from tests.training.helpers import same_weights, tiny_run

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module", params=["ddpg", "td3", "sac", "gcsl"])
def trained(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / request.param
    return folder, tiny_run(folder, algo=request.param)


def test_small_file_rounds_the_networks_and_rebuilds_the_targets(trained, tmp_path):
    folder, agent = trained
    small = tmp_path / "small.safetensors"
    agent.save(small, small=True)
    whole = folder / "latest.safetensors"
    assert small.stat().st_size < 0.75 * whole.stat().st_size  # headers matter at this size
    loaded, before = mrn.load(small), agent.state_dict()
    for name, value in loaded.state_dict().items():
        network = name.replace("_target.", ".")
        is_rounded = name.startswith("algorithm.") and value.dtype == torch.float32
        assert torch.equal(value, before[network].half().float() if is_rounded else before[name])
    assert (loaded.config, loaded.spec) == (agent.config, agent.spec)
    again = tmp_path / "again.safetensors"
    loaded.save(again, small=True)
    assert again.read_bytes() == small.read_bytes()  # rounding is idempotent
    assert same_weights(mrn.load(again), loaded)


def test_small_file_acts_like_the_full_one_up_to_rounding(trained, tmp_path):
    _, agent = trained
    agent.save(tmp_path / "small.safetensors", small=True)
    observation = {
        "observation": np.random.default_rng(0).normal(size=(50, 10)),
        "desired_goal": np.random.default_rng(1).normal(size=(50, 3)),
    }
    small, _ = mrn.load(tmp_path / "small.safetensors").predict(observation)
    whole, _ = agent.predict(observation)
    assert np.abs(small - whole).max() < 0.01


def test_small_file_keeps_values_beyond_half_precision(tmp_path):
    """The advantage window of WGCSL has placeholders of the size of the largest float32."""
    agent = tiny_run(tmp_path / "run", algo="wgcsl", epochs=1)
    agent.save(tmp_path / "small.safetensors", small=True)
    loaded = mrn.load(tmp_path / "small.safetensors")
    assert all(torch.isfinite(value).all() for value in loaded.state_dict().values())
    assert torch.equal(loaded.algorithm.advantages, agent.algorithm.advantages)
    weight = next(agent.algorithm.actor.parameters())
    assert torch.equal(next(loaded.algorithm.actor.parameters()), weight.half().float())


def test_compression_and_expansion_by_hand():
    state = {
        "algorithm.actor.w": torch.tensor([1.0, 0.1]),
        "algorithm.actor_target.w": torch.tensor([5.0, 5.0]),
        "algorithm.orphan_target.w": torch.tensor([2.0]),  # no matching network: kept
        "normalizer.mean": torch.tensor([1 / 3], dtype=torch.float64),  # not a weight: unchanged
        "normalizer.shift": torch.tensor([1 / 3]),
    }
    small = compress_policy(state)
    assert small.keys() == state.keys() - {"algorithm.actor_target.w"}
    assert small["algorithm.actor.w"].dtype == torch.float16
    expanded = expand_policy(small, state)
    assert expanded.keys() == state.keys()
    assert torch.equal(expanded["algorithm.actor_target.w"], torch.tensor([1.0, 0.0999755859375]))
    assert torch.equal(expanded["algorithm.orphan_target.w"], state["algorithm.orphan_target.w"])
    assert torch.equal(expanded["normalizer.mean"], state["normalizer.mean"])
    assert torch.equal(expanded["normalizer.shift"], state["normalizer.shift"])


def test_unknown_policy_lists_the_available_ones():
    with pytest.raises(mrn.UserError, match=r"'FetchPusch'\. Did you mean 'FetchPush'"):
        mrn.load("zoo:FetchPusch")
    with pytest.raises(mrn.UserError, match="zoo policies have only their latest weights"):
        mrn.load("zoo:FetchPush", weights="best")
    done = command("eval", "zoo:nothing")
    assert done.returncode == 2
    assert all(name in done.stderr for name in zoo.entries())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", zoo.entries())
def test_policy_matches_its_card(name):
    folder, card = zoo.FOLDER / name, zoo.entries()[name]
    agent = mrn.load(f"zoo:{name}")
    assert (agent.config.task, agent.config.method) == (card["task"], card["method"])
    assert (agent.config.seed, name) == (card["seed"], card["task"])
    rows = read_metrics(folder / "metrics.csv")
    assert card["env_steps"] == rows[-1]["env_steps"] == card["episodes"] * agent.spec.horizon
    assert read_config(folder) == agent.config
    size = sum(file.stat().st_size for file in folder.iterdir())
    assert size < 900_000
    for engine, result in card["engines"].items():
        assert (result["engine"], result["episodes"]) == (engine, 500)
        assert result["low"] < result["success"] <= result["high"]


def test_policy_reaches_its_goals():
    """At the card's 99%, fewer than 18 of 20 successes have a probability below 1e-3."""
    assert mrn.load("zoo:FetchReach").evaluate(20, seed=5).success >= 0.9


def test_commands_accept_a_zoo_policy(tmp_path):
    done = command("eval", "zoo:FetchReach", "--episodes", "4", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["task"] == "FetchReach"
    listed = command("zoo")
    assert all(name in listed.stdout for name in zoo.entries())
    assert not list(tmp_path.iterdir())


def test_docs_page_shows_the_cards_and_animations():
    page = (ROOT / "docs" / "zoo.md").read_text()
    assert markdown_table(zoo.table()) in page
    for name, card in zoo.entries().items():
        assert card["command"] in page
        assert (ROOT / "docs" / "zoo" / f"{name}.gif").stat().st_size < 2_000_000


def test_package_data_includes_every_zoo_file():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = settings["package-data"]["mrn"]
    source = ROOT / "src" / "mrn"
    files = [f for f in zoo.FOLDER.rglob("*") if f.is_file() and f.suffix not in (".py", ".pyc")]
    assert len(files) == 4 * len(zoo.entries())
    for file in files:
        assert any(fnmatch.fnmatch(str(file.relative_to(source)), p) for p in patterns)


@pytest.mark.parametrize("name", zoo.entries())
def test_normalizer_of_a_policy_is_not_rounded(name):
    """The shift and scale of its normalizer are computed from unrounded statistics."""
    for norm in mrn.load(f"zoo:{name}").normalizer.children():
        variance = (norm.squares / norm.count).clamp(min=0.01**2)
        assert torch.equal(norm.shift, norm.mean.float())
        torch.testing.assert_close(norm.scale, variance.rsqrt().float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("page", ["README.md", "results/shadow-hand/README.md"])
def test_pages_quote_the_new_episodes_of_the_block_policy(page):
    text = (ROOT / page).read_text()
    card = json.loads((ROOT / "src/mrn/zoo/BlockRotateZ/card.json").read_text())
    success = card["engines"]["envpool"]["success"]
    assert f"reaches {success:.1%} on 500 new episodes" in " ".join(text.split())
