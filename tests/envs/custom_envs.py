"""Small goal environments for the tests, supported and unsupported ones."""

import os
import signal
import time
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

WIND = np.random.default_rng(0)
PLANE = spaces.Box(-10, 10, (2,), np.float64)


class Walk(gym.Env[Any, Any]):
    """A point on a plane that moves by its action; reward -1 until within 0.5 of the goal."""

    observation_space: Any = spaces.Dict(
        {"observation": PLANE, "achieved_goal": PLANE, "desired_goal": PLANE}
    )
    action_space: Any = spaces.Box(np.array([-1.0, 0.0]), np.array([1.0, 4.0]), dtype=np.float64)
    ends_at_goal = False
    unit: Any = 1.0
    """Scale of the positions in the observation."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = self.np_random.uniform(-1, 1, 2)
        self.goal = self.np_random.uniform(-2, 2, 2)
        return self._observe(), {}

    def step(self, action):
        self.position = self.position + action
        reward = float(self.compute_reward(self.position * self.unit, self.goal * self.unit, {}))
        return self._observe(), reward, self.ends_at_goal and reward == 0, False, {}

    def compute_reward(self, achieved_goal, desired_goal, info):
        offset = (achieved_goal - desired_goal) / self.unit
        return -(np.linalg.norm(offset, axis=-1) > 0.5).astype(float)

    def _observe(self):
        position = np.clip(self.position, -10, 10) * self.unit
        return {
            "observation": position,
            "achieved_goal": position.copy(),
            "desired_goal": self.goal * self.unit,
        }


HUGE = spaces.Box(-10_000, 10_000, (2,), np.float64)


class Millimeters(Walk):
    unit = 1000.0
    observation_space = spaces.Dict(
        {"observation": HUGE, "achieved_goal": HUGE, "desired_goal": HUGE}
    )


class Kilometers(Walk):
    unit = 1e-4


class FineGoal(Walk):
    """Scales the second coordinate far below the first."""

    unit = np.array([1.0, 1e-4])


class EndsAtGoal(Walk):
    ends_at_goal = True


class OneRowReward(Walk):
    def compute_reward(self, achieved_goal, desired_goal, info):
        assert achieved_goal.shape == (2,)
        return super().compute_reward(achieved_goal, desired_goal, info)


class Wanders(Walk):
    """Draws noise from a generator that reset does not seed."""

    def step(self, action):
        return super().step(action + WIND.normal(size=2))


class Remembers(Walk):
    """Applies the wind of the previous episode, which that episode's seed determined."""

    wind = next_wind = 0.0

    def reset(self, *, seed=None, options=None):
        self.wind, self.next_wind = self.next_wind, float(seed or 0)
        return super().reset(seed=seed, options=options)

    def step(self, action):
        return super().step(action + self.wind)


class Misshapen(Walk):
    def _observe(self):
        return super()._observe() | {"observation": np.zeros(3)}


class TellsSuccess(Walk):
    def step(self, action):
        observation, reward, *rest, _ = super().step(action)
        return observation, reward, *rest, {"is_success": reward == 0}


class TellsSuccessAtEnd(Walk):
    """Terminates far enough up, and only then reports whether it is at the goal."""

    def step(self, action):
        observation, reward, *_ = super().step(action)
        far = bool(self.position[1] > 1.5)
        return observation, reward, far, False, {"is_success": reward == 0} if far else {}


class PaysOne(Walk):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return super().compute_reward(achieved_goal, desired_goal, info) + 1


class SmoothReward(Walk):
    def compute_reward(self, achieved_goal, desired_goal, info):
        return -np.linalg.norm(achieved_goal - desired_goal, axis=-1) / 30


class NoReward(Walk):
    compute_reward: Any = property()


class Discrete(Walk):
    action_space = spaces.Discrete(3)


class Matrix(Walk):
    action_space = spaces.Box(-1, 1, (2, 2))


class IntegerActions(Walk):
    action_space = spaces.Box(-2, 2, (2,), np.int32)


class Strong(Walk):
    action_space = spaces.Box(-1000, 1000, (2,), np.float32)


class Forgets(Walk):
    def _observe(self):
        return {key: value for key, value in super()._observe().items() if key != "observation"}


class NoneReward(Walk):
    compute_reward: Any = None


