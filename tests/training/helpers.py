"""A real but tiny training run, and helpers to compare runs."""

import csv
from pathlib import Path

import numpy as np
import torch

import mrn

TINY = {
    "epochs": 2,
    "cycles": 2,
    "num_envs": 2,
    "gradient_steps": 3,
    "eval_episodes": 3,  # two rollouts, with one surplus episode
    "batch_size": 64,
    "hidden_dim": 16,
    "buffer_size": 250,  # reached in the second epoch
    "threads": 1,
}


def tiny_run(folder: Path, task: str = "FetchReach", **settings) -> mrn.Agent:
    return mrn.train(task, run_dir=folder, **({"progress": False} | TINY | settings))


def metrics(folder: Path, timings: bool = False) -> list[dict[str, str]]:
    with open(folder / "metrics.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    hidden = () if timings else ("steps_per_second", "seconds")
    return [{k: v for k, v in row.items() if not k.endswith(hidden)} for row in rows]


def same_weights(one: mrn.Agent, other: mrn.Agent) -> bool:
    ours, theirs = one.state_dict(), other.state_dict()
    return ours.keys() == theirs.keys() and all(torch.equal(ours[k], theirs[k]) for k in ours)


def straight(observation):
    """Move straight to the goal, which solves FetchReach."""
    action = np.zeros((len(observation.goal), 4))
    action[:, :3] = (observation.goal - observation.achieved) * 10
    return action.clip(-1, 1)
