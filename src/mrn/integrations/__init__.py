"""Where a policy goes from here: other runtimes, and what others look at."""
