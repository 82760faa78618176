"""Training and loading from Python: `mrn.train` and `mrn.load`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from mrn.agent import Agent
from mrn.config import Config
from mrn.envs.tasks import OBJECT_PREFIX
from mrn.integrations.tracking import open_trackers
from mrn.recipes import DEFAULT_RECIPE
from mrn.training.callbacks import Callback, EpochFunction, as_callbacks
from mrn.training.loop import run
from mrn.training.weights import find_weights, run_folder
from mrn.utils.device import find_device
from mrn.utils.errors import UserError
from mrn.utils.files import as_path

if TYPE_CHECKING:
    import gymnasium as gym


def train(
    task: "str | gym.Env[Any, Any] | Callable[..., gym.Env[Any, Any]]",
    *,
    run_dir: str | Path | None = None,
    progress: bool = True,
    resume: bool = False,
    callbacks: Sequence[Callback | EpochFunction] = (),
    track: str | None = None,
    **settings: Any,
) -> Agent:
    """Train an agent, by default with the recipe `fast`.

    Args:
        task: Name of a task (`mrn tasks`), Gymnasium id of a goal environment, or an environment
            as an object: a class or function that creates it, or an instance, which serves as a
            template. An object is not saved: to evaluate or resume in another process, pass it
            again.
        run_dir: Run folder; by default `runs/TASK/ALGO-CRITIC+RECIPE/seed-SEED`.
        progress: Whether to show a progress bar, or plain lines without a terminal.
        resume: Whether to resume the run in the folder, if any, bit-identically.
        callbacks: Functions called after each epoch with the agent and a dictionary of the epoch's
            metrics, or `mrn.Callback` objects, which also run after each cycle. Training stops if
            one returns True.
        track: Also log the run to `wandb` or `trackio`. A resumed run continues its entry there.
        **settings: Any field of `mrn.Config` or of its groups, for example
            `critic="mrn", epochs=10, seed=100, batch_size=512`. `recipe="paper"` is the paper's
            protocol.

    Returns:
        The trained agent. Metrics and weights are in the run folder.

    Raises:
        UserError: A setting is unknown or out of range, the environment does not fit, the run
            folder is not empty, or the tracker's package is missing.
        RunError: The run failed: a non-finite number, a dead environment or a full disk. Its last
            checkpoint is valid.
        KeyboardInterrupt: Ctrl-C or another signal stopped the run; it is saved and can be resumed.
    """
    config = Config.of(_task_name(task), **({"recipe": DEFAULT_RECIPE} | settings))
    checked = as_callbacks(callbacks)
    folder = Path("runs") / config.folder if run_dir is None else as_path("run_dir", run_dir)
    with open_trackers(track, folder) as trackers:
        return run(config, folder, progress, resume, [*checked, *trackers])


def load(
    run: str | Path,
    weights: str = "latest",
    device: str | torch.device = "auto",
    trust_code: bool = False,
    env: "gym.Env[Any, Any] | Callable[..., gym.Env[Any, Any]] | None" = None,
) -> Agent:
    """Load a trained agent.

    Args:
        run: A run folder, a weights file, or `zoo:NAME` for a policy shipped with the package.
        weights: `latest`, or `best` for the epoch with the highest success rate in its evaluation.
            Evaluate it again before quoting it: `Agent.selection` is biased upward.
        device: `cpu`, `cuda`, `cuda:N`, `auto`, or a `torch.device`.
        trust_code: Whether to import the modules of a custom environment, critic or algorithm that
            the file names. Modules that were imported before need no consent.
        env: The environment, if the agent was trained on an object. `predict` does not need it.

    Raises:
        UserError: The run does not exist, its file is damaged, or it names custom code without
            `trust_code`.
    """
    agent = Agent.load(find_weights(run, weights), find_device(device), trust_code)
    agent.run_dir = run_folder(run)
    if env is not None:
        from mrn.envs.objects import register_object  # imports Gymnasium

        if not agent.spec.env_id.startswith(OBJECT_PREFIX):
            raise UserError(f"{run} was trained on {agent.spec.env_id}, a name: remove env")
        register_object(env, agent.spec.env_id)
    return agent


def _task_name(task: Any) -> str:
    """Return the name of a task, also of an environment passed as an object."""
    if isinstance(task, str):
        return task
    from mrn.envs.objects import task_of_object  # imports Gymnasium

    return task_of_object(task)
