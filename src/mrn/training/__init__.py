"""Training: the loop, rollouts, evaluation and progress display."""
