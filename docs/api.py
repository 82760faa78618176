"""Writes the lists of docs/api.md from the code: `make docs`. A test holds the page to them."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType, NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tyro

import mrn
import mrn.algorithms
import mrn.critics
import mrn.envs
import mrn.integrations.sb3
from mrn.algorithms import AlgorithmSettings
from mrn.cli import commands
from mrn.config import Schedule
from mrn.replay import ReplayConfig
from mrn.utils.tables import Table, markdown_table, write_sections
from mrn.utils.validation import Bounds

PAGE = Path(__file__).with_name("api.md")

GROUPS = (mrn.Config, Schedule, ReplayConfig, AlgorithmSettings)
"""Settings that have a table of their own."""

VALUES = {
    "__version__": "The version of this package.",
    "CRITICS": "The architectures by name: `mrn critics` lists them. Add your own here.",
    "ALGORITHMS": "The algorithms by name: `mrn agents` lists them. Add your own here.",
    "CriticFactory": "`Callable[[], Critic]`: a new critic of the run's architecture.",
    "TASKS": "The paper's tasks by name: `mrn tasks` lists them.",
    "EXTRA_TASKS": "Further tasks that EnvPool simulates, by their ids without the version.",
}
"""What is neither a class nor a function has no docstring to take a sentence from."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sections() -> dict[str, str]:
    """The generated parts of the page, by the names of their marks."""
    agents = [
        f"`{name}`, besides:\n\n{markdown_table(_settings(agent.Settings, left_out=AlgorithmSettings))}"
        for name, agent in mrn.algorithms.ALGORITHMS.items()
    ]
    modules = (mrn, mrn.critics, mrn.algorithms, mrn.envs, mrn.integrations.sb3)
    return {
        "commands": "\n".join(_commands()),
        **{f"{group.__name__} settings": markdown_table(_settings(group)) for group in GROUPS},
        "settings of each agent": "\n\n".join(agents),
        **{f"{module.__name__} names": "\n".join(_names(module)) for module in modules},
    }


def _commands() -> Iterator[str]:
    for name, command in commands().items():
        words, options = [], []
        for parameter in inspect.signature(command).parameters.values():
            if dataclasses.is_dataclass(parameter.annotation):
                required = [
                    item.name.upper()
                    for item in dataclasses.fields(parameter.annotation)
                    if item.default is item.default_factory is dataclasses.MISSING
                ]
                words += [*required, "[SETTINGS]"] if required else []
            elif parameter.default is parameter.empty:
                words.append(parameter.name.upper())
            elif tyro.conf.Positional in getattr(parameter.annotation, "__metadata__", ()):
                words.append(f"[{parameter.name.upper()}]")
            else:
                unsaid = parameter.default is None or parameter.default is False
                value = "" if unsaid else f" {parameter.default}"
                option = parameter.name.rstrip("_").replace("_", "-")  # json_ is not the module
                options.append(f"[--{option}{value}]")
        yield f"- `{' '.join(['mrn', name, *words, *options])}`: {_summary(command.__doc__)}"


def _names(module: ModuleType) -> Iterator[str]:
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value):
            yield f"- `{name}{_class_signature(value)}`: {_summary(value.__doc__)}"
            yield from _members(value)
        elif inspect.isfunction(value):
            yield f"- `{name}{_signature(_parse(value))}`: {_summary(value.__doc__)}"
        else:
            yield f"- `{name}`: {VALUES[name]}"


def _members(cls: type) -> Iterator[str]:
    """What a class has of its own: attributes with a docstring, methods, properties."""
    body = _parse(cls).body
    if cls not in GROUPS:
        for node, text in _documented(body):
            yield f"  - `{ast.unparse(node.target)}: {_type(node.annotation)}`: {text}"
    for node in body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            decorators = map(ast.unparse, node.decorator_list)
            is_property = any(name in ("property", "cached_property") for name in decorators)
            signature = f": {_type(node.returns)}" if is_property else _signature(node)
            yield f"  - `{node.name}{signature}`: {_summary(ast.get_docstring(node))}"


def _documented(body: list[ast.stmt]) -> Iterator[tuple[Any, str]]:
    """Assignments with a docstring below them."""
    for node, after in pairwise(body):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
            yield node, " ".join(ast.literal_eval(after.value).split())


def _class_signature(cls: type) -> str:
    """Of the constructor: written out, or the fields of a dataclass or named tuple."""
    node = _parse(cls)
    for item in node.body:
        if isinstance(item, Function) and item.name == "__init__":
            return _signature(item).removesuffix(" -> None")
    if not (dataclasses.is_dataclass(cls) or issubclass(cls, tuple)):
        return ""
    fields = [item for item in node.body if isinstance(item, ast.AnnAssign)]
    return f"({', '.join(ast.unparse(item.target) for item in fields)})"


def _signature(node: Function) -> str:
    """As it is written, so that it does not depend on the version of Python."""
    node.args.args = [item for item in node.args.args if item.arg not in ("self", "cls")]
    return f"({ast.unparse(node.args)}) -> {_type(node.returns)}"


def _type(annotation: ast.expr | None) -> str:
    """An annotation without what is said elsewhere: limits, quotes, that it is the class's."""
    match annotation:
        case ast.Constant(value=str(name)):
            return name
        case ast.Subscript(ast.Name("Annotated"), ast.Tuple([inner, *_])):
            return _type(inner)
        case ast.Subscript(ast.Name("ClassVar"), inner):
            return _type(inner)
        case None:
            return ""
    return ast.unparse(annotation)


def _parse(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(value))).body[0]


def _summary(docstring: str | None) -> str:
    """The first paragraph, in one line."""
    return " ".join(inspect.cleandoc(docstring or "").partition("\n\n")[0].split())


def _settings(group: type, left_out: type | None = None) -> Table:
    """The settings of a group but for those that another table has, such as an agent's (`Any`)."""
    hints, plain = get_type_hints(group, include_extras=True), get_type_hints(group)
    lines = [
        pair for cls in group.__mro__ if cls is not object for pair in _documented(_parse(cls).body)
    ]
    help_ = {ast.unparse(node.target): text for node, text in lines}
    elsewhere = {item.name for item in dataclasses.fields(left_out)} if left_out else set()
    rows = [
        (f"`{item.name}`", _default(item), _accepts(hints[item.name]), help_[item.name])
        for item in dataclasses.fields(group)
        if item.name in help_ and item.name not in elsewhere and plain[item.name] is not Any
    ]
    return ("setting", "default", "accepts", "what"), rows


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default_factory is not dataclasses.MISSING:
        return f"`{item.default_factory()!r}`"
    return "required" if item.default is dataclasses.MISSING else f"`{item.default!r}`"


def _accepts(hint: Any) -> str:
    """A type with its limits, in words."""
    options = get_args(hint)
    if get_origin(hint) is Annotated:
        limits = next((item for item in options[1:] if isinstance(item, Bounds)), Bounds())
        words = {"at least": limits.least, "at most": limits.most, "below": limits.below}
        said = [f"{word} {value:,}" for word, value in words.items() if value is not None]
        return ", ".join([_accepts(options[0]), *said])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{option}`" for option in options)
    if NoneType in options:
        return f"{_accepts(options[0])}; or None"
    return getattr(hint, "__name__", str(hint))


if __name__ == "__main__":
    write_sections(PAGE, sections())
