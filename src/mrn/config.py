"""The settings of a run. The defaults are the paper's protocol (Sec. 5)."""

import math
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

from mrn.errors import UserError, unknown

Relabel = Literal["future", "final", "episode"]

# What a field accepts: (lowest, highest), None for no limit.
_RANGES: dict[str, tuple[float | None, float | None]] = {
    "seed": (0, 2**32 - 1),
    "epochs": (1, None),
    "threads": (1, None),
    "jobs": (1, None),
    "gpus": (0, None),
    "every": (1, None),
    "reward_shift": (-1, 0),
    "worker_timeout": (1e-3, 1e6),
    "checkpoint_every": (1, None),
    "cycles": (1, None),
    "episodes": (1, None),
    "updates": (0, None),
    "eval_episodes": (0, None),
    "batch_size": (1, None),
    "learning_rate": (0, None),
    "discount": (0, 1 - 1e-9),
    "target_keep": (0, 1),
    "action_penalty": (0, None),
    "noise": (0, None),
    "random_actions": (0, 1),
    "width": (2, None),
    "capacity": (1, None),
    "relabel_probability": (0, 1),
    "state_dim": (1, None),
    "goal_dim": (1, None),
    "horizon": (1, None),
}


class Checked:
    """A frozen dataclass that refuses values of the wrong type or out of range."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            _check_type(item.name, value, hints[item.name])
            if isinstance(value, int | float):
                check_range(item.name, value)


def check_range(name: str, value: float) -> None:
    """Refuse a number that the setting of that name does not accept."""
    low, high = _RANGES.get(name, (None, None))
    if not math.isfinite(value):
        raise UserError(f"{name} must be a finite number, got {value!r}")
    if low is not None and value < low:
        raise UserError(f"{name} must be at least {low:g}, got {value!r}")
    if high is not None and value > high:
        raise UserError(f"{name} must be at most {high:g}, got {value!r}")


@dataclass(frozen=True)
class Schedule(Checked):
    """How collection, updates and evaluation take turns."""

    cycles: int = 50
    """Cycles in an epoch: episodes, then updates, then one update of the targets."""
    episodes: int = 20
    """Episodes in a cycle, played side by side."""
    updates: int = 40
    """Gradient steps in a cycle."""
    eval_episodes: int = 100
    """Episodes of the evaluation after each epoch; 0 for none."""


@dataclass(frozen=True)
class Learning(Checked):
    """The agent's hyper-parameters."""

    batch_size: int = 1024
    """Transitions in a gradient step."""
    learning_rate: float = 1e-3
    """Adam's step size, for actor and critic."""
    discount: float = 0.98
    """Discount factor gamma."""
    target_keep: float = 0.9
    """Share of the target networks kept in each update of the targets."""
    action_penalty: float = 1.0
    """Weight of the squared action in the actor's loss."""
    noise: float = 0.2
    """Standard deviation of the exploration noise, as a share of the largest action."""
    random_actions: float = 0.3
    """Probability of a uniform action instead, while exploring."""
    width: int = 256
    """Width of actor and monolithic critic; the other critics match its number of parameters."""


@dataclass(frozen=True)
class Memory(Checked):
    """The replay buffer and hindsight relabelling."""

    capacity: int = 1_000_000
    """Transitions kept, in whole episodes."""
    relabel: Relabel = "future"
    """Which achieved goals of its own episode may replace a transition's goal."""
    relabel_probability: float = 0.8
    """Share of sampled transitions whose goal is replaced."""


