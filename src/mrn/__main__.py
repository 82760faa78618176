"""`python -m mrn`, which is how torchrun starts it."""

from mrn.cli import main

main()
