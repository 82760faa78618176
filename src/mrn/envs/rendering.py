"""Environments that render every step, for videos and in a window.

Rendering changes the simulation state, so training and evaluation never use these.
"""

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mrn.envs.engines import make_envs
from mrn.envs.opengl import check_display, configure_opengl
from mrn.envs.tasks import ENVPOOL_ENV_IDS, TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step
from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error

MODE, WINDOW_MODE = "rgb_array", "human"
"""Gymnasium's render modes for images as arrays, and for a window."""
DEFAULT_FPS = 25.0
"""Steps per second of environments without `render_fps`."""

# Closer and slightly higher than the default camera, in whose view the goal is only a few pixels
# wide. The arm may still hide the goal. FetchSlide needs the wider default view.
_CLOSE_UP = {"distance": 1.6, "elevation": -25.0}
CAMERAS = dict.fromkeys(("FetchReach", "FetchPush", "FetchPick"), _CLOSE_UP)
"""Camera settings by task; other tasks keep the camera of the environment."""


class RenderedEnv(GoalVectorEnv):
    """A single environment that stores an image of every step of the current episode."""

    engine = "gymnasium"

    def __init__(self, task: TaskSpec, size: int, goal: np.ndarray | None = None) -> None:
        """Create the environment.

        Args:
            task: The task.
            size: Height of the images in pixels, if the environment supports it.
            goal: Goal to render instead of the environment's own, shape (goal,). The observation
                keeps the environment's goal; `ChosenGoal` replaces that one.

        Raises:
            UserError: The environment or this machine cannot render.
        """
        super().__init__(task, 1)
        native = task.env_id in ENVPOOL_ENV_IDS
        if native:  # importing MuJoCo may fail if OpenGL is broken
            configure_opengl()
        else:
            _check_modes(task, MODE)
        self.envs, self.env = _make_single(task, MODE)
        self.fps = float(self.env.metadata.get("render_fps") or DEFAULT_FPS)
        self.goal = goal
        self.pictures: list[np.ndarray] = []
        if not native and "mujoco" in sys.modules:  # the environment may have imported it
            configure_opengl()
        if hasattr(self.env.unwrapped, "mujoco_renderer"):
            self._configure_camera(size)

    def _configure_camera(self, size: int) -> None:
        """Set the image size and the camera; only possible before the first image."""
        env, renderer = self.env.unwrapped, self.env.unwrapped.mujoco_renderer
        scale = size / renderer.height
        renderer.height, renderer.width = size, round(renderer.width * scale)
        env.model.vis.global_.offheight = renderer.height
        env.model.vis.global_.offwidth = renderer.width
        if camera := CAMERAS.get(self.task.name):
            renderer.default_cam_config = {**renderer.default_cam_config, **camera}

    def _reset(self, seed: int, episode: int) -> Observation:
        observation = self.envs.reset(seed, episode)
        if self.goal is not None and not _set_goal(self.env, self.goal):
            _warn_own_goal(self.task)
            self.goal = None
        self.pictures = [self._render()]
        return observation

    def _step(self, action: np.ndarray) -> Step:
        step = self.envs._step(action)
        self.pictures.append(self._render())
        return step

    def _render(self) -> np.ndarray:
        """Return an image of the environment, shape (height, width, 3)."""
        name = self.task.name
        try:
            if self.goal is not None:  # every step: some draw a new goal once reached
                _set_goal(self.env, self.goal)
            rendered = self.env.render()
        except Exception as error:
            raise UserError(
                f"the environment of {name} failed in a render: {describe_error(error)}"
            ) from error
        image = np.asarray(rendered)
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
            raise UserError(
                f"{name} cannot be rendered: render() must return a uint8 array of shape (height, "
                f"width, 3), got {image.dtype} and {image.shape}"
            )
        return image

    def close(self) -> None:
        """Close the environment."""
        self.envs.close()


