"""What a tracker was given, read back from its own files."""

import json
import shutil
import sys

import pytest

import mrn
from mrn import cli
from mrn.integrations import tracking
from mrn.runs.tensorboard import tag
from tests.integrations.trackers import read_trackio, read_wandb
from tests.training.helpers import metrics, same_weights, tiny_run

STEPS = [200, 400, 600]  # of three epochs: 2 cycles of 2 episodes of 50 steps


@pytest.fixture(autouse=True)
def no_account(tmp_path, monkeypatch):
    """As on a machine where nobody has logged in anywhere."""
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NETRC", str(tmp_path / "home" / "netrc"))
    for name in ("CONFIG", "CACHE", "DATA"):
        monkeypatch.setenv(f"WANDB_{name}_DIR", str(tmp_path / "home" / name))


@pytest.fixture(scope="module")
def trackio_folder(tmp_path_factory):
    """It reads where its files belong when it is imported."""
    folder = tmp_path_factory.mktemp("trackio")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRACKIO_DIR", str(folder))
        pytest.importorskip("trackio")
    return folder


@pytest.mark.parametrize("tracker", ["wandb", "trackio"])
def test_a_run_is_tracked_once_whatever_happens_to_it(tracker, request, tmp_path, monkeypatch):
    """It is stopped, goes on, is killed, and computes an epoch again."""
    if tracker == "trackio":
        database = request.getfixturevalue("trackio_folder")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    run, checkpoints = tmp_path / "run", tmp_path / "run" / "checkpoints"

    def stop_after(epoch):
        return [lambda _, row: row["epoch"] >= epoch]

    tiny_run(run, epochs=3, track=tracker, callbacks=stop_after(1))
    shutil.copytree(checkpoints, tmp_path / "earlier")
    tiny_run(run, epochs=3, resume=True, callbacks=stop_after(2))  # it knows that it is tracked
    shutil.rmtree(checkpoints)
    shutil.copytree(tmp_path / "earlier", checkpoints)
    resumed = tiny_run(run, epochs=3, resume=True)

    kept = json.loads((run / "tracking.json").read_text())
    assert kept == {"tracker": tracker, "id": kept["id"], "epochs": 3}
    found = read_wandb(run) if tracker == "wandb" else read_trackio(database, kept["id"])
    (tracked,) = found
    if tracker == "wandb":
        assert tracked.id == kept["id"]
    assert tracked.name == "FetchReach/ddpg-mrn+fast/seed-100"
    assert tracked.group == "FetchReach/ddpg-mrn+fast"
    expected = {"hidden_dim": 16, "seed": 100, "task": "FetchReach", "critic": "mrn", "epochs": 3}
    assert expected.items() <= tracked.config.items()
    assert tracked.config["method"] == "ddpg-mrn+fast"
    assert [step for step, _ in tracked.history] == STEPS
    for (_, logged), row in zip(tracked.history, metrics(run), strict=True):
        said = {tag(name): float(value) for name, value in row.items() if value}
        del said[tag("epoch")], said[tag("env_steps")]
        assert {"evaluation/success", "algorithm/critic_loss", "speed/updates"} <= said.keys()
        assert {name: logged[name] for name in said} == pytest.approx(said, rel=1e-12)
        timings = {"speed/steps_per_second"} | {
            f"speed/{part}_seconds" for part in ("rollout", "update", "evaluation")
        }
        assert logged.keys() == said.keys() | timings

    assert not list(here.iterdir())
    untracked = tiny_run(tmp_path / "untracked", epochs=3)
    assert same_weights(resumed, untracked)
    assert metrics(run) == metrics(tmp_path / "untracked")


class Faulty:
    """A tracker that fails at what it is told to, and remembers what it was given."""

    def __init__(self, monkeypatch, *failing: str) -> None:
        self.failing, self.tried, self.logged = failing, [], []
        monkeypatch.setitem(tracking.TRACKERS, "json", self.open)  # a package that is there

    def _do(self, what: str) -> None:
        self.tried.append(what)
        if what in self.failing:
            raise OSError(f"no network in {what}")

    def open(self, package, kept, config, folder):
        self._do("open")
        return tracking.Opened(self.log, lambda well: self._do("ended" if well else "broken off"))

    def log(self, scalars, step):
        print("a remark of its own")
        self._do(f"log {step}")
        self.logged.append((step, scalars["algorithm/critic_loss"]))


