"""Commands that take a policy elsewhere."""

from pathlib import Path
from typing import Annotated

import tyro

from mrn.cli.arguments import Goal


def export(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    out: Annotated[Path, tyro.conf.arg(metavar="OUT")],
    weights: str = "latest",
    force: bool = False,
) -> None:
    """Write a policy as an ONNX file, which acts without torch and without this package.

    Args:
        run: A run folder, a weights file, or `zoo:NAME` (`mrn zoo`).
        out: The file, such as policy.onnx.
        weights: `latest`, or `best` (the epoch with the highest success rate).
        force: Replace a file that is there.
    """
    import mrn
    from mrn.integrations.onnx import export as write

    agent = mrn.load(run, weights, "cpu")
    write(agent, out, force)
    spec = agent.spec
    print(
        f"Wrote {out}: observation ({spec.state_dim}) and desired_goal ({spec.goal_dim}) to "
        f"action ({spec.action_dim}), as in agent.predict"
    )


def video(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    out: Annotated[Path | None, tyro.conf.Positional, tyro.conf.arg(metavar="OUT")] = None,
    episodes: int = 4,
    grid: bool = False,
    goal: Goal = None,
    seed: int = 0,
    size: int | None = None,
    weights: str = "latest",
    force: bool = False,
) -> None:
    """Film a policy: its episodes one after the other, or side by side, each step marked.

    Args:
        run: A run folder, a weights file, or `zoo:NAME` (`mrn zoo`).
        out: The file, which ends with .mp4 or .gif; by default video.mp4 in the run folder, where
            `mrn report` finds it (of the zoo in the current folder).
        episodes: Episodes to play.
        grid: Show them side by side.
        goal: One of your choice for all episodes, such as 1.3,0.7,0.42; by default each draws its
            own.
        seed: Seed of the environment.
        size: Height of an episode's picture in pixels; by default 480, in a grid 240.
        weights: `latest`, or `best` (the epoch with the highest success rate).
        force: Replace a file that is there.
    """
    import mrn
    from mrn.agent import output_folder
    from mrn.integrations.video import record
    from mrn.runs.layout import VIDEO

    agent = mrn.load(run, weights, "cpu")
    out = output_folder(run) / VIDEO if out is None else out
    found = record(agent, out, episodes, seed, goal, grid, size, force)
    print(
        f"Wrote {out}: {sum(found.reached)} of {len(found.reached)} episodes end at their goal, "
        f"{found.width} x {found.height} pixels, {found.seconds:.1f} s, "
        f"{out.stat().st_size / 2**20:.1f} MB"
    )
