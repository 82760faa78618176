"""Environments that render every step, for video.

Rendering changes the simulation state, so training and evaluation never use these.
"""

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mrn.envs.engines import make_envs
from mrn.envs.opengl import configure_opengl
from mrn.envs.tasks import ENVPOOL_ENV_IDS, TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step
from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error

MODE = "rgb_array"
"""Gymnasium's render mode for images as arrays."""
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
            _check_modes(task)
        kwargs = task.env_kwargs | {"render_mode": MODE}
        self.envs = make_envs(replace(task, env_kwargs=kwargs), 1, "gymnasium")
        vector: Any = self.envs
        self.env: Any = vector.envs.envs[0]
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
        if self.goal is not None and not self._set_goal(self.goal):
            warnings.warn(
                f"{self.task.name} renders its own goal, if any, instead of the chosen one: it has "
                "no writable attribute 'goal' of that shape",
                stacklevel=2,
            )
            self.goal = None
        self.pictures = [self._render()]
        return observation

    def _step(self, action: np.ndarray) -> Step:
        step = self.envs._step(action)
        self.pictures.append(self._render())
        return step

    def _set_goal(self, goal: np.ndarray) -> bool:
        """Set the environment's `goal` attribute, as in Gymnasium-Robotics; return success."""
        env = self.env.unwrapped
        if np.shape(getattr(env, "goal", ())) != goal.shape:
            return False
        try:
            env.goal = goal.astype(np.asarray(env.goal).dtype)  # else Gymnasium warns
        except AttributeError:  # a property
            return False
        if hasattr(env, "update_target_site_pos"):  # a maze moves its target only on request
            env.update_target_site_pos()
        return True

    def _render(self) -> np.ndarray:
        """Return an image of the environment, shape (height, width, 3)."""
        name = self.task.name
        try:
            if self.goal is not None:  # every step: some draw a new goal once reached
                self._set_goal(self.goal)
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


def _check_modes(task: TaskSpec) -> None:
    """Check that an environment supports rendering, before Gymnasium warns and fails.

    Raises:
        UserError: It does not.
    """
    from mrn.envs.custom import make_env

    kwargs = {name: value for name, value in task.env_kwargs.items() if name != "render_mode"}
    env = make_env(task.env_id, kwargs)
    modes = env.metadata.get("render_modes") or []
    env.close()
    if MODE not in modes:
        raise UserError(
            f"{task.name} cannot be rendered: {MODE!r} is not in its metadata['render_modes'] "
            f"({', '.join(map(repr, modes)) or 'none'}). A video needs an environment that accepts "
            f"render_mode={MODE!r} and returns an image from render()"
        )
