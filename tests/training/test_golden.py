"""Golden runs: small runs with recorded results, which detect unintended changes.

Processors round differently, so the relative tolerance is 1e-4. A different order of random
numbers, loss or initial weight deviates by far more. Record an intended change with
`python -m tests.training.test_golden`, and mention it in CHANGELOG.md.
"""

import json
import tempfile
from pathlib import Path

import pytest

from mrn.algorithms import ALGORITHMS
from tests.training.helpers import metrics, tiny_run

FILE = Path(__file__).with_name("golden.json")
SETTINGS = {
    "seed": 100,
    "epochs": 1,
    "cycles": 2,
    "num_envs": 2,
    "gradient_steps": 4,
    "eval_episodes": 2,
    "batch_size": 64,
    "hidden_dim": 64,
    "buffer_size": 250,
    "threads": 1,
}
CASES = [
    *(
        f"{engine} {critic}"
        for engine in ("envpool", "gymnasium")
        for critic in ("mrn", "monolithic", "bvn", "iqe")
    ),
    *("envpool dn", "envpool wn", "envpool pqe"),
    *(f"envpool auto {algo} paper" for algo in ALGORITHMS if algo != "ddpg"),
    *(f"envpool auto {algo} fast" for algo in ALGORITHMS),
]
"""Engine and critic, then algorithm and recipe if they are not DDPG and `paper`."""
WARMUP = {"warmup_episodes": 2}
"""Of the recipe `fast`: one cycle of uniform actions, and one of the policy."""


def summary(case: str, folder: Path) -> dict[str, float]:
    """Return the last row of a run's metrics, and the mean magnitude of each tensor."""
    engine, critic, algo, recipe, *_ = (*case.split(), "ddpg", "paper")
    settings = {**SETTINGS, **(WARMUP if recipe == "fast" else {}), "algo": algo, "recipe": recipe}
    agent = tiny_run(folder, task="FetchPush", engine=engine, critic=critic, **settings)
    row = {name: float(value) for name, value in metrics(folder)[-1].items() if value}
    magnitudes = {
        name: value.double().abs().mean().item() for name, value in agent.state_dict().items()
    }
    return row | magnitudes


@pytest.mark.parametrize("case", CASES)
def test_run_reproduces_the_recorded_results(case, tmp_path):
    expected = json.loads(FILE.read_text())[case]
    assert summary(case, tmp_path / "run") == pytest.approx(expected, rel=1e-4, abs=1e-6)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {case: summary(case, Path(folder) / case) for case in CASES}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
