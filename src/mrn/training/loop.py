"""The training loop: envs -> rollout -> replay -> algorithm.update -> evaluate -> run folder."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from mrn.agent import Agent
from mrn.config import Config
from mrn.distributed import join_ranks
from mrn.envs import GoalVectorEnv
from mrn.runs.layout import weights_file
from mrn.runs.metrics import Row, is_finished, reached_stop_at
from mrn.runs.policy_file import Selection
from mrn.training.callbacks import Callback, call_on_cycle, call_on_epoch
from mrn.training.evaluation import evaluate
from mrn.training.progress import print_line
from mrn.training.setup import ActiveRun, open_run, prepare_run
from mrn.training.trainer import Trainer
from mrn.training.weights import find_weights
from mrn.utils.device import threads_stall, torch_threads
from mrn.utils.seeding import derive_seed


def run(
    config: Config,
    folder: Path,
    progress: bool = True,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
) -> Agent:
    """Train an agent.

    Args:
        config: Settings of the run.
        folder: Run folder: new or empty, or the folder of the run to resume.
        progress: Whether to show the progress.
        resume: Whether to resume the run in the folder, if any, bit-identically.
        callbacks: User code that runs after each cycle and each epoch.

    Raises:
        UserError: A name is unknown, the environment does not fit, or the folder is taken.
        RunError: The run failed; its last checkpoint is valid.
        Interrupted: A signal such as Ctrl-C stopped the run after it saved a checkpoint.
    """
    with join_ranks() as ranks:
        progress = progress and ranks.is_main
        context = prepare_run(config, folder, resume, ranks)
        if context.is_finished():
            print_line(f"{folder} is finished; nothing left to train", progress)
            # Its modules are those of `config`, which the caller named or consented to.
            agent = Agent.load(find_weights(folder), context.device, trust_code=True)
            agent.run_dir = folder
            return agent
        trainer = context.make_trainer()
        trainer.agent.run_dir = folder
        with open_run(context, trainer, progress) as active:
            print_summary(active)
            if start_or_resume(active):
                train(active, callbacks)
        return trainer.agent


def train(active: ActiveRun, callbacks: Sequence[Callback]) -> None:
    """Train epoch by epoch: cycles, evaluation, weights, metrics, checkpoint."""
    trainer, schedule = active.trainer, active.context.config.schedule
    while trainer.epoch <= active.context.epochs:
        losses, stopped = trainer.mean_losses(), False
        while trainer.cycle < schedule.cycles:
            before, losses = losses, train_cycle(trainer, active.envs)
            speed = trainer.clock.steps_per_second
            active.display.finish_cycle(trainer.epoch, trainer.cycle, speed)
            row = cycle_row(trainer, losses, before)
            active.run_dir.log_cycle(row)
            stopped = is_stopped(active, row, callbacks)
            interrupted = active.interrupts.requested()
            if (stopped or interrupted) and trainer.cycle < schedule.cycles:
                save_checkpoint(active)
                if stopped:
                    return
                raise active.interrupts.end(active.context.resume_command)
        row = training_row(trainer, losses)
        if schedule.eval_episodes:
            row |= evaluate_epoch(trainer, active.eval_envs)
        row |= trainer.clock.row()
        active.run_dir.check()
        save_weights(trainer, active.context.folder, row["success"])
        active.run_dir.log(row)  # after the weights: every logged epoch has them
        trainer.next_epoch()
        active.display.finish_epoch(row)
        is_last = is_last_epoch(active, row, callbacks) or stopped
        interrupted = active.interrupts.requested()
        if is_last or interrupted or is_checkpoint_due(trainer):
            save_checkpoint(active)
        if is_last:
            return
        if interrupted:
            raise active.interrupts.end(active.context.resume_command)


def print_summary(active: ActiveRun) -> None:
    """Print what is trained, and where."""
    context, trainer = active.context, active.trainer
    config, size = context.config, context.ranks.size
    processes = f", {size} processes" if size > 1 else ""
    precision = "" if context.precision == "float32" else f", {context.precision}"
    memory = trainer.replay.nbytes * size / 2**20
    active.display.print(
        f"{context.task.spec.name}, {config.algo} with critic {config.critic}, seed {config.seed}"
    )
    active.display.print(
        f"on {context.device}{precision}{processes}, replay {memory:,.0f} MiB, in {context.folder}"
    )
    active.display.print(f"watch it with: tensorboard --logdir {shlex.quote(str(context.folder))}")
    on_cpu = active.display.shown and context.device.type == "cpu"
    if on_cpu and threads_stall(context.threads):
        active.display.print(
            f"warning: updates are slow with {context.threads} threads, because other programs use "
            "the cores; try --threads 1"
        )


def start_or_resume(active: ActiveRun) -> bool:
    """Restore the newest checkpoint, if any, then write the settings to the run folder.

    Returns:
        Whether any epoch is left to train. None may be left if the metrics were damaged.
    """
    trainer, config = active.trainer, active.context.config
    rows = active.checkpoints.load(trainer)
    repeated = active.run_dir.begin(rows)
    if repeated:
        epochs = "1 epoch" if repeated == 1 else f"{repeated} epochs"
        active.display.print(f"no checkpoint yet: repeating {epochs} from the start")
    if rows is not None:
        active.display.resume(trainer.epoch, trainer.cycle)
    return not is_finished(rows or (), config.epochs, config.stop_at)


def train_cycle(trainer: Trainer, envs: GoalVectorEnv) -> dict[str, float]:
    """Collect episodes and take gradient steps; return the mean metrics of the epoch so far."""
    with trainer.clock.measure("rollout"):
        trainer.collect(envs)
    with trainer.clock.measure("update"):
        trainer.learn()
        return trainer.mean_losses()


def cycle_row(trainer: Trainer, losses: dict[str, float], before: dict[str, float]) -> Row:
    """Return the metrics of the last cycle, from the epoch's means with it and before it."""
    cycle = trainer.cycle
    return {
        "epoch": trainer.epoch,
        "cycle": cycle,
        "env_steps": trainer.env_steps,
        "updates": trainer.updates,
        **{name: cycle * mean - (cycle - 1) * before[name] for name, mean in losses.items()},
    }


