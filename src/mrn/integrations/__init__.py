"""Where policies and critics go from here: other runtimes, other libraries."""
