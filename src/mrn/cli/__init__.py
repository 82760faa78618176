"""The `mrn` command: parse arguments, call the library, print the result."""

import io
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import tyro

from mrn.cli.integrations import export, video
from mrn.cli.listing import algos, check, critics, recipes, tasks, zoo
from mrn.cli.studies import inspect, theory, toy
from mrn.cli.sweeps import figures, report, sweep
from mrn.cli.training import evaluate, resume, train_command
from mrn.cli.tuning import tune
from mrn.utils.errors import UserError, report_errors
from mrn.utils.plugins import forbid_exit
from mrn.utils.renames import COMMANDS
from mrn.version import __version__


def commands(arguments: Sequence[str] = ()) -> dict[str, Callable[..., None]]:
    """Return all subcommands by name.

    Args:
        arguments: Command-line arguments. The options of `train` depend on its `--algo`.
    """
    return {
        "train": train_command(arguments),
        "resume": resume,
        "eval": evaluate,
        "export": export,
        "video": video,
        "sweep": sweep,
        "tune": tune,
        "figures": figures,
        "report": report,
        "inspect": inspect,
        "tasks": tasks,
        "check": check,
        "critics": critics,
        "algos": algos,
        "recipes": recipes,
        "zoo": zoo,
        "toy": toy,
        "theory": theory,
    }


def _guard(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that fails if custom code calls `sys.exit`."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> None:
        with forbid_exit():
            command(*args, **kwargs)

    return guarded


def main() -> None:
    """Run the `mrn` command with the arguments of this process."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"mrn {__version__}")
        return
    if isinstance(sys.stdout, io.TextIOWrapper):  # names may not fit the terminal's encoding
        sys.stdout.reconfigure(errors="backslashreplace")
    with report_errors():
        if arguments and arguments[0] in COMMANDS:
            old = arguments[0]
            raise UserError(f"mrn {old} was renamed to mrn {COMMANDS[old]}")
        table = {name: _guard(command) for name, command in commands(arguments).items()}
        config = (tyro.conf.PositionalRequiredArgs, tyro.conf.OmitArgPrefixes)
        if arguments and arguments[0] in table:  # errors then refer to the help of this command
            name, *rest = arguments
            tyro.cli(table[name], prog=f"mrn {name}", args=rest, config=config)
            return
        tyro.extras.subcommand_cli_from_dict(
            table,
            prog="mrn",
            description=(
                "Goal-conditioned reinforcement learning with metric critics. "
                "`mrn COMMAND --help` describes a command, `mrn --version` prints the version."
            ),
            args=arguments,
            config=config,
        )
