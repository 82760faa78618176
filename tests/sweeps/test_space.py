"""Search spaces: included files, and errors in custom ones."""

import re
from importlib import resources
from pathlib import Path

import pytest

from mrn.algorithms import ALGORITHMS
from mrn.config import Config
from mrn.recipes import RECIPES
from mrn.sweeps.space import COMMON, Space, find_space, read_space
from mrn.utils.errors import UserError

INCLUDED = sorted(
    file.name.removesuffix(".toml")
    for file in (resources.files("mrn.sweeps") / "spaces").iterdir()
    if file.name.endswith(".toml")
)


def read(tmp_path: Path, text: str, algo="ddpg", critic="auto") -> Space:
    file = tmp_path / "space.toml"
    file.write_text(text)
    return read_space(file, "FetchReach", algo, critic, "fast")


@pytest.mark.parametrize("algo", ALGORITHMS)
def test_every_algorithm_has_a_space_with_the_defaults_inside(algo):
    """The first trial has the defaults, so that a search starts from them."""
    for recipe in RECIPES:
        space = read_space(None, "FetchReach", algo, "auto", recipe)
        values = space.values_in(Config.of("FetchReach", algo=algo, recipe=recipe))
        assert values is not None, recipe
        assert len(values) == len(space.searched) >= 4
        assert not space.fixed


@pytest.mark.parametrize("name", INCLUDED)
def test_every_included_space_belongs_to_an_algorithm(name):
    assert name in (*ALGORITHMS, COMMON)


@pytest.mark.parametrize("algo", ["unknown", "my_package.algos:Mine", "../ddpg", "space.common"])
def test_algorithms_without_a_file_have_the_common_space(algo):
    assert find_space(algo) == find_space(COMMON)
    assert find_space(algo)[1] == "spaces/common.toml"


def test_common_space_fits_every_algorithm(tmp_path):
    for algo in ALGORITHMS:
        space = read(tmp_path, find_space(COMMON)[0], algo)
        assert set(space.searched) == {"learning_rate", "batch_size", "gradient_steps"}


def test_numbers_have_the_type_of_their_setting(tmp_path):
    space = read(
        tmp_path,
        "action_penalty = { low = 0, high = 2 }\nhidden_dim = { low = 8, high = 64, log = true }\n"
        'critic = { choices = ["mrn", "iqe"] }\nepochs = 3\nenv_kwargs = { size = 3 }\n',
    )
    assert space.searched == {
        "action_penalty": {"low": 0.0, "high": 2.0, "log": False},
        "hidden_dim": {"low": 8, "high": 64, "log": True},
        "critic": {"choices": ["mrn", "iqe"]},
    }
    assert isinstance(space.searched["action_penalty"]["low"], float)
    assert isinstance(space.searched["hidden_dim"]["low"], int)
    assert space.fixed == {"epochs": 3, "env_kwargs": {"size": 3}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("learning_rat = { low = 0.1, high = 1 }", "unknown setting 'learning_rat'. Did you mean"),
        ("learning_rat = 0.1", "unknown setting 'learning_rat'. Did you mean 'learning_rate'?"),
        (
            "target_noise_clip = { low = 0.1, high = 1 }",
            "target_noise_clip is a setting of td3, not of ddpg",
        ),
        ("tau = { low = 0.5, high = 0.1 }", "low must be below high, got low = 0.5 and high = 0.1"),
        ("tau = { low = 0.5, high = 0.5 }", "tau: low must be below high"),
        ("tau = { low = 0, high = 1, log = true }", "low must be above 0 if log is true, got 0.0"),
        ("tau = { low = 0.1, high = 1, log = 1 }", "log must be true or false, got 1"),
        ("tau = { low = 0.1, high = 2 }", "tau must be at most 1, got 2"),
        ("batch_size = { low = 0, high = 9 }", "batch_size must be at least 1, got 0"),
        ("batch_size = { low = 1.5, high = 9 }", "batch_size must be of type int, got 1.5"),
        ("tau = { low = '1', high = 2 }", "tau must be of type float, got '1'"),
        ("tau = { low = 0.1 }", "tau must be { low = ..., high = ... }"),
        ("tau = { min = 0.1, max = 0.2 }", "or a value; got {'min': 0.1, 'max': 0.2}"),
        ("tau = { choices = [0.1, 2.0] }", "tau must be at most 1, got 2.0"),
        ("tau = { choices = [0.1] }", "choices must be a list of at least two values, got [0.1]"),
        ("tau = { choices = 0.1 }", "choices must be a list of at least two values, got 0.1"),
        ("tau = { choices = [0.1, 0.1] }", "choices must differ, got 0.1 twice"),
        ("tau = { choices = [[0.1], [0.2]] }", "must be numbers, strings or booleans, got [0.1]"),
        ("goal_selection_strategy = { choices = ['future', 'last'] }", "strategy 'last'"),
        ("critic = { choices = ['mrn', 'mmrn'] }", "unknown critic 'mmrn'"),
        ("critic = 'iqe'", "use --critic"),
        ("num_envs = { choices = [5, 10] }", "num_envs cannot be searched, because it must be equ"),
        ("epochs = { low = 1, high = 9 }", "epochs cannot be searched"),
        ("epochs = 0", "epochs must be at least 1, got 0"),
        ("algo = 'sac'", "algo cannot be part of a space; use --algo"),
        ("seed = { low = 1, high = 9 }", "seed cannot be part of a space; use --seeds"),
        ("epochs = 3", "it has no setting to search"),
        ("tau = ", "is not valid TOML"),
    ],
)
def test_errors_name_the_file_and_the_setting(text, message, tmp_path):
    with pytest.raises(UserError, match=re.escape(message)) as error:
        read(tmp_path, text)
    assert str(error.value).startswith(str(tmp_path / "space.toml"))


def test_critic_is_either_searched_or_chosen(tmp_path):
    with pytest.raises(UserError, match="critic is searched; remove it, or remove --critic"):
        read(tmp_path, "critic = { choices = ['mrn', 'iqe'] }", critic="bvn")


def test_range_of_a_setting_that_is_not_a_number(tmp_path):
    with pytest.raises(UserError, match="discount_weight must be of type bool, got 0"):
        read(tmp_path, "discount_weight = { low = 0, high = 1 }", "wgcsl")
    with pytest.raises(UserError, match=r"critic is not a number; write critic = \{ choices"):
        read(tmp_path, "critic = { low = 'bvn', high = 'mrn' }")


def test_missing_file():
    with pytest.raises(UserError, match="cannot read no.toml"):
        read_space(Path("no.toml"), "FetchReach", "ddpg", "auto", "fast")
