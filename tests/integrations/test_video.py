"""Tests of video recording: file content, annotations, rendering, and no side effects."""

import base64
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
from mrn.envs import find_task, make_envs
from mrn.envs.opengl import PACKAGES, configure_opengl
from mrn.envs.rendering import RenderedEnv, _set_goal
from mrn.integrations.frames import (
    EMPTY_GRAY,
    NOT_REACHED_COLOR,
    REACHED_COLOR,
    annotate_frame,
)
from mrn.integrations.video import record
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from tests.commands import MRN
from tests.commands import mrn as command

DRAWS = "tests.envs.custom_envs:Draws-v0"  # 8 steps, 10 fps, no OpenGL
HELD = 10  # frames of the last step, one second
LABEL = 16  # height of the label of a small frame
NEAR, FAR = [0.5, 1.5], [9.0, -9.0]


@pytest.fixture(scope="module")
def opengl():
    """Skip the test if nothing can be rendered on this machine."""
    try:
        configure_opengl()
    except mrn.UserError as error:
        pytest.skip(f"NOT TESTED with OpenGL: {error}")


def make_agent(task: str = DRAWS) -> mrn.Agent:
    return mrn.Agent(mrn.Config.of(task, hidden_dim=16), find_task(task).spec, torch.device("cpu"))


def walker() -> mrn.Agent:
    """Return an agent that reaches goals that are close and above, and cannot move down."""
    agent = make_agent()
    agent.normalizer.goal.update(torch.randn(50, 2, generator=torch.Generator().manual_seed(1)) * 9)

    def act(observation):
        delta = observation.goal - observation.achieved
        return np.stack([delta[:, 0].clip(-1, 1), delta[:, 1].clip(0, 4) / 2 - 1], axis=1)

    agent.act = act
    return agent


