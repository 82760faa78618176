import fcntl
import os

import pytest

from tests.sweeps.helpers import finish, start_sweep


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The six runs, two at a time, nothing in their way; tests only read them."""
    # They take a minute, so that only the first of pytest's processes to need them trains them.
    ours = tmp_path_factory.getbasetemp()
    folder = (ours.parent if "PYTEST_XDIST_WORKER" in os.environ else ours) / "undisturbed"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            output = finish(start_sweep(folder, "--jobs=2"))
            assert output.count("started") == output.count("finished  ") == 6
            (folder / "complete").touch()
    return folder
