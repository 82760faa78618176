"""Video recording of a policy in a separate environment."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from mrn.agent import Agent
from mrn.envs import GoalVectorEnv
from mrn.envs.goals import ChosenGoal
from mrn.envs.rendering import RenderedEnv
from mrn.integrations.frames import (
    ENCODERS,
    annotate_frame,
    grid_shape,
    label_height,
    require_packages,
    resize_frame,
    tile_episodes,
)
from mrn.training.reach import chosen_goal
from mrn.training.rollout import iter_rollouts
from mrn.utils.device import memory_errors, torch_threads
from mrn.utils.errors import UserError
from mrn.utils.files import prepare_output_file, write_atomically
from mrn.utils.seeding import derive_seed
from mrn.utils.validation import Bounds, PositiveInt, Seed, check

Size = Annotated[int, Bounds(ge=64, le=1024)]
"""Height of the picture of an episode in pixels."""
DEFAULT_SIZE, DEFAULT_GRID_SIZE = 480, 240
MAX_SIDE = 2048
"""Maximum width and height of a video: few machines play larger ones, and a grid is kept in
memory."""


@dataclass(frozen=True)
class Recording:
    """Summary of a recorded video."""

    success: tuple[bool, ...]
    """Whether each episode is at its goal at the last step."""
    frames: int
    """Number of frames; a GIF may drop some of them."""
    fps: float
    """Frames per second; one frame is one environment step."""
    width: int
    height: int
    path: Path
    """The video file."""

    @property
    def seconds(self) -> float:
        """Return the duration in seconds."""
        return self.frames / self.fps

    def _repr_html_(self) -> str:
        """Embed the video in a notebook."""
        content = b64encode(self.path.read_bytes()).decode()
        if self.path.suffix.lower() == ".gif":
            return f'<img src="data:image/gif;base64,{content}">'
        return f'<video controls loop autoplay muted src="data:video/mp4;base64,{content}"></video>'


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
    """Record a video of a policy without exploration noise, in a separate environment.

    Each frame shows the step and whether the goal is reached. The last frame of an episode is held
    for one second. With the same OpenGL driver, the same policy and seed give the same file.

    Args:
        agent: Agent whose policy is recorded.
        path: Output file, ending with `.mp4` or `.gif`; its folder is created.
        episodes: Number of episodes.
        seed: Seed of the environment.
        goal: Goal for all episodes; by default goals are sampled.
        grid: Show the episodes side by side instead of one after another.
        size: Height of an episode in pixels, without its label; by default 480, or 240 in a grid.
        force: Overwrite an existing file.

    Returns:
        Success, size and duration of the video. A notebook shows the video itself.

    Raises:
        UserError: The file exists or cannot be written, a package is missing, an argument is out
            of range, the goal has the wrong shape, or the environment cannot be rendered.
    """
    if size is None:
        size = DEFAULT_GRID_SIZE if grid else DEFAULT_SIZE
    for name, value, hint in (("episodes", episodes, PositiveInt), ("seed", seed, Seed)):
        check(name, value, hint)
    check("size", size, Size)
    size += size % 2
    rows, _ = grid_shape(episodes) if grid else (1, 1)
    height = rows * (size + label_height(size))
    if height > MAX_SIDE:
        raise _too_large(height)
    path = Path(path)
    suffix = path.suffix.lower()
    prepare_output_file(path, tuple(ENCODERS), force)
    require_packages(suffix)
    target = None if goal is None else chosen_goal(agent, goal)
    recorder = _Recorder(agent, episodes, seed, target, grid, size)
    with recorder, torch_threads(1), memory_errors("reduce episodes or size"):
        content = ENCODERS[suffix](recorder.frames(), recorder.fps)
    write_atomically(path, content)
    return Recording(
        tuple(recorder.success), recorder.count, recorder.fps, recorder.width, recorder.height, path
    )


class _Recorder:
    """Generator of frames that keeps track of size, number and success."""

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
            self.envs = ChosenGoal(self.camera, goal, agent.task)
        self.fps = self.camera.fps
        self.success: list[bool] = []
        self.count = self.width = self.height = 0

    def frames(self) -> Iterator[np.ndarray]:
        """Yield the frames of the video."""
        clips: Iterable[Iterable[np.ndarray]] = self._episodes()
        if self.grid:
            clips = [tile_episodes(list(self._episodes()))]
        for clip in clips:
            for frame in clip:
                self.height, self.width, _ = frame.shape
                if self.width > MAX_SIDE:
                    raise _too_large(self.width)
                self.count += 1
                yield frame
            for _ in range(round(self.fps)):
                self.count += 1
                yield frame

    def _episodes(self) -> Iterator[list[np.ndarray]]:
        """Yield the annotated frames of each episode."""
        seed = derive_seed(self.seed, "video")
        for rollout in iter_rollouts(self.envs, self.agent.act, self.episodes, seed):
            length = int(rollout.length[0])
            at_start = self.agent.task.is_at_goal(rollout.achieved[:, 0], rollout.goal[0, 0])
            reached = np.concatenate([at_start, rollout.success[0, :length]])
            self.success.append(bool(reached[-1]))
            yield [
                annotate_frame(resize_frame(frame, self.size), step, bool(at_goal))
                for step, (frame, at_goal) in enumerate(
                    zip(self.camera.pictures, reached, strict=True)
                )
            ]

    def __enter__(self) -> "_Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self.envs.close()


def _too_large(side: int) -> UserError:
    return UserError(
        f"the video would be {side} pixels on a side, but at most {MAX_SIDE} are allowed: reduce "
        "episodes or size"
    )