class WindowEnv(GoalVectorEnv):
    """A single environment that shows every step in a window, at its own speed."""

    engine = "gymnasium"

    def __init__(self, task: TaskSpec, goal: np.ndarray | None = None) -> None:
        """Create the environment; the first reset opens the window.

        Args:
            task: The task.
            goal: Goal to show instead of the environment's own, shape (goal,).

        Raises:
            UserError: The environment cannot render, or there is no display.
        """
        super().__init__(task, 1)
        check_display(mujoco=task.env_id in ENVPOOL_ENV_IDS)
        _check_modes(task, WINDOW_MODE)
        self.envs, self.env = _make_single(task, WINDOW_MODE)
        if hasattr(self.env.unwrapped, "mujoco_renderer"):
            check_display(mujoco=True)
        self.goal = goal

    def _reset(self, seed: int, episode: int) -> Observation:
        observation = self.envs.reset(seed, episode)
        _stop_if_closed(self.env)
        if self.goal is not None and not _set_goal(self.env, self.goal):
            _warn_own_goal(self.task)
            self.goal = None
        return observation

    def _step(self, action: np.ndarray) -> Step:
        if self.goal is not None:  # every step: some draw a new goal once reached
            _set_goal(self.env, self.goal)
        return self.envs._step(action)  # in this mode, a step also renders

    def close(self) -> None:
        """Close the environment and its window."""
        self.envs.close()


def _make_single(task: TaskSpec, mode: str) -> tuple[GoalVectorEnv, Any]:
    """Create one environment that renders; return it as a vector and by itself."""
    kwargs = task.env_kwargs | {"render_mode": mode}
    vector: Any = make_envs(replace(task, env_kwargs=kwargs), 1, "gymnasium")
    return vector, vector.envs.envs[0]


def _set_goal(wrapped: Any, goal: np.ndarray) -> bool:
    """Set the environment's `goal` attribute, as in Gymnasium-Robotics; return success."""
    env = wrapped.unwrapped
    if np.shape(getattr(env, "goal", ())) != goal.shape:
        return False
    try:
        env.goal = goal.astype(np.asarray(env.goal).dtype)  # else Gymnasium warns
    except AttributeError:  # a property
        return False
    if hasattr(env, "update_target_site_pos"):  # a maze moves its target only on request
        env.update_target_site_pos()
    return True


def _stop_if_closed(wrapped: Any) -> None:
    """Raise a `UserError` in the next step after the user closes the window of MuJoCo.

    Gymnasium destroys the window and continues to draw, which may kill the process.
    """
    viewer = getattr(getattr(wrapped.unwrapped, "mujoco_renderer", None), "viewer", None)
    if viewer is None:
        return
    import glfw

    def close(*_: object) -> None:
        raise UserError("the window was closed before the last episode ended")

    def press(window: Any, key: int, *details: int) -> None:
        (close if key == glfw.KEY_ESCAPE else viewer._key_callback)(window, key, *details)

    glfw.set_window_close_callback(viewer.window, close)
    glfw.set_key_callback(viewer.window, press)


def _warn_own_goal(task: TaskSpec) -> None:
    warnings.warn(
        f"{task.name} renders its own goal, if any, instead of the chosen one: it has no writable "
        "attribute 'goal' of that shape",
        stacklevel=2,
    )


def _check_modes(task: TaskSpec, mode: str) -> None:
    """Check that an environment supports a render mode, before Gymnasium warns and fails.

    Raises:
        UserError: The environment does not support it.
    """
    from mrn.envs.custom import make_env

    kwargs = {name: value for name, value in task.env_kwargs.items() if name != "render_mode"}
    env = make_env(task.env_id, kwargs)
    modes = env.metadata.get("render_modes") or []
    env.close()
    if mode not in modes:
        need = "A video needs an environment that", " and returns an image from render()"
        if mode == WINDOW_MODE:
            need = "A window needs an environment that", " and draws in reset and step"
        raise UserError(
            f"{task.name} cannot be rendered: {mode!r} is not in its metadata['render_modes'] "
            f"({', '.join(map(repr, modes)) or 'none'}). {need[0]} accepts render_mode={mode!r}"
            f"{need[1]}"
        )
