"""Read runs, compare them, and draw figures and reports."""
