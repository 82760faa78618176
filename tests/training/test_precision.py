"""The `precision` of runs: how it is chosen, recorded, kept and used."""

import json
import warnings
from pathlib import Path

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import mrn
from mrn.algorithms import AlgorithmSettings
from mrn.config import Config
from mrn.distributed import join_ranks
from mrn.envs import find_task, make_envs
from mrn.runs.provenance import read_run_info
from mrn.sweeps.suites import find_suite
from mrn.training import precision
from mrn.training.precision import resolve_precision
from mrn.training.trainer import Trainer
from tests.cli.helpers import exit_code, run_command
from tests.ranks import run_in_ranks
from tests.training.helpers import TINY, metrics, same_weights, tiny_run

CPU = torch.device("cpu")


@pytest.fixture(params=[True, False], ids=["bfloat16", "no bfloat16"])
def hardware(request, monkeypatch):
    """Simulate a processor with and one without instructions for bfloat16."""
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: request.param)
    return request.param


@pytest.fixture
def with_instructions(monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)


def resolved(setting: str) -> str:
    config = Config.of("FetchReach", precision=setting)
    return resolve_precision(config, CPU, mrn.distributed.SINGLE_PROCESS)


def test_only_explicit_bfloat16_warns_without_instructions(hardware):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolved("float32") == "float32"
        assert resolved("auto") == ("bfloat16" if hardware else "float32")
        if hardware:
            assert resolved("bfloat16") == "bfloat16"
    if not hardware:
        with pytest.warns(UserWarning, match="no instructions for it; updates compute in float32"):
            assert resolved("bfloat16") == "float32"


def resolve_in_rank() -> str:
    with join_ranks() as ranks:
        precision.has_bfloat16 = lambda device: ranks.rank == 0
        return resolve_precision(Config.of("FetchReach", precision="auto"), CPU, ranks)


def test_ranks_agree_if_one_lacks_the_instructions(tmp_path):
    assert run_in_ranks(2, tmp_path, resolve_in_rank) == ["float32", "float32"]


class ProductTypes(TorchDispatchMode):
    """Recorder of the types of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[torch.dtype] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func._schema.name in ("aten::mm", "aten::addmm"):
            self.found.add(args[-1].dtype)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("setting", ["float32", "bfloat16"])
def test_updates_use_the_precision_and_acting_stays_in_float32(setting, with_instructions):
    settings = {name: value for name, value in TINY.items() if name != "threads"}
    config = Config.of("FetchReach", precision=setting, **settings)
    trainer = Trainer(config, find_task("FetchReach"), CPU)
    with make_envs(trainer.agent.spec, 2) as envs, ProductTypes() as acting:
        trainer.collect(envs)
        observation = envs.reset(seed=0)
        trainer.agent.act(observation)
    with ProductTypes() as learning:
        trainer.learn()
    assert acting.found == {torch.float32}
    assert learning.found == {torch.float32} | {getattr(torch, setting)}


def test_run_records_the_precision_and_resumes_bit_identically(tmp_path, with_instructions):
    whole = tiny_run(tmp_path / "whole", precision="auto")
    tiny_run(tmp_path / "parts", precision="auto", epochs=1)
    parts = tiny_run(tmp_path / "parts", precision="auto", resume=True)
    assert same_weights(whole, parts)
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    about = json.loads((tmp_path / "parts" / "config.json").read_text())
    assert about["machine"]["precision"] == "bfloat16"
    assert about["config"]["algo_config"]["precision"] == "auto"
    exact = tiny_run(tmp_path / "exact", precision="float32")
    assert read_run_info(tmp_path / "exact").machine["precision"] == "float32"
    assert not same_weights(whole, exact)
    weights = mrn.load(tmp_path / "whole").algorithm.state_dict().values()
    assert {value.dtype for value in weights} == {torch.float32}


def test_resumed_run_keeps_its_precision(tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    tiny_run(tmp_path, precision="auto", epochs=1)
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resumed = tiny_run(tmp_path, precision="auto", resume=True)
    assert read_run_info(tmp_path).machine["precision"] == "float32"
    assert same_weights(resumed, tiny_run(tmp_path / "exact", precision="float32"))


def test_run_that_resumes_without_the_instructions_warns(tmp_path, with_instructions, monkeypatch):
    tiny_run(tmp_path, precision="auto", epochs=1)
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    setup, hint = "precision was bfloat16, now float32", "no instructions for it"
    with pytest.warns(UserWarning, match=setup), pytest.warns(UserWarning, match=hint):
        tiny_run(tmp_path, precision="auto", resume=True)
    info = read_run_info(tmp_path)
    assert info.machine["precision"] == "float32"
    assert info.earlier_versions[0]["precision"] == "bfloat16"


def test_settings_without_a_precision_are_those_of_float32_runs():
    old = Config.of("FetchReach").to_dict()
    del old["algo_config"]["precision"]
    config = Config.from_json(old, "config.json")
    assert isinstance(config.algo_config, AlgorithmSettings)
    assert config.algo_config.precision == "float32"


def test_unknown_precision_is_an_error():
    message = r"unknown precision 'bfloat'\. Did you mean 'bfloat16'\? Available: auto, float32"
    with pytest.raises(mrn.UserError, match=message):
        Config.of("FetchReach", precision="bfloat")


def test_command_line_sets_the_precision(tmp_path, monkeypatch, capsys, with_instructions):
    small = ["--epochs=1", "--cycles=1", "--num-envs=2", "--gradient-steps=1", "--eval-episodes=0"]
    words = ["train", "FetchReach", *small, "--hidden-dim=16", f"--run-dir={tmp_path / 'run'}"]
    assert exit_code(monkeypatch, *words, "--precision=half") == 2
    assert "Expected one of ('auto'," in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    run_command(monkeypatch, *words, "--precision=bfloat16")
    assert "on cpu, bfloat16, replay" in capsys.readouterr().out
    assert read_run_info(tmp_path / "run").config.algo_config.precision == "bfloat16"


def test_precision_is_a_setting_of_suites(tmp_path: Path):
    file = tmp_path / "mine.toml"
    file.write_text('tasks = ["FetchReach"]\nseeds = [7]\n[grid]\nprecision = ["float32", "auto"]')
    configs = find_suite(str(file)).configs()
    assert [config.algo_config.precision for config in configs] == ["float32", "auto"]
    assert configs[0].folder != configs[1].folder
