"""A run killed before its first checkpoint starts over, whatever checkpoint_every is."""

from mrn.runs.layout import checkpoint_folders
from tests.commands import mrn
from tests.reliability.helpers import same_run
from tests.reliability.kills import KILLED, KillAt, train
from tests.training.helpers import TINY, metrics, tiny_run

TINIEST = TINY | {"num_envs": 1, "cycles": 1, "eval_episodes": 1, "gradient_steps": 1, "epochs": 5}
IN_FOURTH_EPOCH = KillAt("step", 340)  # 50 steps of training and 50 of evaluation per epoch
KILLS = (
    (5, IN_FOURTH_EPOCH),
    (1, KillAt("step", 1)),
    # Around the writes with which a run begins: metrics, then settings.
    *((5, IN_FOURTH_EPOCH), (1, KillAt("rename", 1)), (1, KillAt("rename", 1, "after"))),
    *((5, IN_FOURTH_EPOCH), (1, KillAt("rename", 2)), (1, KillAt("rename", 2, "after"))),
)
"""checkpoint_every, and the moment of the kill, always before the first checkpoint."""


def test_kills_before_the_first_checkpoint_never_lock_out_a_run(tmp_path, count):
    folder = tmp_path / "run"
    for every, kill in KILLS:
        assert train(folder, kill, **TINIEST | {"checkpoint_every": every}) == KILLED
        assert not checkpoint_folders(folder)
        assert len(metrics(folder)) in (0, 3)
    assert train(folder, **TINIEST) == 0
    tiny_run(tmp_path / "whole", **TINIEST)
    assert same_run(tmp_path / "whole", folder)
    count(f"killed with SIGKILL before the first checkpoint: {len(KILLS)} times, started over")


def test_starting_over_is_announced(tmp_path):
    tiny_run(tmp_path / "run", epochs=3, checkpoint_every=5)
    for path in sorted((tmp_path / "run" / "checkpoints").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    # As after a kill in the third epoch of five.
    file = tmp_path / "run" / "metrics.csv"
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:3]))
    resumed = mrn("resume", tmp_path / "run", "--checkpoint-every=1")
    assert resumed.returncode == 0, resumed.stderr
    assert "no checkpoint yet: repeating 2 epochs from the start" in resumed.stdout
    assert len(metrics(tmp_path / "run")) == 3
