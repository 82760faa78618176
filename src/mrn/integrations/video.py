"""A film of a policy at work, in an environment of its own."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from mrn.agent import Agent
from mrn.envs import GoalVectorEnv
from mrn.envs.goals import ChosenGoal, is_at_goal
from mrn.envs.rendering import RenderedEnv
from mrn.integrations.frames import (
    WRITERS,
    check_packages,
    fitted,
    grid_of,
    marked,
    side_by_side,
)
from mrn.training.reach import chosen_goal
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import memory_errors, torch_threads
from mrn.utils.errors import UserError
from mrn.utils.files import prepare_output_file, write_atomically
from mrn.utils.seeding import derive_seed
from mrn.utils.validation import Bounds, PositiveInt, Seed, check

Size = Annotated[int, Bounds(ge=64, le=1024)]
"""Pixels."""
SINGLE_PROCESS, IN_GRID = 480, 240
"""Heights of an episode's picture, if none is asked for."""
LARGEST = 2048
"""Pixels of a side of the film: more is what few machines play, and a grid is kept in memory."""


@dataclass(frozen=True)
class Recording:
    """What a film shows."""

    reached: tuple[bool, ...]
    """Of each episode, whether it is at its goal at the last step."""
    frames: int
    """Pictures, before a GIF leaves some out."""
    fps: float
    """Of them in a second: as many as the environment has steps."""
    width: int
    height: int

    @property
    def seconds(self) -> float:
        """How long it plays."""
        return self.frames / self.fps


def record(
    agent: Agent,
    path: str | Path,
    episodes: int = 4,
    seed: int = 0,
    goal: Sequence[float] | np.ndarray | None = None,
    grid: bool = False,
    size: int | None = None,
    force: bool = False,
) -> Recording:
    """Write a film of a policy as it acts in evaluation, in an environment of its own.

    Each frame says the step, and whether the goal is reached; an episode's last one is held for a
    second. Where OpenGL is the same, the same policy and seed are the same film.

    Args:
        agent: Whose policy.
        path: A file that ends with `.mp4` or `.gif`; its folder is made.
        episodes: How many to play.
        seed: Of the environment.
        goal: One of the user's choice for all episodes; by default each draws its own.
        grid: Whether to show them side by side instead of one after the other.
        size: Height of an episode's picture in pixels; by default 480, in a grid 240.
        force: Replace a file that is there.

    Raises:
        UserError: The file cannot be written or is there already, a package is missing, a number
            is out of range, the goal does not fit, or the environment or this machine cannot draw.
    """
    if size is None:
        size = IN_GRID if grid else SINGLE_PROCESS
    for name, value, accepted in (("episodes", episodes, PositiveInt), ("seed", seed, Seed)):
        check(name, value, accepted)
    check("size", size, Size)
    size += size % 2
    rows, _ = grid_of(episodes) if grid else (1, 1)
    if rows * size > LARGEST:
        raise _too_large(rows * size)
    path = Path(path)
    ending = path.suffix.lower()
    prepare_output_file(path, tuple(WRITERS), force)
    check_packages(ending)
    target = None if goal is None else chosen_goal(agent, goal)
    film = _Film(agent, episodes, seed, target, grid, size)
    with film, torch_threads(1), memory_errors("show fewer episodes, or smaller ones (size)"):
        content = WRITERS[ending](film.frames(), film.fps)
    write_atomically(path, content)
    return Recording(tuple(film.reached), film.count, film.fps, film.width, film.height)


class _Film:
    """Frames as they are made, and what has been seen in them."""

    def __init__(
        self,
        agent: Agent,
        episodes: int,
        seed: int,
        goal: np.ndarray | None,
        grid: bool,
        size: int,
    ) -> None:
        self.agent, self.episodes, self.seed, self.grid, self.size = (
            agent, episodes, seed, grid, size,
        )  # fmt: skip
        self.camera = RenderedEnv(agent.spec, size, goal)
        self.envs: GoalVectorEnv = self.camera
        if goal is not None:
            self.envs = ChosenGoal(self.camera, goal, agent.task.reward)
        self.fps = self.camera.fps
        self.reached: list[bool] = []
        self.count = self.width = self.height = 0

    def frames(self) -> Iterator[np.ndarray]:
        """The film, frame by frame."""
        shots: Iterable[Iterable[np.ndarray]] = self._shots()
        if self.grid:
            shots = [side_by_side(list(self._shots()))]
        for shot in shots:
            for frame in shot:
                self.height, self.width, _ = frame.shape
                if self.width > LARGEST:
                    raise _too_large(self.width)
                self.count += 1
                yield frame
            for _ in range(round(self.fps)):
                self.count += 1
                yield frame

    def _shots(self) -> Iterator[list[np.ndarray]]:
        """The marked pictures of each episode."""
        reward = self.agent.task.reward
        seed = derive_seed(self.seed, "video")
        for played in iter_rollouts(self.envs, self.agent.act, self.episodes, seed):
            length = int(played.length[0])
            at_start = is_at_goal(played.achieved[:, 0], played.goal[0, 0], reward)
            reached = np.concatenate([at_start, played.success[0, :length]])
            self.reached.append(bool(reached[-1]))
            yield [
                marked(fitted(picture, self.size), step, bool(there))
                for step, (picture, there) in enumerate(
                    zip(self.camera.pictures, reached, strict=True)
                )
            ]

    def __enter__(self) -> "_Film":
        return self

    def __exit__(self, *_: object) -> None:
        self.envs.close()


def _too_large(side: int) -> UserError:
    return UserError(
        f"the video would be {side} pixels on a side, at most {LARGEST} are drawn: show fewer "
        "episodes in the grid, or smaller ones (size)"
    )
