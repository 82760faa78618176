"""The `mrn` command, also as `python -m mrn`, which torchrun uses."""

from mrn.utils.errors import report_errors
from mrn.utils.extras import import_training


def main() -> None:
    """Run the command, or explain how to install what it needs."""
    with report_errors():
        cli = import_training("mrn.cli")
    cli.main()


if __name__ == "__main__":
    main()
