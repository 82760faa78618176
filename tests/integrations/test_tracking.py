"""Tests of experiment tracking, which read the trackers' own files."""

import json
import shutil
import sys

import pytest

import mrn
from mrn.integrations import tracking
from mrn.runs.tensorboard import tag
from tests.cli.helpers import exit_code, run_command
from tests.integrations.trackers import read_trackio, read_wandb
from tests.training.helpers import metrics, same_weights, tiny_run

STEPS = [200, 400, 600]  # after each of three epochs of 2 cycles x 2 episodes x 50 steps


@pytest.fixture(autouse=True)
def no_account(tmp_path, monkeypatch):
    """Simulate a machine without a tracker account."""
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / "netrc"))
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / "home" / name))


@pytest.fixture(scope="module")
def trackio_folder(tmp_path_factory):
    """Import trackio with its files in a temporary folder, which it reads on import."""
    folder = tmp_path_factory.mktemp("trackio")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(folder))
        pytest.importorskip("trackio")
    return folder


@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_stopped_and_repeated_epochs_are_logged_once(tracker, request, tmp_path, monkeypatch):
    """Stop a run, resume it, restore an older checkpoint, and repeat an epoch."""
    if tracker == "trackio":
        database = request.getfixturevalue("trackio_folder")
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    monkeypatch.chdir(cwd)
    run, checkpoints = tmp_path / "run", tmp_path / "run" / "checkpoints"

    def stop_after(epoch):
        return [lambda _, row: row["epoch"] >= epoch]

    tiny_run(run, epochs=3, track=tracker, callbacks=stop_after(1))
    shutil.copytree(checkpoints, tmp_path / "earlier")
    tiny_run(
        run, epochs=3, resume=True, callbacks=stop_after(2)
    )  # the run folder remembers the tracker
    shutil.rmtree(checkpoints)
    shutil.copytree(tmp_path / "earlier", checkpoints)
    resumed = tiny_run(run, epochs=3, resume=True)

    state = json.loads((run / "tracking.json").read_text())
    assert state == {"tracker": tracker, "id": state["id"], "epochs": 3}
    found = read_wandb(run) if tracker == "wandb" else read_trackio(database, state["id"])
    (tracked,) = found
    if tracker == "wandb":
        assert tracked.id == state["id"]
    assert tracked.name == "FetchReach/ddpg-mrn+fast/seed-100"
    assert tracked.group == "FetchReach/ddpg-mrn+fast"
    expected = {"hidden_dim": 16, "seed": 100, "task": "FetchReach", "critic": "mrn", "epochs": 3}
    assert expected.items() <= tracked.config.items()
    assert tracked.config["method"] == "ddpg-mrn+fast"
    assert [step for step, _ in tracked.history] == STEPS
    for (_, logged), row in zip(tracked.history, metrics(run), strict=True):
        expected = {tag(name): float(value) for name, value in row.items() if value}
        del expected[tag("epoch")], expected[tag("env_steps")]
        assert {"eval/success", "train/critic_loss", "train/updates"} <= expected.keys()
        assert {name: logged[name] for name in expected} == pytest.approx(expected, rel=1e-12)
        timings = {"time/steps_per_second"} | {
            f"time/{part}_seconds" for part in ("rollout", "update", "evaluation")
        }
        assert logged.keys() == expected.keys() | timings

    assert not list(cwd.iterdir())
    untracked = tiny_run(tmp_path / "untracked", epochs=3)
    assert same_weights(resumed, untracked)
    assert metrics(run) == metrics(tmp_path / "untracked")


class FakeTracker:
    """Tracker that fails at the given calls and records what it logs."""

    def __init__(self, monkeypatch, *failing: str) -> None:
        self.failing, self.calls, self.logged = failing, [], []
        monkeypatch.setitem(tracking.TRACKERS, "json", self.open)  # any installed package

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in self.failing:
            raise OSError(f"no network in {name}")

    def open(self, package, state, config, folder):
        self._call("open")
        return tracking.TrackedRun(
            self.log, lambda succeeded: self._call("finished" if succeeded else "failed")
        )

    def log(self, scalars, step):
        print("a remark of its own")
        self._call(f"log {step}")
        self.logged.append((step, scalars["train/critic_loss"]))


