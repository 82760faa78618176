"""Commands that take a policy elsewhere."""

from pathlib import Path
from typing import Annotated

import tyro


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
    shape = agent.shape
    print(
        f"Wrote {out}: observation ({shape.state_dim}) and desired_goal ({shape.goal_dim}) to "
        f"action ({shape.action_dim}), as in agent.predict"
    )
