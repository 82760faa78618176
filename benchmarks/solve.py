"""How long until FetchPush is solved: recipe fast, recipe paper, and Stable-Baselines3.

`python -m benchmarks.solve`, about 35 minutes on two cores. What is measured is kept at once, in
benchmarks/results/solve.json; started again after an interruption, it goes on with what is missing;
a recipe that has changed since counts as that (`--anew` for all of it again).
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import mrn
from benchmarks.end_to_end import peer_envs
from benchmarks.report import machine, solve_table
from mrn.config import flatten
from mrn.recipes import RECIPES
from mrn.runs.metrics import Row
from mrn.runs.provenance import versions
from mrn.utils.device import cpu_name, default_threads, tune_allocator
from mrn.utils.files import write_atomically
from mrn.utils.tables import markdown_table, print_table, require_sections, write_sections

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "solve.json"
PAGE = ROOT / "docs" / "performance.md"

TASK, SEED, SOLVED = "FetchPush", 100, 0.9
PEER_MINUTES, PEER_EPISODES = 15, 100


def main() -> None:
    """Measure what is missing; write it after each."""
    if unknown := set(sys.argv[1:]) - {"--anew"}:
        sys.exit(f"unknown: {' '.join(sorted(unknown))}; there is --anew")
    tune_allocator()
    require_sections(PAGE, ["solve"])
    about = {"cores": default_threads(), "cpu": cpu_name()} | versions()
    results: dict[str, Any] = {"machine": about}
    if RESULTS.exists() and "--anew" not in sys.argv:
        results = json.loads(RESULTS.read_text())
        if results["machine"] != about:
            sys.exit(f"{RESULTS} is of another machine or other versions: give --anew")
    measures = {
        "fast": lambda: solve("fast"),
        "paper": lambda: solve("paper"),
        "sb3": measure_peer,
    }
    for name, measure in measures.items():
        if is_missing(results, name):
            results[name] = measure() | {"settings": settings_of(name)}
            write_atomically(RESULTS, (json.dumps(results, indent=2) + "\n").encode())
    text = machine(about) + "\n\n" + markdown_table(solve_table(results))
    write_sections(PAGE, {"solve": text})
    print_table(solve_table(results))


def is_missing(results: dict[str, Any], name: str) -> bool:
    """Whether a part was not measured yet, or by a recipe that has changed since."""
    return name not in results or results[name].get("settings") != settings_of(name)


def settings_of(name: str) -> dict[str, Any]:
    """All settings of a run by a recipe; nothing for the peer."""
    return flatten(mrn.Config(TASK, recipe=name).to_dict()) if name in RECIPES else {}


def solve(recipe: str) -> dict[str, float]:
    """Train until an evaluation finds the task solved: steps and minutes, evaluations aside."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        mrn.train(
            TASK,
            recipe=recipe,
            seed=SEED,
            stop_at=SOLVED,
            run_dir=Path(folder) / recipe,
            callbacks=[lambda _, row: rows.append(row)],
        )
    return {
        "steps": rows[-1]["env_steps"],
        "updates": rows[-1]["updates"],
        "minutes": sum(row["rollout_seconds"] + row["update_seconds"] for row in rows) / 60,
        "success": rows[-1]["success"],
    }


def measure_peer() -> dict[str, float]:
    """Train the peer for some minutes, then evaluate it as we evaluate ours: at the last step."""
    envs = peer_envs(default_threads())
    model = make_peer(envs)
    deadline = time.perf_counter() + 60 * PEER_MINUTES
    model.learn(10**9, callback=lambda *_: time.perf_counter() < deadline)
    successes: list[bool] = []
    observation = envs.reset()
    while len(successes) < PEER_EPISODES:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, ended, infos = envs.step(action)
        successes += [bool(i["is_success"]) for i, end in zip(infos, ended, strict=True) if end]
    envs.close()
    return {
        "success_at_stop": float(np.mean(successes[:PEER_EPISODES])),
        "steps": model.num_timesteps,
        "updates": model._n_updates,
        "minutes": PEER_MINUTES,
    }


def make_peer(envs):
    """TQC with hindsight, by the settings of RL Baselines3 Zoo for FetchPush."""
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
        learning_starts=100 * envs.num_envs,  # hindsight needs whole episodes
        gradient_steps=-1,  # an update for each step, as with the zoo's one environment
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4, "goal_selection_strategy": "future"},
        policy_kwargs={"net_arch": [512, 512, 512], "n_critics": 2},
        device="cpu",
        seed=SEED,
    )


if __name__ == "__main__":
    main()
