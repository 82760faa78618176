"""Training cycles on FetchPush: ours, and DDPG with HER of Stable-Baselines3."""

import contextlib
from typing import Any

import numpy as np

from benchmarks.timing import time_in_turns
from benchmarks.trainers import make_trainer
from mrn.envs import TASKS, make_envs
from mrn.envs.custom import make_env

CYCLES = 5
STEPS, UPDATES = 1000, 40


def measure(threads: int) -> dict[str, Any]:
    """Time cycles of 20 episodes of 50 steps and 40 updates of 1024, alternating."""
    spec = TASKS["FetchPush"].spec
    critics = ("mrn", "monolithic")
    ours = {critic: make_trainer("FetchPush", critic) for critic in critics}
    with (
        make_envs(spec, 20, "envpool", threads) as mrn_envs,
        make_envs(spec, 20, "envpool", threads) as monolithic_envs,
        contextlib.closing(make_sb3_envs(20)) as sb3_envs,
    ):
        envs = dict(zip(critics, (mrn_envs, monolithic_envs), strict=True))
        sb3 = make_sb3(sb3_envs)

        def cycle(critic: str) -> None:
            ours[critic].collect(envs[critic])
            ours[critic].learn()

        def sb3_cycle() -> None:
            sb3.learn(STEPS, reset_num_timesteps=False)

        sb3_cycle()  # fills the replay buffer: updates start with the next cycle
        before = sb3._n_updates
        times = time_in_turns(
            {
                "mrn": lambda: cycle("mrn"),
                "monolithic": lambda: cycle("monolithic"),
                "sb3": sb3_cycle,
            },
            repeats=CYCLES,
        )
        assert sb3._n_updates - before == UPDATES * (CYCLES + 1)
    seconds = {f"{name}_seconds": timing.median for name, timing in times.items()}
    spread = {f"{name}_spread": [timing.low, timing.high] for name, timing in times.items()}
    sb3_time = times["sb3"].median
    return {
        **seconds,
        **spread,
        "mrn_over_sb3": sb3_time / times["mrn"].median,
        "monolithic_over_sb3": sb3_time / times["monolithic"].median,
    }


def make_sb3_envs(count: int):
    """Return environments in separate processes, so that Stable-Baselines3 uses all cores too."""
    from stable_baselines3.common.vec_env import SubprocVecEnv

    return SubprocVecEnv([lambda: make_env("FetchPush-v4")] * count, start_method="fork")


def make_sb3(envs):
    """Return DDPG with the same steps, updates, batch size and networks."""
    from stable_baselines3 import DDPG, HerReplayBuffer
    from stable_baselines3.common.noise import NormalActionNoise

    return DDPG(
        "MultiInputPolicy",
        envs,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [256, 256, 256]},
        batch_size=1024,
        gamma=0.98,
        tau=0.1,
        train_freq=(STEPS // 20, "step"),
        gradient_steps=UPDATES,
        learning_starts=STEPS,
        action_noise=NormalActionNoise(np.zeros(4), np.full(4, 0.2)),
        device="cpu",
        seed=0,
    )
