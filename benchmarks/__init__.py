"""Speed benchmarks: `make bench`, or `python -m benchmarks` in a clone of the repository."""
