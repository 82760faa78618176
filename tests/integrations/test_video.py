"""A film of a policy: what is in the file, what is marked, and that nothing else is touched."""

import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import torch
from PIL import Image

import mrn
from mrn import cli
from mrn.envs import find_task, make_envs
from mrn.envs.opengl import PACKAGES, configure_opengl
from mrn.envs.rendering import RenderedEnv
from mrn.integrations.frames import EMPTY, NOT_YET, REACHED, gif, mp4, side_by_side
from mrn.integrations.video import record
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from tests.commands import mrn as command

DRAWS = "tests.envs.custom_envs:Draws-v0"  # 8 steps, 10 a second, no OpenGL
HELD = 10  # frames, a second
NEAR, FAR = [0.5, 1.5], [9.0, -9.0]


@pytest.fixture(scope="module")
def opengl():
    try:
        configure_opengl()
    except mrn.UserError as error:
        pytest.skip(f"NOT TESTED with OpenGL: {error}")


def agent_of(task: str = DRAWS) -> mrn.Agent:
    return mrn.Agent(mrn.Config.of(task, hidden_dim=16), find_task(task).spec, torch.device("cpu"))


def walker() -> mrn.Agent:
    """Walks straight to goals above and near, and cannot walk down, to others."""
    agent = agent_of()
    agent.normalizer.goal.update(torch.randn(50, 2, generator=torch.Generator().manual_seed(1)) * 9)

    def act(observation):
        way = observation.goal - observation.achieved
        return np.stack([way[:, 0].clip(-1, 1), way[:, 1].clip(0, 4) / 2 - 1], axis=1)

    agent.act = act
    return agent


def read(file: Path) -> tuple[np.ndarray, float]:
    """Frames of shape (T, height, width, 3), and how many a second, as ffmpeg finds them."""
    words = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        "-i",
        file,
        "-f",
        "rawvideo",
        "-pix_fmt",
        "rgb24",
        "-",
    ]
    done = subprocess.run(words, capture_output=True)
    about = re.search(rb"Video: h264 .* yuv420p.*?, (\d+)x(\d+).*?, ([\d.]+) fps", done.stderr)
    width, height, fps = map(float, about.groups())
    frames = np.frombuffer(done.stdout, np.uint8).reshape(-1, int(height), int(width), 3)
    return frames, fps


def mark_of(frame: np.ndarray) -> bool:
    """Whether the lower edge says that the goal is reached; a film's colours are not exact."""
    colour = frame[-1, 10:-10].mean(axis=0)
    off = {there: np.abs(colour - mark).max() for there, mark in ((1, REACHED), (0, NOT_YET))}
    assert min(off.values()) < 20
    return bool(off[1] < off[0])


def test_the_film_has_every_step_and_says_when_the_goal_is_reached(tmp_path):
    found = record(walker(), tmp_path / "new" / "film.mp4", episodes=2, size=65, goal=NEAR)
    frames, fps = read(tmp_path / "new" / "film.mp4")
    each = 1 + 8 + HELD
    assert frames.shape == (2 * each, 66, 100, 3)  # 40 x 60, enlarged to even numbers
    assert fps == found.fps == 10
    assert (found.frames, found.width, found.height) == (2 * each, 100, 66)
    assert found.seconds == 2 * each / 10
    assert found.reached == (True, True)
    for episode in (frames[:each], frames[each:]):
        marks = [mark_of(frame) for frame in episode]
        assert marks[0] is False  # nobody starts within 0.5 of it, by this seed
        assert marks == sorted(marks)  # it stays there
        assert marks.index(True) in (1, 2)  # the way is 1.5 wide and takes steps of 1
        assert np.abs(episode[9].astype(int) - episode[-1]).mean() < 2  # held
    never = record(walker(), tmp_path / "far.mp4", episodes=1, goal=FAR)
    assert never.reached == (False,)
    assert (never.width, never.height) == (720, 480)
    assert not any(map(mark_of, read(tmp_path / "far.mp4")[0]))


def test_a_grid_shows_all_episodes_at_once(tmp_path):
    found = record(walker(), tmp_path / "film.mp4", episodes=3, grid=True, size=64)
    frames, _ = read(tmp_path / "film.mp4")
    assert frames.shape == (1 + 8 + HELD, 128, 192, 3)
    assert len(found.reached) == 3
    corners = [frames[0, y : y + 64, x : x + 96] for y in (0, 64) for x in (0, 96)]
    assert np.abs(corners[3][4:, 4:].astype(int) - EMPTY).max() < 12  # edges mix in a film
    for one, other in ((0, 1), (0, 2), (1, 2)):  # other starts and goals
        assert np.abs(corners[one].astype(int) - corners[other]).max() > 100


