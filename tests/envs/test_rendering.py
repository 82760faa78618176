"""Evaluation in a window."""

import os
import subprocess
import sys
from types import SimpleNamespace

import glfw
import numpy as np
import pytest
import torch

import mrn
from mrn.envs import find_task
from tests.cli.helpers import exit_code
from tests.envs.custom_envs import Shows

SHOWS = "tests.envs.custom_envs:Shows-v0"


@pytest.fixture
def display(monkeypatch):
    """Pretend that there is a display; the environment does not use it."""
    monkeypatch.setenv("DISPLAY", ":77")
    monkeypatch.setattr(Shows, "shown", [])


def make_agent(task: str) -> mrn.Agent:
    return mrn.Agent(mrn.Config.of(task, hidden_dim=16), find_task(task).spec, torch.device("cpu"))


def test_window_shows_every_step(display):
    agent = make_agent(SHOWS)
    result = agent.evaluate(3, render=True)
    assert (result.episodes, result.engine) == (3, "gymnasium")
    assert len(Shows.shown) == 3 * (1 + 8)
    assert len({tuple(goal) for goal in Shows.shown}) == 3
    plain = agent.evaluate(3)  # separate environments, without a window
    assert len(Shows.shown) == 3 * (1 + 8)
    assert plain.episodes == 3


def test_window_shows_the_chosen_goal(display):
    make_agent(SHOWS).evaluate(1, render=True, goal=[0.5, -0.25])
    assert np.array_equal(Shows.shown[1:], [[0.5, -0.25]] * 8)  # the reset shows its own


@pytest.mark.parametrize("how", ["close", "escape"])
def test_closed_window_ends_the_evaluation(how, display, monkeypatch):
    """GLFW calls back while MuJoCo draws, and raises the exception of the callback."""
    called, keys = {}, []
    viewer = SimpleNamespace(
        window=object(), _key_callback=lambda window, key, *_: keys.append(key)
    )
    renderer = SimpleNamespace(viewer=viewer)
    monkeypatch.setattr(Shows, "mujoco_renderer", renderer, raising=False)
    monkeypatch.setattr("mrn.envs.rendering.check_display", lambda mujoco: None)
    monkeypatch.setattr(glfw, "set_window_close_callback", lambda _, f: called.update(close=f))
    monkeypatch.setattr(glfw, "set_key_callback", lambda _, f: called.update(key=f))

    def draw(env):
        Shows.shown.extend([env] * (env.render_mode == "human"))
        if len(Shows.shown) == 3:
            called["key"](viewer.window, glfw.KEY_H, 0, glfw.PRESS, 0)
            escape = (glfw.KEY_ESCAPE, 0, glfw.PRESS, 0)
            called["close"](viewer.window) if how == "close" else called["key"](None, *escape)

    monkeypatch.setattr(Shows, "render", draw)
    with pytest.raises(mrn.UserError, match="^the window was closed before the last episode"):
        make_agent(SHOWS).evaluate(3, render=True)
    assert len(Shows.shown) == 3
    assert keys == [glfw.KEY_H]


def test_missing_display_is_an_error(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    assert exit_code(monkeypatch, "eval", "zoo:FetchReach", "--render") == 2
    error = capsys.readouterr().err
    assert "neither DISPLAY nor WAYLAND_DISPLAY is set" in error
    assert "mrn video" in error


def test_display_that_does_not_work_is_an_error():
    """Without the check, GLFW aborts the process."""
    command = [sys.executable, "-m", "mrn", "eval", "zoo:FetchReach", "--render", "--episodes=1"]
    env = {k: v for k, v in os.environ.items() if k != "WAYLAND_DISPLAY"} | {"DISPLAY": ":77"}
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "error: cannot open a window: GLFW failed (" in done.stderr


def test_environment_must_support_windows(display):
    with pytest.raises(mrn.UserError, match="'human' is not in its metadata.*'rgb_array'.*window"):
        make_agent("tests.envs.custom_envs:Draws-v0").evaluate(1, render=True)
    with pytest.raises(mrn.UserError, match="engine 'envpool' cannot render"):
        make_agent("FetchReach").evaluate(1, render=True, engine="envpool")