@dataclass(frozen=True)
class Config(Checked):
    """Everything that decides a run's result, and where it runs."""

    task: Annotated[str, tyro.conf.arg(metavar="TASK")]
    """One of the paper's tasks (`mrn tasks`), or the Gymnasium id of a goal environment;
    `package.module:Id-v0` imports the module first."""
    critic: str = "mrn"
    """Architecture of the critic (`mrn critics`)."""
    agent: str = "ddpg"
    """Learning algorithm."""
    seed: int = 100
    """Seed of everything random. The paper's: 100, 200, 300, 400, 500."""
    epochs: int | None = None
    """Epochs of training; by default the paper's number for the task, 50 for other environments."""
    engine: str = "auto"
    """Simulation engine: `envpool`, `gymnasium`, or `auto` (EnvPool for the paper's tasks)."""
    workers: bool = False
    """Run Gymnasium environments in processes of their own, one each."""
    worker_timeout: float = 60.0
    """Seconds after which such a process that does not answer is given up."""
    reward_shift: float = 0.0
    """Added to the rewards of an environment of your own, which must then lie in [-1, 0]."""
    device: str = "auto"
    """`cpu`, `cuda`, `cuda:N`, or `auto` (the GPU if there is one)."""
    checkpoint_every: int = 1
    """Epochs between checkpoints, from which an interrupted run goes on (`mrn resume`)."""
    threads: int | None = None
    """CPU threads for simulation and for matrix products; by default all cores."""
    schedule: Schedule = field(default_factory=Schedule)
    learning: Learning = field(default_factory=Learning)
    memory: Memory = field(default_factory=Memory)

    @classmethod
    def of(cls, task: str, **settings: Any) -> "Config":
        """Build a configuration from flat keyword arguments, whichever group they belong to."""
        flat: dict[str, Any] = {"task": task}
        groups: dict[str, dict[str, Any]] = {name: {} for name in _GROUPS}
        owner = {item.name: name for name, group in _GROUPS.items() for item in fields(group)}
        own = [item.name for item in fields(cls) if item.name not in _GROUPS]
        for name, value in settings.items():
            if name not in owner and name not in own:
                raise unknown("setting", name, [*own[1:], *owner])
            (groups[owner[name]] if name in owner else flat)[name] = value
        return cls(**flat, **{name: _GROUPS[name](**values) for name, values in groups.items()})

    @property
    def folder(self) -> Path:
        """Where the run goes below the folder of all runs."""
        task = "".join(c if c.isalnum() or c in "-_." else "_" for c in self.task)
        return Path(task, f"{self.agent}-{self.critic}", f"seed-{self.seed}")

    def to_dict(self) -> dict[str, Any]:
        """As nested dictionaries of JSON types."""
        return asdict(self)

    def arguments(self) -> list[str]:
        """What to give to `mrn train` for these settings: the task, and all that is no default."""
        usual = flatten(Config(self.task).to_dict())
        chosen = [
            (name.replace("_", "-"), value)
            for name, value in flatten(self.to_dict()).items()
            if value != usual[name]
        ]
        return [self.task] + [
            (f"--{name}" if value else f"--no-{name}") if isinstance(value, bool)
            # One word, so that a value may begin with a dash.
            else f"--{name}={value}"
            for name, value in chosen
        ]  # fmt: skip


def flatten(settings: dict[str, Any]) -> dict[str, Any]:
    """Nested settings by the name of each; names are unique across the groups."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


_GROUPS: dict[str, type[Any]] = {"schedule": Schedule, "learning": Learning, "memory": Memory}


def from_dict(cls: type[Any], data: Any, where: str) -> Any:
    """Build the dataclass `cls` from JSON data of unknown origin, checking names and types.

    Raises:
        UserError: A field is missing, unknown or of the wrong type; `where` names the file.
    """
    if not isinstance(data, dict):
        raise UserError(
            f"{where}: expected an object for {cls.__name__}, got {type(data).__name__}"
        )
    hints = get_type_hints(cls)
    if strange := sorted(set(data) - set(hints)):
        raise UserError(f"{where}: unknown field {strange[0]!r} in {cls.__name__}")
    values = {}
    for name, value in data.items():
        if is_dataclass(hints[name]):
            value = from_dict(hints[name], value, where)
        elif get_origin(hints[name]) is tuple and isinstance(value, list):
            value = tuple(value)  # JSON has lists only
        values[name] = value
    try:
        return cls(**values)
    except (TypeError, UserError) as error:
        raise UserError(f"{where}: {error}") from None


def _check_type(name: str, value: Any, hint: Any) -> None:
    options = get_args(hint)
    if get_origin(hint) is Literal:
        if value not in options:
            raise unknown(name, str(value), list(options))
        return
    if get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise UserError(f"{name} must be a table of names and values, got {value!r}")
        return
    if get_origin(hint) is tuple:
        if not isinstance(value, tuple):
            raise UserError(f"{name} must be a list, got {value!r}")
        for item in value:
            _check_type(name, item, options[0])
        return
    allowed = options or (hint,)
    if float in allowed:
        allowed = (*allowed, int)
    # bool is an int to Python, and no number to a user.
    wrong = isinstance(value, bool) and bool not in allowed
    if wrong or not isinstance(value, allowed):
        raise UserError(f"{name} must be of type {getattr(hint, '__name__', hint)}, got {value!r}")