def read_video(file: Path) -> tuple[np.ndarray, float]:
    """Decode an MP4: frames of shape (T, height, width, 3) and frames per second."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", file]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True)
    match = re.search(rb"Video: h264 .* yuv420p.*?, (\d+)x(\d+).*?, ([\d.]+) fps", done.stderr)
    width, height, fps = map(float, match.groups())
    frames = np.frombuffer(done.stdout, np.uint8).reshape(-1, int(height), int(width), 3)
    return frames, fps


def shows_success(frame: np.ndarray) -> bool:
    """Return whether the border has the color for success; compression changes it slightly."""
    color = frame[-1, 10:-10].mean(axis=0)
    to_reached, to_not_reached = (
        np.abs(color - reference).max() for reference in (REACHED_COLOR, NOT_REACHED_COLOR)
    )
    assert min(to_reached, to_not_reached) < 20
    return bool(to_reached < to_not_reached)


def test_video_shows_every_step_and_success(tmp_path):
    found = record(walker(), tmp_path / "new" / "video.mp4", episodes=2, size=65, goal=NEAR)
    frames, fps = read_video(tmp_path / "new" / "video.mp4")
    each = 1 + 8 + HELD
    assert frames.shape == (2 * each, 66 + LABEL, 100, 3)  # 40 x 60, enlarged to even sides
    assert fps == found.fps == 10
    assert (found.frames, found.width, found.height) == (2 * each, 100, 66 + LABEL)
    assert found.seconds == 2 * each / 10
    assert found.success == (True, True)
    for episode in (frames[:each], frames[each:]):
        success = [shows_success(frame) for frame in episode]
        assert success[0] is False  # with this seed, no episode starts at the goal
        assert success == sorted(success)  # the agent stays at the goal
        assert success.index(True) in (1, 2)  # distance 1.5, steps of 1
        assert np.abs(episode[9].astype(int) - episode[-1]).mean() < 2  # the last frame is held
    never = record(walker(), tmp_path / "far.mp4", episodes=1, goal=FAR)
    assert never.success == (False,)
    assert (never.width, never.height) == (720, 480 + 36)
    assert not any(map(shows_success, read_video(tmp_path / "far.mp4")[0]))


def test_grid_shows_all_episodes_at_once(tmp_path):
    found = record(walker(), tmp_path / "video.mp4", episodes=3, grid=True, size=64)
    frames, _ = read_video(tmp_path / "video.mp4")
    assert frames.shape == (1 + 8 + HELD, 2 * (64 + LABEL), 192, 3)
    assert len(found.success) == 3
    height = 64 + LABEL
    cells = [frames[0, y : y + height, x : x + 96] for y in (0, height) for x in (0, 96)]
    assert np.abs(cells[3][4:, 4:].astype(int) - EMPTY_GRAY).max() < 12  # edges blur
    for one, other in ((0, 1), (0, 2), (1, 2)):  # different starts and goals
        assert np.abs(cells[one].astype(int) - cells[other]).max() > 100


@pytest.mark.parametrize("suffix", ["mp4", "gif"])
def test_video_is_deterministic_given_the_seed(tmp_path, suffix):
    content = []
    for number, seed in enumerate((3, 3, 4)):
        file = tmp_path / f"{number}.{suffix}"
        record(make_agent(), file, episodes=1, seed=seed, size=64)
        content.append(file.read_bytes())
    assert content[0] == content[1] != content[2]


def test_path_may_be_a_string(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = record(walker(), "new/video.gif", episodes=1, size=64)
    with Image.open(tmp_path / "new" / "video.gif") as gif:
        assert gif.size == (found.width, found.height)


def test_gif_loops_and_has_the_right_duration(tmp_path):
    found = record(walker(), tmp_path / "video.gif", episodes=1, size=64)
    with Image.open(tmp_path / "video.gif") as gif:
        assert (gif.size, gif.info["loop"]) == ((96, 64 + LABEL), 0)
        durations = []
        for number in range(gif.n_frames):
            gif.seek(number)
            durations.append(gif.info["duration"])
        assert sum(durations) == 1000 * found.seconds


def red_center(frame: np.ndarray) -> np.ndarray:
    """Return row and column of the center of all red pixels."""
    values = frame.astype(int)
    pixels = np.argwhere((values[..., 0] > 150) & (values[..., 1:].max(axis=-1) < 60))
    assert len(pixels) >= 8
    return pixels.mean(axis=0)


def test_chosen_goal_is_rendered(tmp_path):
    agent = walker()
    record(agent, tmp_path / "video.mp4", episodes=1, goal=[-4, 6], size=400)
    frames, _ = read_video(tmp_path / "video.mp4")
    # Ten times the size that the environment renders, at 1.95 x 2.95 pixels per unit.
    assert red_center(frames[0]) == pytest.approx([30 + 10 * 1.95 * 16, 10 * 2.95 * 6], abs=10)
    fixed = make_agent("tests.envs.custom_envs:FixedGoal-v0")
    with pytest.warns(
        UserWarning, match="FixedGoal-v0 renders its own goal, .* no writable attribute 'goal'"
    ):
        record(fixed, tmp_path / "fixed.mp4", episodes=1, goal=[0.5, 0.5], size=64)


def test_label_covers_no_part_of_the_picture():
    picture = np.random.default_rng(0).integers(256, size=(240, 320, 3), dtype=np.uint8)
    frame, border = annotate_frame(picture, 3, True), 4
    assert frame.shape == (240 + 18, 320, 3)
    inside = (slice(0, -border), slice(border, -border))
    assert np.array_equal(frame[18:][inside], picture[inside])


def test_chosen_goal_keeps_the_data_type_of_the_environment():
    """Otherwise Gymnasium warns about every observation."""
    env = RenderedEnv(find_task(DRAWS).spec, 64, np.array([1.0, 2.0]))
    env.reset(0)
    env.env.unwrapped.goal = np.zeros(2, np.float32)
    assert _set_goal(env.env, np.array([1.0, 2.0]))
    assert env.env.unwrapped.goal.dtype == np.float32
    assert env.env.unwrapped.goal.tolist() == [1.0, 2.0]
    env.close()


@pytest.mark.parametrize("task", ["FetchReach", "FetchPush"])
def test_fetch_target_is_rendered_at_the_goal(opengl, task):
    spec, pictures = find_task(task).spec, []
    for goal in ([1.35, 0.60, 0.43], [1.35, 0.90, 0.43]):
        with RenderedEnv(spec, 200, np.array(goal)) as envs:
            envs.reset(3)
            world = envs.env.unwrapped
            target = world.model.site("target0").id
            np.testing.assert_allclose(world.data.site_xpos[target], goal, atol=1e-9)
            pictures += envs.pictures
    assert [picture.shape for picture in pictures] == [(200, 200, 3)] * 2
    assert np.abs(red_center(pictures[0]) - red_center(pictures[1])).max() > 25


def test_hand_target_is_rendered_with_its_rotation(opengl):
    spec, pictures = find_task("BlockRotateZ").spec, []
    for angle in (0.0, 0.7):
        goal = np.array([1.0, 0.87, 0.17, math.cos(angle), 0, 0, math.sin(angle)])
        with RenderedEnv(spec, 120, goal) as envs:
            envs.reset(3)
            pictures += envs.pictures
    changed = np.argwhere(np.abs(pictures[0].astype(int) - pictures[1]).max(axis=-1) > 60)
    assert len(changed) > 50
    assert changed[:, 1].min() > 60  # the target beside the hand, not the block in it


def test_recording_does_not_change_agent_or_rollouts(opengl, tmp_path):
    agent = make_agent("FetchReach")
    before = {name: value.clone() for name, value in agent.state_dict().items()}

    def collect():
        with make_envs(agent.spec, 1, "gymnasium") as envs:
            episodes = Episodes.allocate(agent.spec, 1)
            return [values.copy() for values in collect_episodes(envs, agent.act, episodes, 5)]

    first = collect()
    found = record(agent, tmp_path / "video.mp4", episodes=1, seed=5, size=64)
    assert (found.frames, found.fps) == (1 + 50 + 25, 25)
    assert read_video(tmp_path / "video.mp4")[0].shape == (76, 64 + LABEL, 64, 3)
    for one, other in zip(first, collect(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(torch.equal(before[name], value) for name, value in agent.state_dict().items())


def without_display():
    """Simulate a machine without a display and without MUJOCO_GL."""
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        os.environ.pop(name, None)


def test_maze_is_rendered_without_a_display(opengl, tmp_path):
    """Mazes store their renderer in a different attribute than robots."""
    agent = make_agent("PointMaze_UMaze")
    agent.spec = replace(agent.spec, horizon=3)  # a short episode is enough
    agent.save(tmp_path / "latest.safetensors")
    words = ("video", tmp_path, "video.gif", "--episodes", "1", "--size", "64")
    done = command(*words, cwd=tmp_path, prepare=without_display)
    assert done.returncode == 0, done.stderr
    with Image.open(tmp_path / "video.gif") as gif:
        assert np.ptp(np.asarray(gif.convert("L"))[20:]) > 50


NO_DRIVER = {"MUJOCO_GL": "egl", "__EGL_VENDOR_LIBRARY_FILENAMES": "/nowhere"}
RENDERING_OFF = {"MUJOCO_GL": "off"}


@pytest.mark.skipif(sys.platform != "linux", reason="EGL is only available on Linux")
@pytest.mark.parametrize(
    ("task", "variables", "reason"),
    [
        ("FetchReach", NO_DRIVER, "egl failed ("),
        ("FetchReach", RENDERING_OFF, "MUJOCO_GL must be one of egl"),
        ("HandReach", RENDERING_OFF, "MUJOCO_GL must be one of egl"),
    ],
)
def test_missing_opengl_shows_what_to_install(tmp_path, task, variables, reason):
    make_agent(task).save(tmp_path / "latest.safetensors")
    # A new process, because the fork server may have loaded an OpenGL driver already.
    words, env = [MRN, "video", tmp_path, "video.mp4"], os.environ | variables
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=env)
    assert done.returncode == 2
    assert done.stderr.startswith("error: MuJoCo cannot render on this machine: ")
    assert reason in done.stderr
    assert f"apt-get install {PACKAGES}" in done.stderr
    assert "Traceback" not in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["latest.safetensors"]


@pytest.mark.parametrize("file", [".ci/run", "docs/deploy.md"])
def test_opengl_packages_are_listed_in(file):
    assert PACKAGES in (Path(__file__).parents[2] / file).read_text()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("Walk", "Walk-v0 cannot be rendered: 'rgb_array' is not in"),
        ("DrawsNothing", r"render\(\) must return a uint8 array .* got object and \(\)"),
        ("FailsAtRender", r"failed in a render: OSError: no pencil \(.*custom_envs.py, line \d+\)"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*render:UserWarning")  # Gymnasium warns about None
def test_environment_without_rendering_is_rejected(tmp_path, task, message):
    with pytest.raises(mrn.UserError, match=message):
        record(make_agent(f"tests.envs.custom_envs:{task}-v0"), tmp_path / "video.mp4")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("suffix", "kind"), [(".mp4", "video/mp4"), (".gif", "image/gif")])
def test_notebook_shows_the_video(tmp_path, suffix, kind):
    path = tmp_path / f"video{suffix}"
    html = record(walker(), path, episodes=1, size=64)._repr_html_()
    found = re.search(r'src="data:(.+?);base64,(.+?)"', html)
    assert found[1] == kind
    assert base64.b64decode(found[2]) == path.read_bytes()
