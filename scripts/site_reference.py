"""Generate the command-line and configuration reference of the site from the code."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import NoneType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from docstring_parser import google

import mrn
from mrn.algorithms import ALGORITHMS, AlgorithmSettings
from mrn.cli import commands
from mrn.recipes import FAST, OVERRIDES, find_recipe
from mrn.replay import ReplayConfig
from mrn.schedule import Schedule
from mrn.utils.tables import Table, markdown_table
from mrn.utils.validation import Bounds

COMMANDS = {
    "Train and evaluate": ("train", "resume", "eval", "export", "video"),
    "Compare runs": ("sweep", "tune", "figures", "report", "inspect"),
}
"""Headings of the page and their commands; all others follow under `OTHER`."""
OTHER = "List, check and study"


def commands_page() -> str:
    """Return every command with its options, as Markdown."""
    available = commands()
    grouped = [name for names in COMMANDS.values() for name in names]
    groups = COMMANDS | {OTHER: tuple(name for name in available if name not in grouped)}
    parts: list[str] = []
    for heading, names in groups.items():
        parts.append(f"## {heading}")
        parts += [_command(name, available[name]) for name in names]
    return _page(parts)


def settings_page() -> str:
    """Return every setting with type, default and meaning, as Markdown."""
    groups = {"Run": mrn.Config, "Schedule": Schedule, "Replay buffer": ReplayConfig}
    parts = [f"## {heading}\n\n{_settings(group)}" for heading, group in groups.items()]
    parts.append(f"## Every algorithm\n\n{_settings(AlgorithmSettings)}")
    for name, algorithm in ALGORITHMS.items():
        table = _settings(algorithm.Settings, name, without=AlgorithmSettings)
        parts.append(f"## `{name}`\n\n{table}")
    return _page(parts)


def _page(parts: list[str]) -> str:
    """Join parts in a block that the style sheet knows: descriptions stay readable on phones."""
    return "\n\n".join(['<div class="reference" markdown>', *parts, "</div>"]) + "\n"


def _command(name: str, function: Callable[..., None]) -> str:
    usage, rows = ["mrn", name], []
    docs = google.parse(inspect.getdoc(function) or "")
    helps = {item.arg_name: _one_line(item.description) for item in docs.params}
    for parameter in inspect.signature(function).parameters.values():
        label = parameter.name.rstrip("_").replace("_", "-")
        if dataclasses.is_dataclass(parameter.annotation):
            if parameter.default is parameter.empty:
                usage += ["TASK", "[SETTINGS]"]
            continue
        metadata = getattr(parameter.annotation, "__metadata__", ())
        if parameter.default is parameter.empty:
            usage.append(label.upper())
            shown, default = f"`{label.upper()}`", "required"
        elif tyro.conf.Positional in metadata:
            usage.append(f"[{label.upper()}]")
            shown, default = f"`{label.upper()}`", ""
        else:
            shown, default = f"`--{label}`", _option_default(parameter.default)
        rows.append((shown, default, _cell(helps.get(parameter.name, ""))))
    usage += ["[OPTIONS]"] if any(shown.startswith("`--") for shown, *_ in rows) else []
    text = f"### `mrn {name}`\n\n{_summary(docs)}\n\n```bash\n{' '.join(usage)}\n```"
    if "[SETTINGS]" in usage:
        text += "\n\n`[SETTINGS]` are those of the [configuration](configuration.md)."
    if rows:
        text += f"\n\n{markdown_table((('argument', 'default', 'description'), rows))}"
    return text


def _option_default(value: Any) -> str:
    return "" if value is None or value == "" else f"`{value}`" if value is not False else "off"


def _summary(docs: Any) -> str:
    """Return the description of a docstring without its sections."""
    paragraphs = [docs.short_description, docs.long_description]
    return "\n\n".join(_one_line(text) for text in paragraphs if text)


def _settings(group: type, algo: str = "ddpg", without: type | None = None) -> str:
    """Return the table of a group of settings.

    Args:
        group: The dataclass.
        algo: The algorithm whose values in the recipe `fast` are shown.
        without: A dataclass whose settings are left out.
    """
    hints, plain = get_type_hints(group, include_extras=True), get_type_hints(group)
    helps = {
        ast.unparse(node.target): text
        for cls in group.__mro__
        if dataclasses.is_dataclass(cls)
        for node, text in _documented(cls)
    }
    hidden = {item.name for item in dataclasses.fields(without)} if without else set()
    fast = find_recipe(FAST) | OVERRIDES.get((FAST, algo), {})
    rows = [
        (
            f"`{item.name}`",
            _accepts(hints[item.name]),
            _default(item),
            f"`{fast[item.name]}`" if item.name in fast else "",
            _cell(helps[item.name]),
        )
        for item in dataclasses.fields(group)
        if item.name in helps and item.name not in hidden and not _is_group(plain[item.name])
    ]
    table: Table = (("setting", "type", "default", "fast", "description"), rows)
    return markdown_table(table)


def _is_group(hint: Any) -> bool:
    return any(dataclasses.is_dataclass(option) for option in (hint, *get_args(hint)))


def _documented(cls: type) -> Iterator[tuple[Any, str]]:
    """Yield annotated assignments followed by a docstring."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    for node, after in pairwise(tree.body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr):
            yield node, _one_line(ast.literal_eval(after.value))


def _default(item: dataclasses.Field[Any]) -> str:
    if item.default_factory is not dataclasses.MISSING:
        return f"`{item.default_factory()!r}`"
    return "required" if item.default is dataclasses.MISSING else f"`{item.default!r}`"


def _accepts(hint: Any) -> str:
    """Return a type with its bounds."""
    options = get_args(hint)
    if get_origin(hint) is Annotated:
        bounds = next((item for item in options[1:] if isinstance(item, Bounds)), Bounds())
        limits = {"≥": bounds.ge, "≤": bounds.le, "<": bounds.lt}
        shown = [f"{sign} {value:,}" for sign, value in limits.items() if value is not None]
        return ", ".join([_accepts(options[0]), *shown])
    if get_origin(hint) is Literal:
        return ", ".join(f"`{option}`" for option in options)
    if get_origin(hint) is not Union and NoneType not in options:
        return getattr(hint, "__name__", str(hint))
    return (
        " or ".join(_accepts(option) for option in options if option is not NoneType) + " or None"
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
