"""Small runs whose numbers are written down: a change of results cannot pass unnoticed.

Processors round differently, so digits are compared to a part in ten thousand; another order of
random numbers, another loss or another initial weight is off by far more. A change that is meant
is recorded by `python -m tests.training.test_golden`, and marked in CHANGELOG.md.
"""

import json
import tempfile
from pathlib import Path

import pytest

from tests.training.helpers import metrics, tiny_run

FILE = Path(__file__).with_name("golden.json")
SETTINGS = {
    "recipe": "paper",
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
    f"{engine} {critic}"
    for engine in ("envpool", "gymnasium")
    for critic in ("mrn", "monolithic", "bvn", "iqe")
] + ["envpool dn", "envpool wn", "envpool pqe"]


def numbers(case: str, folder: Path) -> dict[str, float]:
    """The last row of a run's metrics, and the size of each of its tensors."""
    engine, critic = case.split()
    agent = tiny_run(folder, task="FetchPush", engine=engine, critic=critic, **SETTINGS)
    row = {name: float(value) for name, value in metrics(folder)[-1].items() if value}
    sizes = {name: value.double().abs().mean().item() for name, value in agent.state_dict().items()}
    return row | sizes


@pytest.mark.parametrize("case", CASES)
def test_a_run_gives_the_numbers_that_are_written_down(case, tmp_path):
    expected = json.loads(FILE.read_text())[case]
    assert numbers(case, tmp_path / "run") == pytest.approx(expected, rel=1e-4, abs=1e-6)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = {case: numbers(case, Path(folder) / case) for case in CASES}
    FILE.write_text(json.dumps(found, indent=1) + "\n")
