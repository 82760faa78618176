"""Run configuration. Settings left out come from a recipe, by default the paper's."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.algorithms import (
    ALGORITHMS,
    AUTO,
    Algorithm,
    AlgorithmSettings,
    choose_critic,
    find_algorithm,
)
from mrn.recipes import DEFAULT_RECIPE, OVERRIDES, PAPER, RECIPES, find_recipe
from mrn.replay import ReplayConfig
from mrn.utils.errors import UserError, unknown_name
from mrn.utils.json_tables import parse_json_table, to_json_types
from mrn.utils.naming import Method, safe_name
from mrn.utils.renames import renamed, upgrade_config
from mrn.utils.validation import Bounds, Fraction, Seed, Threads, Validated, check, from_dict

JSON_TABLE = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda words: parse_json_table(words[0]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [json.dumps(value)],
)
"""Command-line syntax of a table of names and values."""

# With a constructor, tyro does not compare the default None with the annotated type.
_NOT_A_FLAG = tyro.conf.arg(constructor=lambda: None)

GROUPS = ("schedule", "algo_config", "replay")
"""Fields of `Config` that are groups of settings."""

Epochs = Annotated[int, Bounds(ge=1, le=10**6)]


@dataclass(frozen=True)
class Schedule(Validated):
    """How rollouts, gradient steps and evaluation alternate."""

    cycles: Annotated[int, Bounds(ge=1, le=10**6)] = 50
    """Cycles per epoch. A cycle is one episode in each environment, then the gradient steps."""
    num_envs: Annotated[int, Bounds(ge=1, le=10**5)] = 20
    """Parallel environments. Each plays one episode per cycle."""
    gradient_steps: Annotated[int, Bounds(ge=0, le=10**6)] = 40
    """Gradient steps per cycle."""
    warmup_episodes: Annotated[int, Bounds(ge=0, le=10**9)] = 0
    """Episodes with uniform random actions at the start of the run, rounded up to whole cycles."""
    eval_episodes: Annotated[int, Bounds(ge=0, le=10**6)] = 100
    """Evaluation episodes after each epoch; 0 turns evaluation off."""


@dataclass(frozen=True)
class Config(Validated):
    """Everything that determines a run's result, and where it runs.

    A group of settings left at None is taken from the recipe.
    """

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """Task (`mrn tasks`) or Gymnasium id; `package.module:Id-v0` imports the module first."""
    critic: str = AUTO
    """Critic (`mrn critics`) or custom `package.module:name`; `auto` is `mrn` where one is used."""
    algo: str = "ddpg"
    """Algorithm (`mrn algos`) or custom `package.module:name`; `--help` shows its settings."""
    recipe: tyro.conf.Suppress[str] = PAPER
    """Named preset that provides all settings left out (`mrn recipes`): `paper` or `fast`."""
    variant: str = ""
    """Name of these settings, part of the run folder's name: use it to compare settings."""
    seed: Seed = 100
    """Random seed. The paper uses 100, 200, 300, 400 and 500."""
    epochs: Epochs | None = None
    """Training epochs; by default the paper's number for the task, or 50."""
    stop_at: Fraction | None = None
    """Stop after the first evaluation with at least this success rate, for example 0.95."""
    engine: str = "auto"
    """Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool if it has the task)."""
    async_envs: bool = False
    """Run each Gymnasium environment in its own process."""
    env_timeout: Annotated[float, Bounds(ge=1e-3, le=1e6)] = 60.0
    """Seconds to wait for an environment process before giving up."""
    reward_shift: Annotated[float, Bounds(ge=-1, le=0)] = 0.0
    """Constant added to the rewards of a custom environment. The sum must lie in [-1, 0]."""
    env_kwargs: Annotated[dict[str, Any], JSON_TABLE] = field(default_factory=dict, hash=False)
    """Keyword arguments of a custom environment's constructor, such as '{"size": 3}'."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:N`, or `auto` (the GPU if there is one)."""
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
        imports = not isinstance(self.algo_config, dict)
        defaults = resolve(self.algo, self.recipe, imports=imports)
        for name, group in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, group)
        if imports and type(self.algo_config) is not type(defaults["algo_config"]):
            raise UserError(
                f"algorithm {self.algo!r} has settings of type "
                f"{type(defaults['algo_config']).__name__}, got {type(self.algo_config).__name__}"
            )
        super().__post_init__()
        if self.variant.partition("+")[0] in RECIPES:
            raise UserError(f"variant {self.variant!r} is the name of a recipe; choose another")
        if imports:
            object.__setattr__(self, "critic", choose_critic(self.algo, self.critic))
        object.__setattr__(self, "env_kwargs", to_json_types("env_kwargs", self.env_kwargs))
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
        groups = resolve(algo, recipe, grouped)
        return cls(task, **{k: v for k, v in settings.items() if k in own}, **groups)

    @classmethod
    def from_json(cls, data: Any, where: str, imports: bool = True) -> "Config":
        """Build a configuration from the output of `to_dict`, also of earlier versions.

        Args:
            data: The table.
            where: File name for error messages.
            imports: Import the module of a custom algorithm. Training and acting need it; without
                it the algorithm's settings stay a plain table.

        Raises:
            UserError: A field is missing, unknown or of the wrong type, or the algorithm is
                unknown.
        """
        data = upgrade_config(data)
        algo = data.get("algo", cls.algo) if isinstance(data, dict) else None
        if isinstance(algo, str) and ":" in algo and not imports:
            data = data | {"algo_config": _raw_settings(data.get("algo_config", {}), where)}
        elif isinstance(algo, str) and "algo_config" in data:
            try:
                settings = find_algorithm(algo).Settings
            except UserError as error:
                raise UserError(f"{where}: {error}") from None
            data = data | {"algo_config": from_dict(settings, data["algo_config"], where)}
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

    def arguments(self) -> list[str]:
        """Return the arguments of `mrn train` for this configuration, without defaults."""
        raw: dict[str, Any] = {"algo_config": {}} if isinstance(self.algo_config, dict) else {}
        default = Config(self.task, algo=self.algo, recipe=self.recipe, **raw)
        usual = flatten(default.to_dict()) | {"algo": Config.algo, "recipe": DEFAULT_RECIPE}
        chosen = [
            (name.replace("_", "-"), value)
            for name, value in flatten(self.to_dict()).items()
            if name not in usual or value != usual[name]
        ]
        return [self.task] + [word for name, value in chosen for word in _words(name, value)]


