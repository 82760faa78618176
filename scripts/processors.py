"""The same seed on two processors: success of three runs of fetch-push after each epoch."""

from pathlib import Path

from mrn.analysis.runs import find_runs
from mrn.utils.naming import Method
from mrn.utils.tables import Table

PROCESSORS = ("Intel Xeon", "AMD EPYC")


def processor_table(study: Path) -> Table:
    """Return success in percent, one row per critic and processor.

    The processors are known from when the runs were trained; not all settings files name them.
    """
    runs = find_runs(study)
    main = {(run.method, run.seed): run for run in runs if not run.experiment}
    rows = []
    for other in (run for run in runs if run.experiment == "intel-xeon"):
        pair = (other, main[other.method, other.seed])
        for processor, run in zip(PROCESSORS, pair, strict=True):
            success = (f"{100 * value:.0f}" for value in run.success)
            rows.append((f"`{Method.parse(run.method).critic}`", processor, *success))
    epochs = map(str, range(1, len(rows[0]) - 1))
    return ("critic", "processor", *epochs), rows
