"""Commands that export a policy: `mrn export` and `mrn video`."""

from pathlib import Path
from typing import Annotated

import tyro

from mrn.cli.arguments import Goal
from mrn.utils.terminal import show


def export(
    run: Annotated[str, tyro.conf.arg(metavar="RUN")],
    out: Annotated[Path, tyro.conf.arg(metavar="OUT")],
    weights: str = "latest",
    force: bool = False,
    trust_code: bool = False,
) -> None:
    """Export a policy to ONNX, to run it without PyTorch and without this package.

    Args:
        run: Run folder, weights file, or `zoo:NAME` (see `mrn zoo`).
        out: Output file, for example policy.onnx.
        weights: `latest`, or `best` for the epoch with the highest success rate.
        force: Overwrite an existing file.
        trust_code: Import the custom modules that the run names.
    """
    import mrn
    from mrn.integrations.onnx import export as export_onnx

    agent = mrn.load(run, weights, "cpu", trust_code)
    export_onnx(agent, out, force)
    spec = agent.spec
    show(
        f"Wrote {out}: observation ({spec.state_dim}) and desired_goal ({spec.goal_dim}) to "
        f"action ({spec.action_dim}), like agent.predict"
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
    trust_code: bool = False,
) -> None:
    """Record a video of a policy, with the step and the success shown in each frame.

    Args:
        run: Run folder, weights file, or `zoo:NAME` (see `mrn zoo`).
        out: Output file (.mp4 or .gif). Defaults to video.mp4 in the run folder.
        episodes: Number of episodes.
        grid: Show the episodes side by side instead of one after another.
        goal: Goal for all episodes, for example 1.3,0.7,0.42. By default goals are sampled.
        seed: Seed of the environment.
        size: Height of an episode in pixels, without its label. Defaults to 480, or 240 with
            `--grid`.
        weights: `latest`, or `best` for the epoch with the highest success rate.
        force: Overwrite an existing file.
        trust_code: Import the custom modules that the run names.
    """
    import mrn
    from mrn.integrations.video import record
    from mrn.runs.layout import VIDEO
    from mrn.training.weights import output_folder

    agent = mrn.load(run, weights, "cpu", trust_code)
    out = output_folder(run) / VIDEO if out is None else out
    recording = record(agent, out, episodes, seed, goal, grid, size, force)
    show(
        f"Wrote {out}: {sum(recording.success)} of {len(recording.success)} episodes reach their "
        f"goal, {recording.width} x {recording.height} pixels, {recording.seconds:.1f} s, "
        f"{out.stat().st_size / 2**20:.1f} MB"
    )
