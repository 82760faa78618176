"""Command that searches for settings: `mrn tune`."""

import shlex
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from mrn.cli.sweeps import divide_cores
from mrn.recipes import DEFAULT_RECIPE
from mrn.utils.device import ANY_GPU, visible_gpus
from mrn.utils.extras import import_extra
from mrn.utils.naming import safe_name
from mrn.utils.tables import print_table
from mrn.utils.terminal import show
from mrn.utils.validation import PositiveInt, check

SHOWN = 10
"""Number of trials in the printed table; the files have all of them."""


def tune(
    task: Annotated[str, tyro.conf.arg(metavar="TASK")],
    space: Path | None = None,
    trials: int = 50,
    algo: str = "ddpg",
    critic: str = "auto",
    recipe: str = DEFAULT_RECIPE,
    seeds: tuple[int, ...] = (1, 2, 3),
    epochs: int | None = None,
    prune: bool = True,
    seed: int = 0,
    jobs: int | None = None,
    threads: int | None = None,
    runs: Path = Path("runs"),
    name: str = "",
    discard_checkpoints: bool = False,
) -> None:
    """Search for settings with a high mean success; repeat the command to resume.

    Args:
        task: Task (`mrn tasks`) or Gymnasium id.
        space: TOML file with ranges and choices of settings (docs/tune.md); by default the included
            space of the algorithm.
        trials: Total number of trials. The first has the settings of the recipe.
        algo: Algorithm.
        critic: Critic; `auto` is `mrn` where one is used.
        recipe: Preset for all settings outside the space.
        seeds: Training seeds of each trial. Reserve other seeds to check the result.
        epochs: Epochs per run, the budget of a trial; by default that of the space or the task.
        prune: Stop trials whose mean success is below the median of the complete trials.
        seed: Seed of the sampler.
        jobs: Parallel trials; by default one per GPU if the runs use one, else one per core. To
            use more machines, start the same command on each.
        threads: CPU threads per run; by default the cores divided by the jobs.
        runs: Folder of all runs.
        name: Folder of the search below RUNS; by default tune-TASK-ALGO.
        discard_checkpoints: Delete the checkpoints of finished runs to save disk space.
    """
    import_extra("optuna", "tune")
    from mrn.sweeps.backends import LocalBackend
    from mrn.sweeps.search import Search
    from mrn.sweeps.space import read_space
    from mrn.sweeps.trials import BEST, best_trial, command, table
    from mrn.sweeps.tuning import tune as run_search

    check("trials", trials, PositiveInt)
    check("jobs", jobs, PositiveInt | None)
    check("threads", threads, PositiveInt | None)
    searched = read_space(space, task, algo, critic, recipe)
    if epochs is not None:
        searched = replace(searched, fixed=searched.fixed | {"epochs": epochs})
    search = Search(task, algo, critic, recipe, searched, seeds, seed, prune)
    folder = runs / safe_name(name or f"tune-{task}-{algo}")
    devices = visible_gpus() if search.defaults.device == ANY_GPU else []
    jobs, threads = divide_cores(jobs, threads, devices)
    found = run_search(
        search, folder, trials, LocalBackend(jobs, devices), threads, discard_checkpoints
    )

    counts = Counter(trial.state for trial in found)
    show(f"{len(found)} trials: {', '.join(f'{n} {state}' for state, n in counts.items())}")
    print_table(table(search, found, SHOWN))
    best = best_trial(found)
    if best is None:
        show("No trial is complete.")
        return
    is_default = " (the defaults)" if search.tuned(best) == search.defaults else ""
    show(
        f"Best: trial {best.number}{is_default}, mean success {best.success:.1%} on seeds "
        f"{', '.join(map(str, seeds))}"
    )
    show(f"  {command(search, best)}")
    show("The best of many trials is biased upward. Compare it with the defaults on new seeds:")
    show(f"  mrn sweep {shlex.quote(str(folder / BEST))} --runs {shlex.quote(str(runs))}")
    show(f"View the results: mrn report {shlex.quote(str(folder))}")
