"""Goal-conditioned reinforcement learning with metric critics."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mrn.agent import Agent, find_weights
from mrn.config import Config
from mrn.critics import make_critic
from mrn.integrations.tracking import open_trackers
from mrn.recipes import DEFAULT_RECIPE
from mrn.training.evaluation import Evaluation
from mrn.training.loop import Callback, run
from mrn.training.reach import Reach
from mrn.utils.device import find_device
from mrn.utils.errors import RunError, UserError
from mrn.version import __version__

__all__ = [
    "Agent",
    "Config",
    "Evaluation",
    "Reach",
    "RunError",
    "UserError",
    "__version__",
    "load",
    "make_critic",
    "train",
]


def train(
    task: str,
    *,
    run_dir: str | Path | None = None,
    progress: bool = True,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    track: str | None = None,
    **settings: Any,
) -> Agent:
    """Train an agent, by the recipe `fast` unless another is named.

    Args:
        task: One of the paper's tasks, or the Gymnasium id of a goal environment.
        run_dir: The run's folder; by default `runs/TASK/AGENT-CRITIC+RECIPE/seed-SEED`.
        progress: Whether to show a progress bar (plain lines where there is no terminal).
        resume: Go on with the run in that folder, if there is one, as if it had never stopped.
        callbacks: Each is called at the end of an epoch with the agent and the epoch's row of
            metrics, a dictionary; training ends where one returns True.
        track: Show the run in `wandb` or `trackio`, too; a resumed run goes on where it was shown.
        **settings: Any field of `mrn.Config` or of its groups, for example
            `critic="mrn", epochs=10, seed=100, batch_size=512`; `recipe="paper"` is the paper's
            protocol.

    Returns:
        The trained agent. Its metrics and weights are in the run folder.

    Raises:
        UserError: A setting is unknown or out of range, the environment does not fit, the run
            folder holds something already, or the tracker's package is missing.
        RunError: The run cannot go on (a number that is not finite, a dead environment, a full
            disk); its last checkpoint is whole.
        KeyboardInterrupt: Ctrl-C or SIGTERM; the run has saved and can be resumed.
    """
    config = Config.of(task, **({"recipe": DEFAULT_RECIPE} | settings))
    folder = Path("runs") / config.folder if run_dir is None else Path(run_dir)
    with open_trackers(track, folder) as trackers:
        return run(config, folder, progress, resume, [*callbacks, *trackers])


def load(run: str | Path, weights: str = "latest", device: str | torch.device = "auto") -> Agent:
    """Load a trained agent.

    Args:
        run: A run folder, a weights file, or `zoo:NAME`: a policy that comes with the package.
        weights: `latest`, or `best` (the epoch with the highest success rate).
        device: `cpu`, `cuda`, `cuda:N`, or `auto`; or one of torch's.

    Raises:
        UserError: There is no such run, or its file is damaged.
    """
    return Agent.load(find_weights(run, weights), find_device(device))