class FailsAtReset(Walk):
    def reset(self, *, seed=None, options=None):
        return {}["pond"]


class ExitsAtReset(Walk):
    def reset(self, *, seed=None, options=None):
        raise SystemExit(0)


class ExitsAtStep(Walk):
    def step(self, action):
        raise SystemExit(0)


class FailsAtReward(Walk):
    def compute_reward(self, achieved_goal, desired_goal, info):
        raise ValueError("no reward")


class FailsAtStart(Walk):
    def __init__(self):
        raise OSError("no simulator")


class Sized(Walk):
    def __init__(self, size=1.0):
        self.action_space = spaces.Box(-size, size, (2,), np.float32)


class Grows(Walk):
    """Its state has extra values, as a later version of an environment may have."""

    more = 0

    def __init__(self):
        state = spaces.Box(-10, 10, (2 + self.more,), np.float64)
        self.observation_space = spaces.Dict({**Walk.observation_space, "observation": state})

    def _observe(self):
        observation = super()._observe()
        return observation | {
            "observation": np.append(observation["observation"], np.zeros(self.more))
        }


class Unbounded(Walk):
    action_space = spaces.Box(-np.inf, np.inf, (2,))


class Image(Walk):
    observation_space = spaces.Dict(
        {
            "observation": spaces.Box(0, 1, (8, 8)),
            "achieved_goal": PLANE,
            "desired_goal": PLANE,
        }
    )


class GoesNaN(Walk):
    def step(self, action):
        observation, *rest = super().step(action)
        self.steps = getattr(self, "steps", 0) + 1
        if self.steps == 3:
            observation["achieved_goal"] = np.array([np.nan, 0.0])
        return observation, *rest


class Raises(Walk):
    def step(self, action):
        raise ZeroDivisionError("division by zero in the simulator")


class RaisesInOne(Walk):
    """Raises in the process of rank 1."""

    def step(self, action):
        if os.environ.get("RANK") == "1":
            raise RuntimeError("a fuse has blown")
        return super().step(action)


class Hangs(Walk):
    def step(self, action):
        time.sleep(1000)


class Dies(Walk):
    def step(self, action):
        os.kill(os.getpid(), signal.SIGKILL)


class PaysNaN(Walk):
    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, float("nan"), *rest


class Slow(Walk):
    def step(self, action):
        time.sleep(0.02)
        return super().step(action)


class Draws(Walk):
    """Renders a red goal and a black position; 40 x 60 pixels cover [-10, 10] x [-10, 10]."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def render(self):
        image = np.full((40, 60, 3), 255, np.uint8)
        for (x, y), color in ((self.goal, (255, 0, 0)), (self.position, (0, 0, 0))):
            row, column = int((y + 10) * 1.95), int((x + 10) * 2.95)
            image[max(0, row - 2) : row + 3, max(0, column - 2) : column + 3] = color
        return image


class Shows(Walk):
    """Draws the goal in a window at each reset and step: appends it to `shown`."""

    metadata = {"render_modes": ["human"]}
    shown: list = []

    def __init__(self, render_mode=None):
        self.render_mode = render_mode

    def reset(self, *, seed=None, options=None):
        result = super().reset(seed=seed, options=options)
        self.render()
        return result

    def step(self, action):
        result = super().step(action)
        self.render()
        return result

    def render(self):
        if self.render_mode == "human":
            self.shown.append(np.array(self.goal))


class SmoothSuccess(SmoothReward):
    def is_success(self, achieved_goal, desired_goal):
        return np.linalg.norm(achieved_goal - desired_goal) < 0.5


class DrawsNothing(Draws):
    def render(self):
        return None


class FailsAtRender(Draws):
    def render(self):
        raise OSError("no pencil")


class FixedGoal(Draws):
    """Has a read-only goal."""

    goal = property(lambda self: np.array([1.0, 1.0]))

    def reset(self, *, seed=None, options=None):
        gym.Env.reset(self, seed=seed)
        self.position = np.zeros(2)
        return self._observe(), {}


for _class in [Walk, *Walk.__subclasses__(), *Draws.__subclasses__(), SmoothSuccess]:
    gym.register(f"{_class.__name__}-v0", _class, max_episode_steps=8)
gym.register("Endless-v0", Walk)
