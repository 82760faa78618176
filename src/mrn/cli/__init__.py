"""The `mrn` command: parses, calls, prints."""

import sys
from collections.abc import Callable, Sequence

import tyro

from mrn.cli.integrations import export, video
from mrn.cli.listing import agents, bench, check, critics, recipes, tasks, zoo
from mrn.cli.studies import inspect, theory, toy
from mrn.cli.sweeps import figures, report, sweep
from mrn.cli.training import evaluate, resume, train_command
from mrn.utils.errors import report_errors
from mrn.version import __version__


def commands(arguments: Sequence[str] = ()) -> dict[str, Callable[..., None]]:
    """All commands by name; the options of `train` are those of the agent it is to train."""
    return {
        "train": train_command(arguments),
        "resume": resume,
        "eval": evaluate,
        "export": export,
        "video": video,
        "sweep": sweep,
        "figures": figures,
        "report": report,
        "inspect": inspect,
        "tasks": tasks,
        "check": check,
        "critics": critics,
        "agents": agents,
        "recipes": recipes,
        "zoo": zoo,
        "bench": bench,
        "toy": toy,
        "theory": theory,
    }


def main() -> None:
    """Run the command that the arguments name."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"mrn {__version__}")
        return
    with report_errors():
        tyro.extras.subcommand_cli_from_dict(
            commands(arguments),
            prog="mrn",
            description=(
                "Goal-conditioned reinforcement learning with metric critics. "
                "`mrn --version` tells the version."
            ),
            args=arguments,
            config=(tyro.conf.PositionalRequiredArgs, tyro.conf.OmitArgPrefixes),
        )
