"""Where policies, critics and metrics go from here: other runtimes, other libraries."""
