"""Two ranks: equal weights, the gradient of the whole batch, and one run folder."""

from functools import partial
from pathlib import Path

import pytest
import torch

import mrn
from mrn.algorithms import ALGORITHMS, find_algorithm
from mrn.batch import Batch
from mrn.config import Config
from mrn.distributed import join_ranks
from mrn.envs import find_task, make_envs
from mrn.training.evaluation import evaluate
from mrn.training.trainer import Trainer
from mrn.utils.seeding import derive_seed
from tests.algorithms.helpers import generator, make_algorithm, map_tensors, random_batch
from tests.ranks import run_in_ranks
from tests.reliability.helpers import same_run
from tests.training.helpers import TINY, metrics, straight, tiny_run

CPU = torch.device("cpu")


def fingerprints(folder: Path, agent: str, **settings) -> list[list[str]]:
    """Return the fingerprints of all ranks after each update of a run."""
    found, kind = [], find_algorithm(agent)
    trainers: list[Trainer] = []
    init, update = Trainer.__init__, kind.update

    def spy_init(trainer, *arguments):
        trainers.append(trainer)
        init(trainer, *arguments)

    def spy_update(*arguments):
        losses = update(*arguments)
        found.append(trainers[0].ranks.all_gather_text(trainers[0].fingerprint()))
        return losses

    Trainer.__init__, kind.update = spy_init, spy_update
    tiny_run(folder, algo=agent, epochs=1, **settings)
    return found


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_ranks_have_equal_weights_after_each_update(algo, tmp_path):
    ours, theirs = run_in_ranks(2, tmp_path, fingerprints, tmp_path / "run", algo)
    assert len(ours) == 6
    assert ours == theirs
    assert all(len(set(each)) == 1 for each in ours)  # equal on both ranks
    assert len({each[0] for each in ours}) == 6  # and different after each update


def test_ranks_with_a_goal_mixture_have_equal_weights(tmp_path):
    """Each rank draws goals of other episodes from its own buffer, at first from one episode."""
    run = partial(fingerprints, goal_mix="future=0.3,random=0.3,desired=0.3")
    ours, theirs = run_in_ranks(2, tmp_path, run, tmp_path / "run", "ddpg")
    assert ours == theirs
    assert all(len(set(each)) == 1 for each in ours)


def every_other_row(batch: Batch, first: int) -> Batch:
    return map_tensors(lambda column: column[first::2], batch)


def gradients_of_half_a_batch(agent: str, settings: dict) -> list[torch.Tensor]:
    with join_ranks() as ranks:
        algorithm, batch = make_algorithm(ALGORITHMS[agent], **settings), random_batch(64)
        kept: list[torch.Tensor] = []
        for optimizer in algorithm.optimizers.values():
            optimizer.combine = lambda gradients: (
                kept.extend(ranks.all_reduce_mean(gradients)) or gradients
            )
        algorithm.update(every_other_row(batch, ranks.rank), 1, generator())
        return kept


# TD3 and SAC draw random numbers, and the quantile of WGCSL is that of a rank's own batches.
@pytest.mark.parametrize(
    ("algo", "settings"), [("ddpg", {}), ("gcsl", {}), ("wgcsl", {"best_quantile": 0.0})]
)
def test_mean_gradient_of_two_halves_is_the_batch_gradient(algo, settings, tmp_path):
    ours, theirs = run_in_ranks(2, tmp_path, gradients_of_half_a_batch, algo, settings)
    algorithm = make_algorithm(ALGORITHMS[algo], **settings)
    algorithm.update(random_batch(64), 1, generator())
    whole = [w.grad for optimizer in algorithm.optimizers.values() for w in optimizer.weights]
    assert len(whole) == len(ours) > 4
    for one, other, expected in zip(ours, theirs, whole, strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, expected, rtol=1e-5, atol=1e-7)


def trainer_after_collecting(ranks, engine: str) -> Trainer:
    settings = {k: v for k, v in TINY.items() if k != "threads"} | {"num_envs": 4}
    config = Config.of("FetchReach", engine=engine, warmup_episodes=4, **settings)
    trainer = Trainer(config, find_task("FetchReach"), CPU, ranks)
    count = 4 // ranks.size
    with make_envs(trainer.agent.spec, count, engine, first=ranks.rank * count) as envs:
        trainer.collect(envs)
    return trainer


def collected(engine: str) -> dict:
    with join_ranks() as ranks:
        trainer = trainer_after_collecting(ranks, engine)
        rows, norm = trainer.replay.read(0), trainer.agent.normalizer
        return {
            "goals": rows["goal"][rows["since_start"] == 0],
            "states": rows["state"],
            "steps": trainer.env_steps,
            "capacity": trainer.replay.rows,
            "actions": rows["action"],
            "count": norm.state.count.item(),
            "mean": norm.state.mean,
            "scale": norm.state.scale,
        }


