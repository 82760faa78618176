"""A run killed before its first checkpoint starts over, whatever checkpoint_every is."""

from mrn.runs.layout import checkpoint_folders
from tests.commands import mrn
from tests.reliability.helpers import KILLED, Zygote, same_run
from tests.training.helpers import TINY, metrics, tiny_run

TINIEST = TINY | {"num_envs": 1, "cycles": 1, "eval_episodes": 1, "gradient_steps": 1, "epochs": 6}


def test_kills_before_the_first_checkpoint_never_lock_out_a_run(tmp_path, count):
    folder, kills = tmp_path / "run", 0
    with Zygote() as zygote:
        assert zygote.run(tmp_path / "whole", **TINIEST) == 0
        # Each time with another interval, and killed before a checkpoint: in the fourth epoch, at
        # the first step, and around the writes with which a run begins (see RunDir.begin).
        for every, kill in (
            (5, ("step", 340, "before")),
            (1, ("step", 1, "before")),
            (5, ("step", 340, "before")),
            (1, ("write", 1, "before")),
            (1, ("write", 1, "after")),
            (5, ("step", 340, "before")),
            (1, ("write", 2, "before")),
            (1, ("write", 2, "after")),
        ):
            settings = TINIEST | {"checkpoint_every": every}
            assert zygote.run(folder, kill, **settings) == KILLED
            assert not checkpoint_folders(folder)
            assert len(metrics(folder)) in (0, 3)
            kills += 1
        assert zygote.run(folder, **TINIEST) == 0
    assert same_run(tmp_path / "whole", folder)
    count(f"killed with SIGKILL before the first checkpoint: {kills} times, started over")


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
