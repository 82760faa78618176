"""Run configuration. Settings left out come from a recipe, by default the paper's."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.algorithms import (
    AUTO,
    AlgorithmSettings,
    check_goal_mix,
    choose_critic,
    find_algorithm,
    other_algorithms_setting,
)
from mrn.envs.tasks import passes_arguments
from mrn.recipes import (
    DEFAULT_RECIPE,
    FAST,
    PAPER,
    RECIPES,
    TUNED,
    find_overrides,
    find_recipe,
)
from mrn.replay import ReplayConfig
from mrn.schedule import Schedule
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.flags import JSON_TABLE, to_flags
from mrn.utils.html import html_table
from mrn.utils.json_tables import to_json_types
from mrn.utils.naming import Method, safe_name
from mrn.utils.plugins import is_custom, is_loaded, require_consent
from mrn.utils.renames import renamed, upgrade_config
from mrn.utils.validation import Bounds, Fraction, Seed, Threads, Validated, check, from_dict

# With a constructor, tyro does not compare the default None with the annotated type.
_NOT_A_FLAG = tyro.conf.arg(constructor=lambda: None)

GROUPS = ("schedule", "algo_config", "replay")
"""Fields of `Config` that are groups of settings."""
_SOURCE = "_recipe"
"""Attribute of a group with the recipe that it was built from; a changed copy has none."""

Epochs = Annotated[int, Bounds(ge=1, le=10**6)]


@dataclass(frozen=True)
class Config(Validated):
    """Everything that determines a run's result, and where it runs.

    A group of settings left at None is taken from the recipe; a given group is used as it is. Use
    `Config.of` to override single settings of a recipe. `dataclasses.replace` keeps the groups, so
    it cannot change the recipe: the groups of one recipe under the name of another are an error.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Task (`mrn tasks`) or Gymnasium id; `package.module:Id-v0` imports the module first."""
    critic: str = AUTO
    """Critic (`mrn critics`) or custom `package.module:name`; `auto` is `mrn` where one is used."""
    algo: str = "ddpg"
    """Algorithm (`mrn algos`) or custom `package.module:name`; `--help` shows its settings."""
    recipe: tyro.conf.Suppress[str] = PAPER
    """Named preset (`mrn recipes`) of all settings left out: `paper`, `fast` or `tuned`."""
    variant: str = ""
    """Name of these settings, part of the run folder's name: use it to compare settings."""
    seed: Seed = 100
    """Random seed. The paper uses 100, 200, 300, 400 and 500."""
    epochs: Epochs | None = None
    """Training epochs; by default the paper's number for the task, or 50."""
    stop_at: Fraction | None = None
    """Stop after the first evaluation with at least this success rate, for example 0.95."""
    engine: str = "auto"
    """Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool if possible)."""
    async_envs: bool = False
    """Run each Gymnasium environment in its own process."""
    env_timeout: Annotated[float, Bounds(ge=1e-3, le=1e6)] = 60.0
    """Seconds to wait for an environment to start and, with `async_envs`, to respond."""
    reward_shift: Annotated[float, Bounds(ge=-1, le=0)] = 0.0
    """Constant added to the rewards of a custom environment. The sum must lie in [-1, 0]."""
    env_kwargs: Annotated[dict[str, Any], JSON_TABLE] = field(default_factory=dict, hash=False)
    """Keyword arguments of a custom environment's constructor, such as '{"size": 3}'."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:N`, or `auto` (the CPU)."""
    checkpoint_every: Epochs = 1
    """Epochs between checkpoints, from which `mrn resume` continues."""
    threads: Threads | None = None
    """CPU threads for simulation and matrix products; by default all cores."""
    # Groups are never None once the configuration is built.
    schedule: Annotated[Schedule, _NOT_A_FLAG] = None  # type: ignore[assignment]
    algo_config: Annotated[AlgorithmSettings | dict[str, Any], _NOT_A_FLAG] = None  # type: ignore[assignment]
    """Settings of the algorithm; a plain table if the module of a custom algorithm is not
    imported."""
    replay: Annotated[ReplayConfig, _NOT_A_FLAG] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        """Fill groups left at None from the recipe, then validate everything."""
        imports = not isinstance(self.algo_config, dict)  # tables of modules not imported
        defaults = resolve(self.algo, self.recipe, self.task, imports=imports)
        for name, group in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, group)
        if imports and type(self.algo_config) is not type(defaults["algo_config"]):
            raise UserError(
                f"algorithm {self.algo!r} has settings of type "
                f"{type(defaults['algo_config']).__name__}, got {type(self.algo_config).__name__}"
            )
        super().__post_init__()
        object.__setattr__(self, "env_kwargs", to_json_types("env_kwargs", self.env_kwargs))
        if self.variant.partition("+")[0] in RECIPES:
            raise UserError(f"variant {self.variant!r} is the name of a recipe; choose another")
        if imports:
            _check_recipe(self, defaults)
            object.__setattr__(self, "critic", choose_critic(self.algo, self.critic))
            check_goal_mix(self.algo, self.replay.goal_weights)
        if self.stop_at is not None and not self.schedule.eval_episodes:
            raise UserError("stop_at needs evaluations, but eval_episodes is 0")

    @classmethod
    def of(cls, task: str, **settings: Any) -> "Config":
        """Build a configuration from flat keyword arguments, regardless of their group.

        Raises:
            UserError: A setting is unknown or out of range.
        """
        algo, recipe = settings.get("algo", cls.algo), settings.get("recipe", cls.recipe)
        own = [item.name for item in fields(cls) if item.name not in GROUPS]
        grouped = {name: value for name, value in settings.items() if name not in own}
        groups = resolve(algo, recipe, task, grouped)
        return cls(task, **{k: v for k, v in settings.items() if k in own}, **groups)

    @classmethod
    def from_json(cls, data: Any, where: str, trust_code: bool | None = None) -> "Config":
        """Build a configuration from the output of `to_dict`, also of earlier versions.

        Groups may be incomplete or missing: the recipe provides all settings left out.

        Args:
            data: The table.
            where: File name for error messages.
            trust_code: Whether the user allows custom modules that the table names to be imported.
                Training and acting need them. None imports nothing: the settings of a custom
                algorithm stay a plain table unless its module was imported before.

        Raises:
            UserError: A field is missing, unknown or of the wrong type, the algorithm is unknown,
                or the user does not allow an import.
        """
        data = upgrade_config(data)
        if isinstance(data, dict):
            if trust_code is not None:
                kinds = {"environment": "task", "critic": "critic", "algorithm": "algo"}
                names = {kind: data.get(setting) for kind, setting in kinds.items()}
                arguments = passes_arguments(data.get("task"), data.get("env_kwargs"))
                require_consent(where, names, arguments, trust_code)
            data = data | _merge_groups(data, where, imports=trust_code is not None)
        config: Config = from_dict(cls, data, where)
        return config

    @property
    def method(self) -> str:
        """Name to compare by: ALGO-CRITIC, plus recipe and variant if any."""
        named = ("" if self.recipe == PAPER else self.recipe, self.variant)
        return str(Method(self.algo, self.critic, "+".join(filter(None, named))))

    @property
    def folder(self) -> Path:
        """Path of the run below the folder of all runs."""
        return Path(safe_name(self.task), self.method, f"seed-{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of JSON types."""
        return asdict(self)

    def changed(self, recipe: str = PAPER) -> dict[str, Any]:
        """Return the settings that differ from their defaults; `recipe` is the default recipe."""
        raw: dict[str, Any] = {"algo_config": {}} if isinstance(self.algo_config, dict) else {}
        default = Config(self.task, algo=self.algo, recipe=self.recipe, **raw)
        usual = flatten(default.to_dict()) | {"algo": Config.algo, "recipe": recipe}
        return {k: v for k, v in flatten(self.to_dict()).items() if v != usual.get(k, ...)}

    def arguments(self) -> list[str]:
        """Return the arguments of `mrn train` for this configuration, without defaults."""
        return [self.task, *to_flags(self.changed(DEFAULT_RECIPE))]

    def __repr__(self) -> str:
        settings = "".join(f", {name}={value!r}" for name, value in self.changed().items())
        return f"Config.of({self.task!r}{settings})"

    def _repr_html_(self) -> str:
        return html_table(flatten(self.to_dict()))


def resolve(
    algo: str,
    recipe: str,
    task: str = "",
    overrides: Mapping[str, Any] | None = None,
    imports: bool = True,
) -> dict[str, Any]:
    """Return the groups of settings of a run: defaults, then the recipe, then overrides.

    Args:
        algo: Name of the algorithm.
        recipe: Name of the recipe.
        task: Name of the task, which the recipe `tuned` depends on.
        overrides: Individual settings of any group.
        imports: Import the module of a custom algorithm. Otherwise its group is left out, unless
            the module was imported before.

    Raises:
        UserError: The algorithm, the recipe or a setting is unknown, or a value is out of range.
    """
    check("algo", algo, str)
    check("recipe", recipe, str)
    check("task", task, str)
    types: dict[str, type[Any]] = {"schedule": Schedule, "replay": ReplayConfig}
    if imports or not is_custom(algo) or is_loaded(algo):
        types["algo_config"] = find_algorithm(algo).Settings
    owners = _owners(algo, types)
    preset = {**find_recipe(recipe), **find_overrides(task).get((recipe, algo), {})}
    # A recipe serves all algorithms; each takes the settings it has.
    chosen = {name: value for name, value in preset.items() if name in owners}
    for name, value in (overrides or {}).items():
        if name not in owners:
            raise _unknown_setting(name, algo, owners)
        chosen[name] = value
    groups = {
        group: kind(**{name: value for name, value in chosen.items() if owners[name] == group})
        for group, kind in types.items()
    }
    for group in groups.values():
        object.__setattr__(group, _SOURCE, recipe)
    return groups


def settings_of(group: Any) -> dict[str, Any]:
    """Return the settings in a group by name."""
    return {item.name: getattr(group, item.name) for item in fields(group)}


def _merge_groups(data: Mapping[str, Any], where: str, imports: bool) -> dict[str, Any]:
    """Return the groups in a table, completed by the settings of its recipe."""
    algo, recipe = data.get("algo", Config.algo), data.get("recipe", Config.recipe)
    try:
        defaults = resolve(algo, recipe, data.get("task", ""), imports=imports)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    merged = {
        name: from_dict(type(group), settings_of(group) | data[name], where)
        for name, group in defaults.items()
        if isinstance(data.get(name), dict)
    }
    if "algo_config" not in defaults:
        merged["algo_config"] = _raw_settings(data.get("algo_config", {}), where)
    return merged


def _check_recipe(config: Config, defaults: Mapping[str, Any]) -> None:
    """Check that the settings are not those of another recipe; `defaults` are the recipe's own.

    Raises:
        UserError: A group was built from another recipe and has settings in which the two differ,
            or all of these settings are the other's.
    """
    own = flatten({name: settings_of(group) for name, group in defaults.items()})
    chosen = flatten(config.to_dict())
    for recipe in RECIPES:
        # A search finds tuned settings with `fast`, and tasks may lack them when a run is trained.
        if {recipe, config.recipe} == {FAST, TUNED}:
            continue
        groups = resolve(config.algo, recipe, config.task)
        other = flatten({name: settings_of(group) for name, group in groups.items()})
        differing = [name for name in own if own[name] != other[name]]
        taken = [name for name in differing if chosen[name] == other[name]]
        built = [getattr(config, name) for name in groups]
        foreign = [group for group in built if getattr(group, _SOURCE, "") == recipe]
        named = {item.name for group in foreign for item in fields(group)}
        if taken and (taken == differing or not named.isdisjoint(taken)):
            raise UserError(
                f"the settings are those of recipe {recipe!r}, not of {config.recipe!r} "
                f"({', '.join(taken)}): choose recipe {recipe!r}, or build the configuration "
                f"with Config.of(..., recipe={config.recipe!r})"
            )


def _owners(algo: str, types: Mapping[str, type[Any]]) -> dict[str, str]:
    """Return the group of each setting; names must be unique across groups."""
    owners: dict[str, str] = dict.fromkeys((item.name for item in fields(Config)), "")
    for group, kind in types.items():
        for item in fields(kind):
            if item.name in owners:
                raise UserError(
                    f"algorithm {algo!r} declares the setting {item.name!r}, which every run "
                    "already has; rename it"
                )
            owners[item.name] = group
    return {name: group for name, group in owners.items() if group}


def _unknown_setting(name: str, algo: str, owners: Iterable[str]) -> UserError:
    """Return the error for a setting that a run does not have."""
    if message := renamed(name):
        return UserError(message)
    own = [item.name for item in fields(Config) if item.name not in ("task", *GROUPS)]
    return other_algorithms_setting(name, algo) or unknown_name("setting", name, [*own, *owners])


def _raw_settings(settings: Any, where: str) -> dict[str, Any]:
    """Return the settings of a custom algorithm whose module is not imported."""
    try:
        check("algo_config", settings, dict[str, Any])
        known = {item.name for group in (Config, Schedule, ReplayConfig) for item in fields(group)}
        if twice := sorted(known & set(settings)):
            raise UserError(f"algo_config has a setting {twice[0]!r}, which every run already has")
        return to_json_types("algo_config", settings)
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested settings by name; names are unique across groups."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= value if name in GROUPS else {name: value}
    return flat