def test_an_episode_that_is_over_holds_its_last_frame():
    films = [
        [np.full((2, 2, 3), number, np.uint8) for number in film] for film in ((1, 2, 3), (7,))
    ]
    seen = [[int(frame[0, 0, 0]), int(frame[0, 2, 0])] for frame in side_by_side(films)]
    assert seen == [[1, 7], [2, 7], [3, 7]]


@pytest.mark.parametrize("ending", ["mp4", "gif"])
def test_the_seed_decides_all(tmp_path, ending):
    content = []
    for number, seed in enumerate((3, 3, 4)):
        file = tmp_path / f"{number}.{ending}"
        record(agent_of(), file, episodes=1, seed=seed, size=64)
        content.append(file.read_bytes())
    assert content[0] == content[1] != content[2]


def test_the_file_may_be_named_by_a_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = record(walker(), "new/film.gif", episodes=1, size=64)
    with Image.open(tmp_path / "new" / "film.gif") as film:
        assert film.size == (found.width, found.height)


def test_a_gif_loops_and_is_played_as_fast_with_fewer_frames(tmp_path):
    found = record(walker(), tmp_path / "film.gif", episodes=1, size=64)
    with Image.open(tmp_path / "film.gif") as film:
        assert (film.size, film.info["loop"]) == ((96, 64), 0)
        times = []
        for number in range(film.n_frames):
            film.seek(number)
            times.append(film.info["duration"])
        assert sum(times) == 1000 * found.seconds
    moving = np.zeros((50, 8, 50, 3), np.uint8)
    moving[range(50), :, range(50)] = 255  # a line that moves by a pixel each frame
    (tmp_path / "fast.gif").write_bytes(gif(moving, 25))
    with Image.open(tmp_path / "fast.gif") as film:
        assert (film.n_frames, film.info["duration"]) == (25, 80)
        film.seek(24)
        assert np.argwhere(np.asarray(film.convert("L"))[4] > 128).tolist() == [[48]]


def red(picture: np.ndarray) -> np.ndarray:
    """The middle of what is red: row and column."""
    values = picture.astype(int)
    places = np.argwhere((values[..., 0] > 150) & (values[..., 1:].max(axis=-1) < 60))
    assert len(places) >= 8
    return places.mean(axis=0)


def test_a_chosen_goal_is_the_one_that_is_drawn(tmp_path):
    agent = walker()
    record(agent, tmp_path / "film.mp4", episodes=1, goal=[-4, 6], size=400)
    frames, _ = read(tmp_path / "film.mp4")
    # Ten times as large as what the environment draws, which is 1.95 x 2.95 pixels per unit.
    assert red(frames[0]) == pytest.approx([10 * 1.95 * 16, 10 * 2.95 * 6], abs=10)
    fixed = agent_of("tests.envs.custom_envs:FixedGoal-v0")
    with pytest.warns(
        UserWarning, match="FixedGoal-v0 renders its own goal, .* no writable attribute 'goal'"
    ):
        record(fixed, tmp_path / "fixed.mp4", episodes=1, goal=[0.5, 0.5], size=64)


@pytest.mark.parametrize("task", ["FetchReach", "FetchPush"])
def test_the_target_of_the_robot_is_seen_where_the_goal_is(opengl, task):
    shape, pictures = find_task(task).spec, []
    for goal in ([1.35, 0.60, 0.43], [1.35, 0.90, 0.43]):
        with RenderedEnv(shape, 200, np.array(goal)) as envs:
            envs.reset(3)
            world = envs.env.unwrapped
            target = world.model.site("target0").id
            np.testing.assert_allclose(world.data.site_xpos[target], goal, atol=1e-9)
            pictures += envs.pictures
    assert [picture.shape for picture in pictures] == [(200, 200, 3)] * 2
    assert np.abs(red(pictures[0]) - red(pictures[1])).max() > 25


def test_the_target_of_the_hand_is_seen_turned(opengl):
    shape, pictures = find_task("BlockRotateZ").spec, []
    for turn in (0.0, 0.7):
        goal = np.array([1.0, 0.87, 0.17, math.cos(turn), 0, 0, math.sin(turn)])
        with RenderedEnv(shape, 120, goal) as envs:
            envs.reset(3)
            pictures += envs.pictures
    changed = np.argwhere(np.abs(pictures[0].astype(int) - pictures[1]).max(axis=-1) > 60)
    assert len(changed) > 50
    assert changed[:, 1].min() > 60  # the target beside the hand, not what is in it