@pytest.mark.parametrize(
    ("failing", "tried"),
    [
        ("open", ["open"]),
        ("log 400", ["open", "log 200", "log 400", "ended"]),
        ("ended", ["open", "log 200", "log 400", "ended"]),
    ],
)
def test_a_tracker_that_fails_is_warned_of_once(failing, tried, tmp_path, monkeypatch, capsys):
    faulty, run = Faulty(monkeypatch, failing), tmp_path / "run"
    with pytest.warns(UserWarning, match="json failed") as warned:
        tiny_run(run, track="json")  # two epochs
    (warning,) = warned
    assert f"json failed: OSError: no network in {failing}; the run goes on" in str(warning.message)
    assert faulty.tried == tried
    assert [row["epoch"] for row in metrics(run)] == ["1", "2"]
    assert "remark" not in capsys.readouterr().out
    if failing != "log 400":
        return
    # When it works again, what it missed comes first.
    faulty.failing = ()
    tiny_run(run, epochs=3, track="json", resume=True)
    assert [step for step, _ in faulty.logged] == STEPS
    losses = [float(row["critic_loss"]) for row in metrics(run)]
    assert [loss for _, loss in faulty.logged] == losses


def test_an_interrupted_run_did_not_end_well(tmp_path, monkeypatch):
    faulty = Faulty(monkeypatch)

    def interrupt(*_):
        raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        tracking.open_trackers("json", tmp_path / "run") as trackers,
    ):
        tiny_run(tmp_path / "run", callbacks=[*trackers, interrupt])
    assert faulty.tried == ["open", "log 200", "broken off"]


def test_mistakes_are_noticed_before_anything_is_written(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def refused(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "train", "FetchReach", *words])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 2
        return capsys.readouterr().err

    known = "unknown tracker 'wandby'. Did you mean 'wandb'? There are: wandb, trackio."
    assert known in refused("--track", "wandby")
    for name in ("wandb", "trackio"):
        monkeypatch.setitem(sys.modules, name, None)
        assert f"{name} is missing: pip install -c constraints.txt '.[{name}]'" in refused(
            "--track", name
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"tracker": "wandb", "id": "abc", "epochs": 1}', "wandb is missing: pip install"),
        ('{"tracker": "wandb", "id": "../abc"}', "id must be letters and digits"),
        ('{"tracker": "wandb", "epochs": -1}', "epochs must be"),
        ('{"tracker": "os", "id": "abc"}', "unknown tracker 'os'"),
        ('{"tracker": ', "is damaged"),
    ],
)
def test_a_run_that_cannot_be_tracked_is_resumed(content, message, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    (tmp_path / "tracking.json").write_text(content)
    with (
        pytest.warns(UserWarning, match=f"(?s){message}.*goes on without tracking"),
        tracking.open_trackers(None, tmp_path) as trackers,
    ):
        assert not trackers
    assert (tmp_path / "tracking.json").read_text() == content
    Faulty(monkeypatch)
    with tracking.open_trackers("json", tmp_path) as trackers:  # named: there is nothing to warn of
        assert len(trackers) == 1


def test_another_tracker_begins_anew(tmp_path, monkeypatch):
    faulty, run = Faulty(monkeypatch), tmp_path / "run"
    tiny_run(run, epochs=1)
    (run / "tracking.json").write_text('{"tracker": "wandb", "id": "abc", "epochs": 1}')
    tiny_run(run, track="json", resume=True)
    assert [step for step, _ in faulty.logged] == [200, 400]
    assert json.loads((run / "tracking.json").read_text())["id"] != "abc"


class Account:
    """`wandb` as far as it says who is logged in."""

    def __init__(self, logged_in: bool) -> None:
        self.logged_in, self.asked = logged_in, []

    def login(self, prompt: bool) -> bool:
        self.asked.append(prompt)
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
def test_nobody_is_asked_for_an_account(logged_in, chosen, mode, monkeypatch):
    """None leaves it to W&B, which heeds WANDB_MODE and its own settings."""
    if chosen:
        monkeypatch.setenv("WANDB_MODE", chosen)
    account = Account(logged_in)
    assert tracking._wandb_mode(account) == mode
    assert True not in account.asked


def test_the_command_tracks_and_resumes(tmp_path, monkeypatch, capsys):
    faulty = Faulty(monkeypatch)
    small = (
        "--cycles 1 --episodes 1 --gradient-steps 1 --eval-episodes 0 --batch-size 8 --threads 1"
    )
    run = str(tmp_path / "run")

    def command(*words):
        monkeypatch.setattr("sys.argv", ["mrn", *words])
        cli.main()

    command("train", "FetchReach", *small.split(), "--epochs=1", f"--run-dir={run}", "--track=json")
    command("resume", run, "--epochs=2")
    assert [step for step, _ in faulty.logged] == [50, 100]
    assert "track" not in (tmp_path / "run" / "config.json").read_text()  # no setting of the run
    assert mrn.load(run).config.epochs == 2
