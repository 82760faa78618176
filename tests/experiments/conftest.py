import pytest

from tests.experiments.helpers import finish, start_sweep


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """The six runs, two at a time, nothing in their way."""
    folder = tmp_path_factory.mktemp("undisturbed")
    output = finish(start_sweep(folder, "--jobs=2"))
    assert output.count("started") == output.count("finished  ") == 6
    return folder