def test_a_film_changes_nothing_that_is_measured(opengl, tmp_path):
    agent = agent_of("FetchReach")
    before = {name: value.clone() for name, value in agent.state_dict().items()}

    def measured():
        with make_envs(agent.spec, 1, "gymnasium") as envs:
            into = Episodes.allocate(agent.spec, 1)
            return [values.copy() for values in collect_episodes(envs, agent.act, into, 5)]

    first = measured()
    found = record(agent, tmp_path / "film.mp4", episodes=1, seed=5, size=64)
    assert (found.frames, found.fps) == (1 + 50 + 25, 25)
    assert read(tmp_path / "film.mp4")[0].shape == (76, 64, 64, 3)
    for one, other in zip(first, measured(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(torch.equal(before[name], value) for name, value in agent.state_dict().items())


def no_choice():
    """As a user without a display, who has chosen nothing."""
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)


def test_a_maze_is_drawn_without_a_display(opengl, tmp_path):
    """It keeps its renderer elsewhere than the robots do."""
    agent = agent_of("PointMaze_UMaze")
    agent.spec = replace(agent.spec, horizon=3)  # a few steps are enough
    agent.save(tmp_path / "latest.safetensors")
    words = ("video", tmp_path, "film.gif", "--episodes", "1", "--size", "64")
    done = command(*words, cwd=tmp_path, prepare=no_choice)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "film.gif") as film:
        assert np.ptp(np.asarray(film.convert("L"))[20:]) > 50


def without_opengl():
    """As where no driver is installed."""
    os.environ["MUJOCO_GL"] = "egl"
    os.environ["__EGL_VENDOR_LIBRARY_FILENAMES"] = "/nowhere"


def drawing_off():
    os.environ["MUJOCO_GL"] = "off"


@pytest.mark.skipif(sys.platform != "linux", reason="EGL is Linux's")
@pytest.mark.parametrize(
    ("task", "prepare", "why"),
    [
        ("FetchReach", without_opengl, "egl failed ("),
        ("FetchReach", drawing_off, "MUJOCO_GL must be one of egl"),
        ("HandReach", drawing_off, "MUJOCO_GL must be one of egl"),
    ],
)
def test_where_nothing_can_be_drawn_it_says_what_to_install(tmp_path, task, prepare, why):
    agent_of(task).save(tmp_path / "latest.safetensors")
    done = command("video", tmp_path, "film.mp4", cwd=tmp_path, prepare=prepare)
    assert done.returncode == 2
    assert done.stderr.startswith("error: MuJoCo cannot render on this machine: ")
    assert why in done.stderr
    assert f"apt-get install {PACKAGES}" in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["latest.safetensors"]


@pytest.mark.parametrize("file", [".ci/run", "docs/deploy.md"])
def test_all_name_the_same_packages(file):
    assert PACKAGES in (Path(__file__).parents[2] / file).read_text()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Walk", "Walk-v0 cannot be rendered: 'rgb_array' is not in"),
        ("DrawsNothing", r"render\(\) must return a uint8 array .* got object and \(\)"),
        ("FailsAtRender", r"failed in a render: OSError: no pencil \(.*custom_envs.py, line \d+\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render:UserWarning")  # Gymnasium's own, of a None
def test_an_environment_that_cannot_be_drawn_is_refused(tmp_path, task, message):
    with pytest.raises(mrn.UserError, match=message):
        record(agent_of(f"tests.envs.custom_envs:{task}-v0"), tmp_path / "film.mp4")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_encoded_is_said():
    with pytest.raises(mrn.RunError, match="ffmpeg cannot encode the video: .*not divisible by 2"):
        mp4([np.zeros((64, 65, 3), np.uint8)] * 3, 10)


def test_the_command_and_its_mistakes(tmp_path, monkeypatch, capsys):
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.chdir(tmp_path)

    def video(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "video", "run", *words, "--size", "64"])
        cli.main()
        return capsys.readouterr().out

    def refused(*words):
        with pytest.raises(SystemExit) as end:
            video(*words)
        assert end.value.code == 2
        return capsys.readouterr().err

    assert "run holds no latest.safetensors" in refused()
    agent_of().save(run / "latest.safetensors")
    assert "must end with .mp4 or .gif, got film.avi" in refused("film.avi")
    (tmp_path / "file").touch()
    assert "file is a file" in refused("file/film.mp4")
    assert "a goal of tests.envs.custom_envs:Draws-v0 has 2 values" in refused("--goal", "1,2,3")
    assert "episodes" in refused("--episodes", "0")
    assert "2112 pixels on a side, at most 2048" in refused("--grid", "--episodes", "1089")
    for package, ending in (("PIL.Image", "gif"), ("imageio_ffmpeg", "mp4")):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            hint = (
                f"{package.partition('.')[0]} is missing: pip install -c constraints.txt '.[video]'"
            )
            assert hint in refused(f"film.{ending}")
    assert sorted(path.name for path in tmp_path.rglob("*.*")) == ["latest.safetensors"]
    said = video("--episodes", "1")
    assert "Wrote run/video.mp4: " in said
    assert " of 1 episodes end at their goal, 96 x 64 pixels, 1.9 s" in said
    there = (run / "video.mp4").read_bytes()
    assert "run/video.mp4 exists already; --force replaces it" in refused()
    assert (run / "video.mp4").read_bytes() == there
    video("--episodes", "2", "--force")
    assert (run / "video.mp4").read_bytes() != there
