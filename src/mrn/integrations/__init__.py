"""Where a policy and its metrics go from here: other runtimes, and what others look at."""