@pytest.mark.parametrize(
    ("failing", "calls"),
    [
        ("open", ["open"]),
        ("log 400", ["open", "log 200", "log 400", "finished"]),
        ("finished", ["open", "log 200", "log 400", "finished"]),
    ],
)
def test_tracker_failure_warns_once(failing, calls, tmp_path, monkeypatch, capsys):
    tracker, run = FakeTracker(monkeypatch, failing), tmp_path / "run"
    with pytest.warns(UserWarning, match="json failed") as warned:
        tiny_run(run, track="json")  # two epochs
    (warning,) = warned
    assert f"json failed: OSError: no network in {failing}; the run continues" in str(
        warning.message
    )
    assert tracker.calls == calls
    assert [row["epoch"] for row in metrics(run)] == ["1", "2"]
    assert "output of the tracker" not in capsys.readouterr().out
    if failing != "log 400":
        return
    # When the tracker works again, missed epochs are logged first.
    tracker.failing = ()
    tiny_run(run, epochs=3, track="json", resume=True)
    assert [step for step, _ in tracker.logged] == STEPS
    losses = [float(row["critic_loss"]) for row in metrics(run)]
    assert [loss for _, loss in tracker.logged] == losses


def test_interrupted_run_is_marked_as_failed(tmp_path, monkeypatch):
    tracker = FakeTracker(monkeypatch)

    def interrupt(*_):
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        tracking.open_trackers("json", tmp_path / "run") as trackers,
    ):
        tiny_run(tmp_path / "run", callbacks=[*trackers, interrupt])
    assert tracker.calls == ["open", "log 200", "failed"]


def test_invalid_tracker_exits_before_writing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def error(*words):
        assert exit_code(monkeypatch, "train", "FetchReach", *words) == 2
        return capsys.readouterr().err

    unknown = "unknown tracker 'wandby'. Did you mean 'wandb'? Available: wandb, trackio."
    assert unknown in error("--track", "wandby")
    for name in ("wandb", "trackio"):
        monkeypatch.setitem(sys.modules, name, None)
        assert f"{name} is missing: pip install 'mrn-rl[{name}]'" in error("--track", name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"tracker": "wandb", "id": "abc", "epochs": 1}', "wandb is missing: pip install"),
        ('{"tracker": "wandb", "id": "../abc"}', "id must consist of letters and digits"),
        ('{"tracker": "wandb", "epochs": -1}', "epochs must be"),
        ('{"tracker": "os", "id": "abc"}', "unknown tracker 'os'"),
        ('{"tracker": ', "is damaged"),
    ],
)
def test_run_resumes_without_tracking_if_its_tracker_fails(content, message, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    (tmp_path / "tracking.json").write_text(content)
    with (
        pytest.warns(UserWarning, match=f"(?s){message}.*continues without tracking"),
        tracking.open_trackers(None, tmp_path) as trackers,
    ):
        assert not trackers
    assert (tmp_path / "tracking.json").read_text() == content
    FakeTracker(monkeypatch)
    with tracking.open_trackers(
        "json", tmp_path
    ) as trackers:  # an explicit tracker replaces the broken one
        assert len(trackers) == 1


def test_another_tracker_starts_from_the_first_epoch(tmp_path, monkeypatch):
    tracker, run = FakeTracker(monkeypatch), tmp_path / "run"
    tiny_run(run, epochs=1)
    (run / "tracking.json").write_text('{"tracker": "wandb", "id": "abc", "epochs": 1}')
    tiny_run(run, track="json", resume=True)
    assert [step for step, _ in tracker.logged] == [200, 400]
    assert json.loads((run / "tracking.json").read_text())["id"] != "abc"


class FakeWandb:
    """Fake of the `wandb` module with a login state."""

    def __init__(self, logged_in: bool) -> None:
        self.logged_in, self.prompts = logged_in, []

    def login(self, prompt: bool) -> bool:
        self.prompts.append(prompt)
        return self.logged_in


@pytest.mark.parametrize(
    ("logged_in", "chosen", "mode"),
    [
        (False, None, "offline"),
        (False, "online", "offline"),
        (False, "disabled", None),
        (True, None, None),
        (True, "offline", None),
    ],
)
def test_wandb_never_prompts_for_a_login(logged_in, chosen, mode, monkeypatch):
    """None leaves the mode to W&B, which reads WANDB_MODE and its settings."""
    if chosen:
        monkeypatch.setenv("WANDB_MODE", chosen)
    wandb = FakeWandb(logged_in)
    assert tracking._wandb_mode(wandb) == mode
    assert True not in wandb.prompts


def test_cli_tracks_and_resumes(tmp_path, monkeypatch, capsys):
    tracker = FakeTracker(monkeypatch)
    small = (
        "--cycles 1 --num-envs 1 --gradient-steps 1 --eval-episodes 0 --batch-size 8 --threads 1"
    )
    run = str(tmp_path / "run")

    options = [*small.split(), "--epochs=1", f"--run-dir={run}", "--track=json"]
    run_command(monkeypatch, "train", "FetchReach", *options)
    run_command(monkeypatch, "resume", run, "--epochs=2")
    assert [step for step, _ in tracker.logged] == [50, 100]
    assert "track" not in (tmp_path / "run" / "config.json").read_text()  # not a setting of the run
    assert mrn.load(run).config.epochs == 2
