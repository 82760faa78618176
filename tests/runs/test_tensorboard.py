"""TensorBoard tags, which trackers use as well."""

import pytest

from mrn.runs.metrics import COLUMNS
from mrn.runs.tensorboard import scalars, tag


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("success", "eval/success"),
        ("success_any", "eval/success_any"),
        ("steps_to_success", "eval/steps_to_success"),
        ("critic_loss", "train/critic_loss"),
        ("updates", "train/updates"),
        ("steps_per_second", "time/steps_per_second"),
        ("evaluation_seconds", "time/evaluation_seconds"),
    ],
)
def test_tag(column, expected):
    assert tag(column) == expected


def test_scalars_leave_out_axes_and_missing_values():
    row = dict.fromkeys(COLUMNS, 1.0) | {"success": None, "actor_loss": 2.0}
    logged = scalars(row)
    assert logged["train/actor_loss"] == 2.0
    assert len(logged) == len(row) - 3  # without epoch, env_steps and success
    assert not any(name.endswith(("/epoch", "/env_steps", "/success")) for name in logged)
