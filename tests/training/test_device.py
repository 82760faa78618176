"""What training on a GPU needs, checked without one: no waiting, one device, acting on the CPU."""

from dataclasses import replace

import pytest
import torch

from mrn.agent import Agent
from mrn.algorithms import ALGORITHMS, DDPG
from mrn.algorithms.build import make_algorithm
from mrn.config import Config
from mrn.critics import CRITICS, Dims
from mrn.envs import EXTRA_TASKS, TASKS, make_envs
from mrn.training.loop import evaluate_epoch
from mrn.training.trainer import Trainer
from mrn.utils.naming import NO_CRITIC
from mrn.utils.seeding import make_generator
from tests.devices import META, DeviceError, MetaGenerator, one_device
from tests.training.helpers import TINY, same_weights

TASK = TASKS["FetchPush"]
DIMS = Dims(TASK.spec.state_dim, TASK.spec.action_dim, TASK.spec.goal_dim)
MIX = "future=0.2,final=0.1,episode=0.1,geometric=0.1,random=0.1,desired=0.1"


@pytest.fixture
def meta(monkeypatch):
    """Let trainers and agents work on `meta`."""

    def generator(seed, purpose, device, index=0):
        return MetaGenerator() if device == META else make_generator(seed, purpose, device, index)

    for module in ("mrn.agent", "mrn.training.trainer"):
        monkeypatch.setattr(f"{module}.make_generator", generator)
    monkeypatch.setattr(Agent, "load_state_dict", lambda *_: None)  # there are no values to copy
    # `to` moves parameters to a GPU in place, but would replace them on `meta`.
    swap = torch.__future__.set_swap_module_params_on_conversion
    swap(True)
    yield
    swap(False)


def make_trainer(device: torch.device, algo: str, **settings) -> Trainer:
    config = Config.of("FetchPush", algo=algo, redraws=2, **TINY | {"gradient_steps": 2} | settings)
    return Trainer(config, TASK, device)


def collect(trainer: Trainer) -> None:
    with make_envs(TASK.spec, trainer.config.schedule.num_envs) as envs:
        trainer.collect(envs)


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_updates_never_wait_and_stay_on_the_device(meta, algo):
    """Sample, relabel, normalize and update; then update with every other critic."""
    kind = ALGORITHMS[algo]
    mix = MIX + ",imagined=0.2" if kind.imagines_goals else MIX
    trainer = make_trainer(META, algo, goal_mix=mix, batch_size=16)
    collect(trainer)
    for trainer.precision in ("float32", "bfloat16"):
        with one_device(META) as guard:
            trainer.learn()
        assert guard.operations > 200

    generator, settings = trainer.generators["learning"], trainer.config.algo_config
    batch = trainer.agent.normalizer(trainer.hindsight.sample(16, generator))
    critics = [name for name in CRITICS if kind.can_use(name)] or [NO_CRITIC]
    for critic in critics:
        with META:
            algorithm = make_algorithm(algo, critic, DIMS, settings)
        with one_device(META) as guard:
            found = algorithm.update(batch, update_step=4, generator=generator)
            algorithm.end_cycle()
        assert found.device == META, critic
        assert guard.operations > 100, critic


@pytest.mark.parametrize(
    "mistake",
    [
        lambda batch: batch.reward.sum().item(),
        lambda batch: bool(batch.terminated.any()),
        lambda batch: batch.reward.cpu(),
        lambda batch: batch.reward.sum().cpu(),
        lambda batch: batch.reward.tolist(),
        lambda batch: batch.terminated.nonzero(),
        lambda batch: batch.state[batch.terminated],
        lambda batch: batch.state.index_put_((batch.terminated,), batch.reward[0]),
        lambda batch: batch.state.unique(),
        lambda batch: batch.reward + torch.ones(16),
        lambda batch: batch.action @ torch.ones(4, 1),
        lambda batch: batch.state[torch.arange(3)],
        lambda batch: batch.reward * torch.zeros(()).to(META),
        lambda batch: torch.tensor([0.5], device=META),
    ],
)
def test_mistakes_in_an_update_are_found(meta, monkeypatch, mistake):
    update = DDPG.update

    def wrong(self, batch, *rest):
        mistake(batch)
        return update(self, batch, *rest)

    monkeypatch.setattr(DDPG, "update", wrong)
    trainer = make_trainer(META, "ddpg", batch_size=16)
    collect(trainer)
    with pytest.raises((DeviceError, RuntimeError)), one_device(META):
        trainer.learn()


def test_rewards_never_wait_and_stay_on_the_device():
    rewards = {task.reward: task.spec for task in [*TASKS.values(), *EXTRA_TASKS.values()]}
    assert len(rewards) > 3
    for reward, spec in rewards.items():
        achieved, desired = torch.rand(2, 8, spec.goal_dim, device=META)
        with one_device(META):
            assert reward(achieved, desired).shape == (8,)


@pytest.mark.parametrize("algo", ["ddpg", "sac"])
def test_rollouts_and_evaluations_never_use_the_device_of_the_updates(meta, algo):
    """On `meta`, a policy could not act."""
    trainer = make_trainer(META, algo)
    collect(trainer)
    assert trainer.replay.state.device == META
    with make_envs(TASK.spec, 2) as envs:
        assert 0 <= evaluate_epoch(trainer, envs)["success"] <= 1
    agent = Agent(trainer.config, TASK.spec, META)
    assert agent.evaluate(episodes=2, threads=1).episodes == 2


def test_copy_that_acts_has_the_current_weights():
    """Runs with a separate copy are bit-identical to runs without one."""
    config = replace(make_trainer(torch.device("cpu"), "sac").config, task="FetchReach")
    runs = []
    for device in (torch.device("cpu"), META):
        trainer = Trainer(config, TASKS["FetchReach"], torch.device("cpu"))
        trainer.agent.device = device  # only the name: all weights are on the CPU
        with make_envs(trainer.agent.spec, trainer.config.schedule.num_envs) as envs:
            for _ in range(3):
                trainer.collect(envs)
                trainer.learn()
            result = evaluate_epoch(trainer, envs)
        copy = trainer.agent.on_cpu()
        assert (copy is trainer.agent) == (device.type == "cpu")
        assert same_weights(copy, trainer.agent)
        runs.append((trainer, result))
    (one, expected), (other, found) = runs
    assert found == expected
    assert same_weights(one.agent, other.agent)
    assert torch.equal(one.replay.action, other.replay.action)
