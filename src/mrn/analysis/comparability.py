"""Whether runs that are compared were trained alike, but for what is compared."""

from collections.abc import Iterable

from mrn.analysis.epochs import Methods, late, lengths
from mrn.analysis.runs import Run
from mrn.config import flatten, resolve
from mrn.recipes import RECIPES
from mrn.runs.run_dir import MUTABLE_SETTINGS

COMPARED = ("algo", "critic", "recipe", "variant", "seed")
"""Settings in which methods, and the runs of a method, are meant to differ."""
SET_BY_RECIPES = {name for settings in RECIPES.values() for name in settings}


def differences(task: str, methods: Methods, names: dict[str, str]) -> list[str]:
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
    behind = [run for runs in late(methods).values() for run in runs]
    if behind:
        who = ", ".join(f"{names[run.method]} seed {run.seed}" for run in behind)
        found.append(
            f"{task}: epochs differ in length, and some runs have not got to where they first "
            f"meet; left out: {who}"
        )
    if len(set().union(*lengths(methods).values())) > 1:
        found.append(
            f"{task}: epochs differ in length and have not met yet, or seeds of one method differ "
            "in it: after as many epochs, as here, some have played more episodes than others, and "
            "no method is called the best"
        )
    return found


def _differing(runs: Iterable[tuple[Run, str]]) -> dict[str, str]:
    """Settings with more than one value, and who has which."""
    values: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    named: set[str] = {*MUTABLE_SETTINGS, *COMPARED}  # and what variants stand for
    for run, shown in runs:
        if run.config is None:
            continue
        settings = run.config.to_dict()
        named |= {part.partition("=")[0] for part in run.config.variant.split("+")}
        # An agent's own settings are part of it: compared between runs of that agent alone.
        own = settings.pop("algo_config")
        usual = resolve(run.config.algo, run.config.recipe, imports=False)
        by_recipe = {k: v for group in usual.values() for k, v in vars(group).items()}
        for algo, part in (("", flatten(settings)), (run.config.algo, own)):
            for name, value in part.items():
                # What a recipe stands for differs where recipes do.
                # Those of a user's agent are not known here, and taken to be its recipe's.
                is_recipes = name in SET_BY_RECIPES and value == by_recipe.get(name, value)
                told = "as its recipe has it" if is_recipes else str(value)
                values.setdefault((algo, name), []).append((shown, told, str(value)))
    return {
        name: ", ".join(f"{shown} {told}".strip() for shown, told, _ in each)
        for (_, name), each in values.items()
        if name not in named
        and len({told for _, told, _ in each}) > 1
        and len({value for _, _, value in each}) > 1
    }
