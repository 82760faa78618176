"""Time until FetchPush is solved: recipe fast, recipe paper, and Stable-Baselines3.

`python -m benchmarks.solve`, about 35 minutes on two cores. Each result is written at once to
benchmarks/results/solve.json. A second call measures only missing results and recipes that have
changed since; `--all` measures everything again.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import mrn
from benchmarks.end_to_end import make_sb3_envs
from benchmarks.report import solve_table
from mrn.config import flatten
from mrn.recipes import RECIPES
from mrn.runs.metrics import Row
from mrn.runs.provenance import versions
from mrn.utils.device import cpu_name, default_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import print_table

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "solve.json"

TASK, SEED, SOLVED = "FetchPush", 100, 0.9
SB3_MINUTES, SB3_EPISODES = 15, 100


def main() -> None:
    """Measure and write missing results, then print all."""
    if unknown := set(sys.argv[1:]) - {"--all"}:
        sys.exit(f"unknown option {' '.join(sorted(unknown))}. Available: --all")
    tune_allocator()
    about = {"cores": default_threads(), "cpu": cpu_name()} | versions()
    del about["mrn"]  # what a new version changes is in the settings of its recipes
    results: dict[str, Any] = {"machine": about}
    if RESULTS.exists() and "--all" not in sys.argv:
        results = json.loads(RESULTS.read_text(encoding="utf-8"))
        if results["machine"] != about:
            sys.exit(f"{RESULTS} comes from another machine or other versions: use --all")
    measures = {
        "fast": lambda: solve("fast"),
        "paper": lambda: solve("paper"),
        "sb3": measure_sb3,
    }
    for name, measure in measures.items():
        if is_missing(results, name):
            results[name] = measure() | {"settings": settings_of(name)}
            write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    print_table(solve_table(results))


def is_missing(results: dict[str, Any], name: str) -> bool:
    """Return whether a result is missing, or its recipe has changed since."""
    return name not in results or results[name].get("settings") != settings_of(name)


def settings_of(name: str) -> dict[str, Any]:
    """Return all settings of a recipe; none for Stable-Baselines3."""
    return flatten(mrn.Config(TASK, recipe=name).to_dict()) if name in RECIPES else {}


def solve(recipe: str, **settings: object) -> dict[str, float]:
    """Train until an evaluation reaches 90%. Return steps and minutes without evaluations."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        mrn.train(
            TASK,
            recipe=recipe,
            seed=SEED,
            stop_at=SOLVED,
            run_dir=Path(folder) / recipe,
            **settings,
            callbacks=[lambda _, row: rows.append(row)],
        )
    return {
        "steps": rows[-1]["env_steps"],
        "updates": rows[-1]["updates"],
        "minutes": sum(row["rollout_seconds"] + row["update_seconds"] for row in rows) / 60,
        "success": rows[-1]["success"],
    }


def measure_sb3() -> dict[str, float]:
    """Train Stable-Baselines3 for 15 minutes, then evaluate success at the last step, as we do."""
    envs = make_sb3_envs(default_threads())
    model = make_sb3(envs)
    deadline = time.perf_counter() + 60 * SB3_MINUTES
    model.learn(10**9, callback=lambda *_: time.perf_counter() < deadline)
    successes: list[bool] = []
    observation = envs.reset()
    while len(successes) < SB3_EPISODES:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, ended, infos = envs.step(action)
        successes += [bool(i["is_success"]) for i, end in zip(infos, ended, strict=True) if end]
    envs.close()
    return {
        "success_at_stop": float(np.mean(successes[:SB3_EPISODES])),
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "minutes": SB3_MINUTES,
    }


def make_sb3(envs):
    """Return TQC with HER and the settings of RL Baselines3 Zoo for FetchPush."""
    from sb3_contrib import TQC
    from stable_baselines3 import HerReplayBuffer

    return TQC(
        "MultiInputPolicy",
        envs,
        buffer_size=1_000_000,
        batch_size=2048,
        gamma=0.95,
        learning_rate=1e-3,
        tau=0.05,
        learning_starts=100 * envs.num_envs,  # HER needs complete episodes
        gradient_steps=-1,  # one update per step, as with the zoo's single environment
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [512, 512, 512], "n_critics": 2},
        device="cpu",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
