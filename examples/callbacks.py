"""Run custom code during training: log every cycle, and stop when the time is up.

Run `python examples/callbacks.py`. It takes about ten seconds.
"""

# --8<-- [start:callbacks]
import time

import mrn


class CycleLog(mrn.Callback):
    """Keep the losses of every cycle."""

    def __init__(self):
        self.rows = []

    def on_cycle(self, agent, row):
        self.rows.append(row)


class TimeBudget(mrn.Callback):
    """Stop training after a number of seconds."""

    def __init__(self, seconds):
        self.deadline = time.monotonic() + seconds

    def on_cycle(self, agent, row):
        return time.monotonic() > self.deadline


def print_success(agent, row):
    """Print a line per epoch; a plain function is called after each epoch."""
    print(f"epoch {row['epoch']}: {row['success']:.0%} success")


# --8<-- [end:callbacks]
# --8<-- [start:train]
if __name__ == "__main__":
    log = CycleLog()
    agent = mrn.train(
        "FetchReach",
        epochs=2,
        cycles=3,
        gradient_steps=10,
        eval_episodes=10,
        batch_size=256,
        progress=False,
        run_dir="runs/callbacks",
        resume=True,
        callbacks=[log, TimeBudget(seconds=60), print_success],
    )
    for row in log.rows:
        print(f"{row['env_steps']} steps: critic loss {row['critic_loss']:.3f}")
# --8<-- [end:train]
