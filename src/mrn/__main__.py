"""Entry point of `python -m mrn`, which torchrun uses."""

from mrn.cli import main

main()
