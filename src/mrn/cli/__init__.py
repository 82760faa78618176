"""The `mrn` command: parses, calls, prints."""

import sys

import tyro

from mrn.cli.about import bench, critics, tasks
from mrn.cli.experiments import figures, report, sweep
from mrn.cli.studies import inspect, theory, toy
from mrn.cli.training import evaluate, resume, train_command
from mrn.errors import reported
from mrn.version import __version__


def main() -> None:
    """Run the command that the arguments name."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        print(f"mrn {__version__}")
        return
    with reported():
        tyro.extras.subcommand_cli_from_dict(
            {
                "train": train_command(arguments),
                "resume": resume,
                "eval": evaluate,
                "sweep": sweep,
                "figures": figures,
                "report": report,
                "inspect": inspect,
                "tasks": tasks,
                "critics": critics,
                "bench": bench,
                "toy": toy,
                "theory": theory,
            },
            prog="mrn",
            description="Goal-conditioned reinforcement learning with metric critics.",
            args=arguments,
            config=(tyro.conf.PositionalRequiredArgs, tyro.conf.OmitArgPrefixes),
        )
