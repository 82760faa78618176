"""More training with `Agent.learn`."""

import shutil

import pytest

import mrn
from mrn.runs.provenance import read_config
from tests.reliability.helpers import same_run
from tests.training.helpers import metrics, same_weights, tiny_run

EPOCH = 200  # environment steps of an epoch of a tiny run


def test_extended_run_equals_a_longer_one(tmp_path):
    agent = tiny_run(tmp_path / "run", epochs=1)
    whole = tiny_run(tmp_path / "whole", epochs=4)
    assert agent.learn(EPOCH, progress=False) is agent
    assert len(metrics(tmp_path / "run")) == 2
    rows = []
    agent.learn(EPOCH + 1, progress=False, callbacks=[lambda _, row: rows.append(row["epoch"])])
    assert rows == [3, 4]  # rounded up
    assert same_weights(agent, whole)
    assert same_run(tmp_path / "run", tmp_path / "whole")
    assert agent.config.epochs == read_config(tmp_path / "run").epochs == 4


def test_loaded_agent_learns_in_place(tmp_path):
    tiny_run(tmp_path / "run", epochs=1, stop_at=0.0)
    agent = mrn.load(tmp_path / "run")
    network, before = agent.algorithm, agent.algorithm.actor.net[0].weight.clone()
    agent.learn(EPOCH, progress=False)  # stop_at no longer applies
    assert agent.algorithm is network
    assert not (network.actor.net[0].weight == before).all()
    assert same_weights(agent, mrn.load(tmp_path / "run"))


def test_run_stopped_within_an_epoch_completes_it(tmp_path):
    class Stop(mrn.Callback):
        def on_cycle(self, agent, row):
            return True

    agent = tiny_run(tmp_path / "run", callbacks=[Stop()])
    agent.learn(1, progress=False)
    whole = tiny_run(tmp_path / "whole", epochs=1)
    assert same_weights(agent, whole)


def test_agents_without_checkpoint_cannot_learn(tmp_path):
    folder = tmp_path / "run"
    tiny_run(folder, epochs=1)
    for run in (folder / "latest.safetensors", "zoo:FetchReach"):
        with pytest.raises(mrn.UserError, match="no run folder.*Load a run folder with mrn.load"):
            mrn.load(run).learn(EPOCH)
    with pytest.raises(mrn.UserError, match="load the run with weights='latest'"):
        mrn.load(folder, "best").learn(EPOCH)
    agent = mrn.load(folder)
    with pytest.raises(mrn.UserError, match="steps must be at least 1, got 0"):
        agent.learn(0)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(mrn.UserError, match="no checkpoint to continue from"):
        agent.learn(EPOCH)
    assert len(metrics(folder)) == 1
