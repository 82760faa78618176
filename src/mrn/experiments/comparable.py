"""Whether runs that are compared were trained alike, but for what is compared."""

from collections.abc import Iterable

from mrn.config import flatten
from mrn.experiments.runs import Run, episodes_per_epoch, strides
from mrn.recipes import RECIPES
from mrn.training.rundir import CHANGEABLE

COMPARED = ("agent", "critic", "recipe", "variant", "seed")
"""Settings in which methods, and the runs of a method, are meant to differ."""


def differences(task: str, methods: dict[str, list[Run]], names: dict[str, str]) -> list[str]:
    """What to be told before the methods on a task are compared, a sentence each.

    Args:
        task: Its name.
        methods: The runs of each.
        names: How the methods are shown.
    """
    found = []
    for method, runs in methods.items():
        within = _differing((run, "") for run in runs)
        if within:
            found.append(f"{task}, {names[method]}: its runs differ in {', '.join(sorted(within))}")
    known = ([run for run in runs if run.config is not None] for runs in methods.values())
    between = _differing((run, names[run.method]) for runs in known for run in runs[:1])
    if between:
        settings = "; ".join(f"{name} ({between[name]})" for name in sorted(between))
        found.append(f"{task}: the methods were not trained alike: {settings}")
    lengths = {episodes_per_epoch(run) for runs in methods.values() for run in runs} - {0}
    if len(lengths) > 1 and set(strides(methods).values()) == {1}:
        each = " and ".join(f"{length:,}" for length in sorted(lengths))
        found.append(
            f"{task}: epochs have {each} episodes, and not all runs have got to where these meet: "
            "they are compared epoch by epoch, however long"
        )
    return found


def _differing(runs: Iterable[tuple[Run, str]]) -> dict[str, str]:
    """Settings with more than one value, and who has which."""
    values: dict[tuple[str, str], list[tuple[str, str]]] = {}
    named: set[str] = {*CHANGEABLE, *COMPARED}  # and what recipes and variants stand for
    for run, shown in runs:
        if run.config is None:
            continue
        settings = run.config.to_dict()
        named |= set(RECIPES.get(run.config.recipe, {}))
        named |= {part.partition("=")[0] for part in run.config.variant.split("+")}
        # An agent's own settings are part of it: compared between runs of that agent alone.
        own = settings.pop("learning")
        for name, value in flatten(settings).items():
            values.setdefault(("", name), []).append((shown, str(value)))
        for name, value in own.items():
            values.setdefault((run.config.agent, name), []).append((shown, str(value)))
    return {
        name: ", ".join(f"{shown} {value}".strip() for shown, value in each)
        for (_, name), each in values.items()
        if name not in named and len({value for _, value in each}) > 1
    }
