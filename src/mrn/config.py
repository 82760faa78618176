"""The settings of a run. What is not given is taken from a recipe, by default the paper's."""

import json
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from mrn.agents import AGENTS, AUTO, Learner, choose_critic, find_agent
from mrn.checked import Checked, Limits, Seed, Share, Threads, check, from_dict
from mrn.errors import UserError, unknown
from mrn.naming import Method, safe_name
from mrn.recipes import EXCEPTIONS, PAPER, RECIPES, USUAL, find_recipe
from mrn.replay import Memory


def _json_table(text: str) -> dict[str, Any]:
    table = json.loads(text)
    if not isinstance(table, dict):
        raise ValueError("not a table")
    return table


def _as_json(name: str, table: dict[str, Any]) -> dict[str, Any]:
    """A table as config.json gives it back: with lists for tuples."""
    try:
        return json.loads(json.dumps(table, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise UserError(f"{name} must be what JSON can hold: {error}") from None


JSON_TABLE = tyro.constructors.PrimitiveConstructorSpec(
    nargs=1,
    metavar="JSON",
    instance_from_str=lambda words: _json_table(words[0]),
    is_instance=lambda value: isinstance(value, dict),
    str_from_instance=lambda value: [json.dumps(value)],
)
"""How a table of names and values is written on the command line."""


Epochs = Annotated[int, Limits(least=1, most=10**6)]
"""More than any run has time for; a larger number is a slip."""


@dataclass(frozen=True)
class Schedule(Checked):
    """How collection, updates and evaluation take turns."""

    cycles: Annotated[int, Limits(least=1, most=10**6)] = 50
    """Cycles in an epoch: episodes, then updates, then what the agent does once per cycle."""
    episodes: Annotated[int, Limits(least=1, most=10**5)] = 20
    """Episodes in a cycle, played side by side."""
    updates: Annotated[int, Limits(least=0, most=10**6)] = 40
    """Gradient steps in a cycle."""
    random_episodes: Annotated[int, Limits(least=0, most=10**9)] = 0
    """Episodes at the start of the run with uniform actions; whole cycles."""
    eval_episodes: Annotated[int, Limits(least=0, most=10**6)] = 100
    """Episodes of the evaluation after each epoch; 0 for none."""


_SCHEDULE, _MEMORY = Schedule(), Memory()


class AsWritten(dict[str, Any]):
    """The settings of a user's own agent as config.json has them, its module not being imported."""


@dataclass(frozen=True)
class Config(Checked):
    """Everything that decides a run's result, and where it runs."""

    task: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TASK")]
    """One that `mrn tasks` lists, or the Gymnasium id of a goal environment;
    `package.module:Id-v0` imports the module first."""
    critic: str = AUTO
    """Architecture of the critic (`mrn critics`), or `package.module:name` of your own; `auto` is
    `mrn`, or `none` for an agent that learns without a critic."""
    agent: str = "ddpg"
    """Learning algorithm (`mrn agents`), or `package.module:name` of your own; `--agent NAME
    --help` shows its settings."""
    recipe: tyro.conf.Suppress[str] = PAPER
    """Where settings that are not given come from (`mrn recipes`): `paper` or `fast`."""
    variant: str = ""
    """A name for these settings, where others of the same agent and critic are compared with them:
    part of the folder's name."""
    seed: Seed = 100
    """Seed of everything random. The paper's: 100, 200, 300, 400, 500."""
    epochs: Epochs | None = None
    """Epochs of training; by default the paper's number for the task, 50 for other environments.
    By the recipe `fast` an epoch is a quarter as long as the paper's."""
    stop_at: Share | None = None
    """End before that, after the first evaluation with at least this success rate, such as 0.95."""
    engine: str = "auto"
    """Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool where it has the task)."""
    workers: bool = False
    """Run Gymnasium environments in processes of their own, one each."""
    worker_timeout: Annotated[float, Limits(least=1e-3, most=1e6)] = 60.0
    """Seconds after which such a process that does not answer is given up."""
    reward_shift: Annotated[float, Limits(least=-1, most=0)] = 0.0
    """Added to the rewards of an environment of your own, which must then lie in [-1, 0]."""
    env_kwargs: Annotated[dict[str, Any], JSON_TABLE] = field(default_factory=dict, hash=False)
    """What the constructor of an environment of your own is given, for example '{"size": 3}'."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:N`, or `auto` (the GPU if there is one)."""
    checkpoint_every: Epochs = 1
    """Epochs between checkpoints, from which an interrupted run goes on (`mrn resume`)."""
    threads: Threads | None = None
    """CPU threads for simulation and for matrix products; by default all cores."""
    # Groups of settings; one that is not given, which these stand for, is taken from the recipe.
    schedule: tyro.conf.Suppress[Schedule] = _SCHEDULE
    learning: tyro.conf.Suppress[Any] = None
    """The agent's own settings: a LearnerSettings; `AsWritten` where they are only looked at."""
    memory: tyro.conf.Suppress[Memory] = _MEMORY

    def __post_init__(self) -> None:
        """Take what is not given from the recipe and the agent, and check all."""
        default = {item.name: item.default for item in fields(self)}
        imports = not isinstance(self.learning, AsWritten)
        for name, group in groups_of(self.agent, self.recipe, imports).items():
            given = getattr(self, name)
            if given is default[name]:
                object.__setattr__(self, name, group)
            elif name == "learning" and not isinstance(given, type(group)):
                raise UserError(
                    f"agent {self.agent!r} has settings of type {type(group).__name__}, got "
                    f"{type(given).__name__}"
                )
        super().__post_init__()
        if self.variant.partition("+")[0] in RECIPES:
            raise UserError(
                f"variant {self.variant!r} begins as a recipe does; choose another name"
            )
        if imports:
            object.__setattr__(self, "critic", choose_critic(self.agent, self.critic))
        object.__setattr__(self, "env_kwargs", _as_json("env_kwargs", self.env_kwargs))
        if self.stop_at is not None and not self.schedule.eval_episodes:
            raise UserError("stop_at needs evaluations, but eval_episodes is 0")

    @classmethod
    def of(cls, task: str, **settings: Any) -> "Config":
        """Build a configuration from flat keyword arguments, whichever group they belong to.

        Raises:
            UserError: A setting is out of range, or neither the run's nor the agent's.
        """
        groups = groups_of(settings.get("agent", cls.agent), settings.get("recipe", cls.recipe))
        flat: dict[str, Any] = {"task": task}
        grouped: dict[str, dict[str, Any]] = {name: {} for name in groups}
        owner = {item.name: name for name, group in groups.items() for item in fields(group)}
        own = [item.name for item in fields(cls) if item.name not in groups]
        for name, value in settings.items():
            if name not in owner and name not in own:
                foreign = of_another_agent(name, settings.get("agent", cls.agent))
                raise foreign or unknown("setting", name, [*own[1:], *owner])
            (grouped[owner[name]] if name in owner else flat)[name] = value
        return cls(**flat, **{name: replace(groups[name], **own) for name, own in grouped.items()})

    @classmethod
    def from_json(cls, data: Any, where: str, imports: bool = True) -> "Config":
        """Build a configuration from what `to_dict` returned.

        Args:
            data: The table.
            where: Names the file.
            imports: Whether to import the module of a user's own agent, which is needed to train
                and to act; without it the agent's settings stay `AsWritten`.

        Raises:
            UserError: A field is missing, unknown or of the wrong type, or the agent is unknown.
        """
        agent = data.get("agent", cls.agent) if isinstance(data, dict) else None
        if isinstance(agent, str) and ":" in agent and not imports:
            data = data | {"learning": _as_written(data.get("learning", {}), where)}
        elif isinstance(agent, str) and "learning" in data:
            try:
                settings = find_agent(agent).Settings
            except UserError as error:
                raise UserError(f"{where}: {error}") from None
            data = data | {"learning": from_dict(settings, data["learning"], where)}
        config: Config = from_dict(cls, data, where)
        return config

    @property
    def method(self) -> str:
        """What is compared: AGENT-CRITIC, and where there are any the recipe and the variant."""
        named = ("" if self.recipe == PAPER else self.recipe, self.variant)
        return str(Method(self.agent, self.critic, "+".join(filter(None, named))))

    @property
    def folder(self) -> Path:
        """Where the run goes below the folder of all runs."""
        return Path(safe_name(self.task), self.method, f"seed-{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """As nested dictionaries of JSON types."""
        return asdict(self)

    def arguments(self) -> list[str]:
        """What to give to `mrn train` for these settings: the task, and all that is no default."""
        unread = AsWritten() if isinstance(self.learning, AsWritten) else None
        default = Config(self.task, agent=self.agent, recipe=self.recipe, learning=unread)
        usual = flatten(default.to_dict()) | {"agent": Config.agent, "recipe": USUAL}
        chosen = [
            (name.replace("_", "-"), value)
            for name, value in flatten(self.to_dict()).items()
            if name not in usual or value != usual[name]
        ]
        return [self.task] + [word for name, value in chosen for word in _words(name, value)]


def _as_written(learning: Any, where: str) -> AsWritten:
    """Settings of an agent that nobody here knows: checked as far as they can be."""
    try:
        check("learning", learning, dict[str, Any])
        known = {item.name for group in (Config, Schedule, Memory) for item in fields(group)}
        if twice := sorted(known & set(learning)):
            raise UserError(f"learning has a setting {twice[0]!r}, which runs have already")
        return AsWritten(_as_json("learning", learning))
    except UserError as error:
        raise UserError(f"{where}: {error}") from None


def _words(name: str, value: Any) -> list[str]:
    """A setting as `mrn train` takes it."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, tuple | list):
        return [f"--{name}", *map(str, value)]
    # One word, so that a value may begin with a dash.
    return [f"--{name}={json.dumps(value) if isinstance(value, dict) else value}"]


def flatten(settings: dict[str, Any]) -> dict[str, Any]:
    """Nested settings by the name of each; names are unique across the groups."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= value if name in GROUPS else {name: value}
    return flat


GROUPS = ("schedule", "learning", "memory")
"""Fields of `Config` that are settings themselves."""


def groups_of(agent: str, recipe: str, imports: bool = True) -> dict[str, Any]:
    """The groups of settings of a run, by the field that holds each, as the recipe has them.

    Those of a user's own agent are left out where its module is not to be imported.

    Raises:
        UserError: There is no such agent or recipe.
    """
    check("agent", agent, str)
    check("recipe", recipe, str)
    types: dict[str, type[Any]] = {"schedule": Schedule}
    if imports or ":" not in agent:
        types["learning"] = find_agent(agent).Settings
    types["memory"] = Memory
    names = {field: {item.name for item in fields(group)} for field, group in types.items()}
    known = [item.name for item in fields(Config)] + [n for own in names.values() for n in own]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise UserError(f"agent {agent!r} has a setting {twice!r}, which runs have already")
    chosen = {**find_recipe(recipe), **EXCEPTIONS.get((recipe, agent), {})}
    # An agent leaves out what it does not have.
    return {
        field: group(**{name: chosen[name] for name in names[field] & set(chosen)})
        for field, group in types.items()
    }


def of_another_agent(name: str, agent: str) -> UserError | None:
    """The error for a setting that this agent does not have and others have, if it is one."""

    def has(learner: type[Learner]) -> bool:
        return any(item.name == name for item in fields(learner.Settings))

    owners = [other for other, learner in AGENTS.items() if has(learner)]
    if not owners or has(find_agent(agent)):
        return None
    return UserError(
        f"{name} is a setting of {', '.join(owners)}, not of {agent}: choose such an agent, or "
        "leave the setting out."
    )
