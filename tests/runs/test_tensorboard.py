"""TensorBoard tags, which trackers use as well, and points that no resume repeats."""

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import mrn
from mrn.runs.metrics import COLUMNS
from mrn.runs.tensorboard import Events, scalars, tag
from tests.training.helpers import metrics, tiny_run


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


class Crash(mrn.Callback):
    def __init__(self, epoch, cycle):
        self.position = epoch, cycle

    def on_cycle(self, agent, row):
        if (row["epoch"], row["cycle"]) == self.position:
            raise ZeroDivisionError


def points(folder, name):
    events = EventAccumulator(str(folder / "events"))
    events.Reload()
    return [(event.step, event.value) for event in events.Scalars(name)]


@pytest.mark.parametrize("position", [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_repeated_cycles_are_logged_once(tmp_path, position):
    """A crash loses the cycles since the last checkpoint; the resumed run repeats them."""
    with pytest.raises(ZeroDivisionError):
        tiny_run(tmp_path / "run", callbacks=[Crash(*position)])
    tiny_run(tmp_path / "run", resume=True)
    tiny_run(tmp_path / "whole")
    for name in ("train/critic_loss", "eval/success"):
        assert points(tmp_path / "run", name) == points(tmp_path / "whole", name)
    assert len(points(tmp_path / "run", "train/critic_loss")) == 4


def test_run_that_crashed_before_its_first_checkpoint_can_be_repeated(tmp_path):
    """It left only its settings and events, which the new run replaces."""
    with pytest.raises(ZeroDivisionError):
        tiny_run(tmp_path, callbacks=[Crash(1, 1)])
    assert {path.name for path in tmp_path.iterdir()} == {"config.json", "events"}
    tiny_run(tmp_path, num_envs=4, epochs=1)
    assert [step for step, _ in points(tmp_path, "train/critic_loss")] == [200, 400]
    assert len(metrics(tmp_path)) == 1


def test_folder_with_other_events_is_not_touched(tmp_path):
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "precious").write_text("keep")
    with pytest.raises(mrn.UserError, match="nothing was overwritten"):
        tiny_run(tmp_path)
    assert (tmp_path / "events" / "precious").read_text() == "keep"


def test_event_files_sort_by_their_creation(tmp_path):
    """Readers sort by name; another order would keep the points that a resumed run repeats."""
    config, paths = mrn.Config.of("FetchReach"), []
    for step in range(20):
        events = Events(tmp_path, config, step)
        events.close()
        paths.append(events.path)
    assert sorted(paths) == paths
