import fcntl
import os

import pytest

from tests.sweeps.helpers import finish, start_sweep


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Train the six runs without disturbance, two in parallel; tests only read them."""
    # Training takes a minute, so only the first pytest worker that needs the runs does it.
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "undisturbed"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            output = finish(start_sweep(folder, "--jobs=2"))
            assert output.count("started") == output.count("finished  ") == 6
            (folder / "complete").touch()
    return folder