def is_stopped(active: ActiveRun, row: Row, callbacks: Sequence[Callback]) -> bool:
    """Call the callbacks after a cycle on rank 0; return on all ranks whether to stop."""
    ranks, agent = active.context.ranks, active.trainer.agent
    return bool(ranks.all_reduce_max(ranks.is_main and call_on_cycle(callbacks, agent, row)))


def training_row(trainer: Trainer, losses: dict[str, float]) -> Row:
    """Return the metrics of an epoch before its evaluation."""
    return {
        "epoch": trainer.epoch,
        "env_steps": trainer.env_steps,
        "updates": trainer.updates,
        "success": None,
        "success_any": None,
        "steps_to_success": None,
        "steps_per_second": trainer.clock.steps_per_second,
        **losses,
    }


def evaluate_epoch(trainer: Trainer, envs: GoalVectorEnv) -> Row:
    """Evaluate the policy with its own random numbers, so that training is not affected."""
    config = trainer.config
    seed = derive_seed(config.seed, "evaluation", trainer.epoch)
    with trainer.clock.measure("evaluation"), torch_threads(1):
        episodes, act = config.schedule.eval_episodes, trainer.agent.on_cpu().act
        result = evaluate(envs, act, episodes, seed, ranks=trainer.ranks)
    return {
        "success": result.success,
        "success_any": result.success_any,
        "steps_to_success": result.steps_to_success,
    }


def save_weights(trainer: Trainer, folder: Path, success: float | None) -> None:
    """Save the latest weights, also as the best ones if no epoch had a higher success rate."""
    is_best = (success or 0.0) >= trainer.best
    trainer.best = max(trainer.best, success or 0.0)
    if not trainer.ranks.is_main:
        return
    agent = trainer.agent
    agent.epoch = trainer.epoch
    agent.save(weights_file(folder))
    if is_best:
        agent.selection = Selection(trainer.epoch, success, trainer.config.schedule.eval_episodes)
        agent.save(weights_file(folder, "best"))
        agent.selection = None


def is_last_epoch(active: ActiveRun, row: Row, callbacks: Sequence[Callback]) -> bool:
    """Call the callbacks on rank 0; return whether training ends, the same on all ranks."""
    context, trainer = active.context, active.trainer
    stopped = context.ranks.is_main and call_on_epoch(callbacks, trainer.agent, row)
    done = trainer.epoch > context.epochs or reached_stop_at(row, context.config.stop_at)
    return bool(context.ranks.all_reduce_max(done or stopped))


def is_checkpoint_due(trainer: Trainer) -> bool:
    """Return whether the interval between checkpoints has passed."""
    return (trainer.epoch - 1) % trainer.config.checkpoint_every == 0


def save_checkpoint(active: ActiveRun) -> None:
    """Save the state of the run, from which it can resume."""
    active.checkpoints.save(active.trainer, active.run_dir.rows)