@pytest.mark.parametrize("engine", ["envpool", "gymnasium"])
def test_two_ranks_play_the_same_episodes_as_one(engine, tmp_path):
    ours, theirs = run_in_ranks(2, tmp_path, collected, engine)
    alone = collected(engine)
    assert torch.equal(torch.cat([ours["goals"], theirs["goals"]]), alone["goals"])
    assert len(torch.unique(alone["goals"], dim=0)) == 4
    assert not torch.equal(ours["actions"], theirs["actions"])  # each rank has its own noise
    assert ours["steps"] == theirs["steps"] == alone["steps"] == 200
    assert ours["capacity"] == theirs["capacity"] == 2 * 51  # half of 250 transitions each
    assert alone["capacity"] == 5 * 51
    # The statistics cover the data of both ranks, and are the same on both.
    assert ours["count"] == theirs["count"] == 200
    assert torch.equal(ours["mean"], theirs["mean"])
    assert torch.equal(ours["scale"], theirs["scale"])
    moments = [each["states"].reshape(2, 51, -1)[:, :-1] for each in (ours, theirs)]
    everything = torch.cat(moments).double().flatten(0, 1)
    torch.testing.assert_close(ours["mean"], everything.mean(0), rtol=1e-12, atol=1e-12)


def half(observation):
    """Solve about half of the episodes."""
    return straight(observation) * (observation.goal[:, :1] > 1.34)


def evaluation(engine: str, episodes: int, envs_each: int, trained: bool = False) -> mrn.Evaluation:
    policy = mrn.load("zoo:FetchReach").act if trained else half
    with join_ranks() as ranks:
        shape = find_task("FetchReach").spec
        with make_envs(shape, envs_each, engine, first=ranks.rank * envs_each) as envs:
            return evaluate(envs, policy, episodes, derive_seed(3, "evaluation"), ranks=ranks)


@pytest.mark.parametrize(("engine", "episodes"), [("envpool", 11), ("gymnasium", 9)])
def test_evaluation_does_not_depend_on_the_number_of_ranks(engine, episodes, tmp_path):
    alone = evaluation(engine, episodes, 4)
    assert 0 < alone.success < 1
    assert run_in_ranks(2, tmp_path, evaluation, engine, episodes, 2) == [alone, alone]


def test_network_evaluation_matches_one_rank_up_to_rounding(tmp_path):
    alone = evaluation("envpool", 8, 4, trained=True)
    ours, theirs = run_in_ranks(2, tmp_path, evaluation, "envpool", 8, 2, True)
    assert ours == theirs
    assert ours.success == alone.success == 1
    # Rounding may change one of the 8 episodes by a step; other episodes differ by more.
    assert ours.steps_to_success == pytest.approx(alone.steps_to_success, abs=1 / 8)


@pytest.mark.parametrize("algo", ["sac", "wgcsl"])  # two optimizers; rank-local buffers
def test_run_of_two_ranks_resumes_bit_identically(algo, tmp_path):
    def train(folder, epochs, resume=False):
        settings = {"algo": algo, "epochs": epochs, "resume": resume, "stop_at": None}
        run_in_ranks(2, tmp_path, tiny, tmp_path / folder, settings)

    train("whole", 3)
    train("parts", 1)
    first = sorted(path.name for path in (tmp_path / "parts" / "checkpoints").rglob("*.safetens*"))
    assert [name for name in first if name.startswith("state")] == [
        "state-1.safetensors",
        "state.safetensors",
    ]
    train("parts", 3, resume=True)  # with full replay buffers
    assert same_run(tmp_path / "whole", tmp_path / "parts")
    (last, *_) = sorted((tmp_path / "parts" / "checkpoints").glob("0*"), reverse=True)
    assert {path.name for path in last.iterdir()} == {
        "checkpoint.json",
        "complete",
        "state.safetensors",
        "state-1.safetensors",
    }
    rows = metrics(tmp_path / "whole")
    assert [int(row["env_steps"]) for row in rows] == [200, 400, 600]
    assert [int(row["updates"]) for row in rows] == [6, 12, 18]


def tiny(folder: Path, settings: dict) -> None:
    tiny_run(folder, **settings)


def test_number_of_ranks_changes_the_run(tmp_path):
    """Noise differs between ranks, so results differ; config.json has the number of ranks."""
    run_in_ranks(2, tmp_path, tiny, tmp_path / "two", {"epochs": 1})
    tiny_run(tmp_path / "one", epochs=1)
    assert metrics(tmp_path / "two") != metrics(tmp_path / "one")
    assert '"processes": 2' in (tmp_path / "two" / "config.json").read_text()
    assert '"processes": 1' in (tmp_path / "one" / "config.json").read_text()


def count_calls(folder: Path) -> int:
    """Return the number of calls of a callback that stops the run."""
    calls = []
    tiny_run(folder, epochs=4, callbacks=[lambda agent, row: bool(calls.append(row)) or True])
    return len(calls)


def test_callback_runs_on_rank_0_and_stops_all_ranks(tmp_path):
    assert run_in_ranks(2, tmp_path, count_calls, tmp_path / "run") == [1, 0]
    assert len(metrics(tmp_path / "run")) == 1
