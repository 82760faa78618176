"""Environments that show themselves as pictures.

Drawing changes the state of a simulation, so that these are for looking at and nothing else:
neither training nor evaluation ever uses one.
"""

import sys
import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from mrn.envs.engines import make_envs
from mrn.envs.opengl import settle_opengl
from mrn.envs.tasks import ON_ENVPOOL, TaskSpec
from mrn.envs.vector import GoalVectorEnv, Observation, Step
from mrn.utils.errors import UserError
from mrn.utils.plugins import describe_error

MODE = "rgb_array"
"""What Gymnasium calls pictures as arrays."""
DEFAULT_FPS = 25.0
"""Steps in a second, where an environment does not tell."""

# Nearer than the environment's own camera, from which the goal is a few pixels large, and a
# little higher. The arm may still hide the goal. FetchSlide needs the overview.
_NEAR = {"distance": 1.6, "elevation": -25.0}
CAMERAS = dict.fromkeys(("FetchReach", "FetchPush", "FetchPick"), _NEAR)
"""Where to look from, by task; elsewhere from where the environment does."""


class RenderedEnv(GoalVectorEnv):
    """One environment that keeps a picture of every step of its episode."""

    engine = "gymnasium"

    def __init__(self, task: TaskSpec, size: int, goal: np.ndarray | None = None) -> None:
        """Make the environment.

        Args:
            task: What it is.
            size: Height of the pictures, in pixels, where the environment can choose.
            goal: To be drawn as the environment's own, shape (goal,); it still shows its own ones
                to the policy (`ChosenGoal` does the rest).

        Raises:
            UserError: It cannot be drawn, or nothing can be on this machine.
        """
        super().__init__(task, 1)
        native = task.env_id in ON_ENVPOOL
        if native:  # MuJoCo's own import may fail where OpenGL is broken
            settle_opengl()
        else:
            _check_modes(task)
        kwargs = task.env_kwargs | {"render_mode": MODE}
        self.envs = make_envs(replace(task, env_kwargs=kwargs), 1, "gymnasium")
        vector: Any = self.envs
        self.env: Any = vector.envs.envs[0]
        self.fps = float(self.env.metadata.get("render_fps") or DEFAULT_FPS)
        self.goal = goal
        self.pictures: list[np.ndarray] = []
        if not native and "mujoco" in sys.modules:  # which it may have imported
            settle_opengl()
        if hasattr(self.env.unwrapped, "mujoco_renderer"):
            self._settle_camera(size)

    def _settle_camera(self, size: int) -> None:
        """Say how large to draw, and from where, which counts until the first picture."""
        world, camera = self.env.unwrapped, self.env.unwrapped.mujoco_renderer
        scale = size / camera.height
        camera.height, camera.width = size, round(camera.width * scale)
        world.model.vis.global_.offheight = camera.height
        world.model.vis.global_.offwidth = camera.width
        if near := CAMERAS.get(self.task.name):
            camera.default_cam_config = {**camera.default_cam_config, **near}

    def _reset(self, seed: int, episode: int) -> Observation:
        observation = self.envs.reset(seed, episode)
        if self.goal is not None and not self._set_goal(self.goal):
            warnings.warn(
                f"{self.task.name} draws its own goals, if any, not the one that was chosen: it "
                "has no attribute 'goal' of that shape to set",
                stacklevel=2,
            )
            self.goal = None
        self.pictures = [self._picture()]
        return observation

    def _step(self, action: np.ndarray) -> Step:
        step = self.envs._step(action)
        self.pictures.append(self._picture())
        return step

    def _set_goal(self, goal: np.ndarray) -> bool:
        """Make a goal the environment's own, if it keeps it as Gymnasium-Robotics does."""
        world = self.env.unwrapped
        if np.shape(getattr(world, "goal", ())) != goal.shape:
            return False
        try:
            world.goal = goal.copy()
        except AttributeError:  # a property
            return False
        if hasattr(world, "update_target_site_pos"):  # a maze, which does not look by itself
            world.update_target_site_pos()
        return True

    def _picture(self) -> np.ndarray:
        """What there is to see, shape (height, width, 3)."""
        name = self.task.name
        try:
            if self.goal is not None:  # again, because some draw a new one when they are there
                self._set_goal(self.goal)
            picture = self.env.render()
        except Exception as error:
            raise UserError(
                f"the environment of {name} failed in a render: {describe_error(error)}"
            ) from error
        found = np.asarray(picture)
        if found.dtype != np.uint8 or found.ndim != 3 or found.shape[2] != 3 or not found.size:
            raise UserError(
                f"{name} cannot be drawn: render() is to return an array of uint8 and shape "
                f"(height, width, 3), got {found.dtype} and {found.shape}"
            )
        return found

    def close(self) -> None:
        """Free the environment."""
        self.envs.close()


def _check_modes(task: TaskSpec) -> None:
    """Refuse an environment that does not draw, before Gymnasium warns and it fails."""
    from mrn.envs.custom import make_env

    kwargs = {name: value for name, value in task.env_kwargs.items() if name != "render_mode"}
    env = make_env(task.env_id, kwargs)
    modes = env.metadata.get("render_modes") or []
    env.close()
    if MODE not in modes:
        raise UserError(
            f"{task.name} cannot be drawn: {MODE!r} is not among its metadata['render_modes'] "
            f"({', '.join(map(repr, modes)) or 'none'}). A video needs an environment that takes "
            f"render_mode={MODE!r} and returns a picture from render()"
        )
