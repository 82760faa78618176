import pytest

from tests.analysis.helpers import SHORT
from tests.sweeps.helpers import write_run


@pytest.fixture
def recipes(tmp_path):
    """Epochs of 1,000 episodes in one recipe and 250 in the other; two seeds each."""
    for seed in (1, 2):
        write_run(tmp_path, SHORT, seed)
        write_run(tmp_path, [k / 10 for k in range(9)], seed, recipe="fast")
    return tmp_path