def resolve(
    algo: str, recipe: str, overrides: Mapping[str, Any] | None = None, imports: bool = True
) -> dict[str, Any]:
    """Return the groups of settings of a run: defaults, then the recipe, then overrides.

    Args:
        algo: Name of the algorithm.
        recipe: Name of the recipe.
        overrides: Individual settings of any group.
        imports: Import the module of a custom algorithm; otherwise its group is left out.

    Raises:
        UserError: The algorithm, the recipe or a setting is unknown, or a value is out of range.
    """
    check("algo", algo, str)
    check("recipe", recipe, str)
    types: dict[str, type[Any]] = {"schedule": Schedule, "replay": ReplayConfig}
    if imports or ":" not in algo:
        types["algo_config"] = find_algorithm(algo).Settings
    owners = _owners(algo, types)
    preset = {**find_recipe(recipe), **OVERRIDES.get((recipe, algo), {})}
    # A recipe serves all algorithms; each takes the settings it has.
    chosen = {name: value for name, value in preset.items() if name in owners}
    for name, value in (overrides or {}).items():
        if name not in owners:
            raise _unknown_setting(name, algo, owners)
        chosen[name] = value
    return {
        group: kind(**{name: value for name, value in chosen.items() if owners[name] == group})
        for group, kind in types.items()
    }


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


def other_algorithms_setting(name: str, algo: str) -> UserError | None:
    """Return the error for a setting that only other algorithms have, or None."""

    def has(algorithm: type[Algorithm]) -> bool:
        return any(item.name == name for item in fields(algorithm.Settings))

    owners = [other for other, algorithm in ALGORITHMS.items() if has(algorithm)]
    if not owners or has(find_algorithm(algo)):
        return None
    return UserError(
        f"{name} is a setting of {', '.join(owners)}, not of {algo}: choose one of these "
        "algorithms, or remove the setting"
    )


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


def _words(name: str, value: Any) -> list[str]:
    """Return a setting as arguments of `mrn train`."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple | list):
        return [f"--{name}", *map(str, value)]
    # One word, because a value may start with a dash.
    return [f"--{name}={json.dumps(value) if isinstance(value, dict) else value}"]
