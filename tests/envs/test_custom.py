"""Environments of the user's own: what is taken, what is refused and how."""

import numpy as np
import pytest
import torch

from mrn.envs import TASKS, find_task, make_envs
from mrn.envs.custom import task_of
from mrn.envs.vector import batched_success
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from mrn.utils.errors import UserError

HERE = "tests.envs.custom_envs:"


def test_a_goal_environment_becomes_a_task():
    task = find_task(f"{HERE}Walk-v0")
    shape = task.spec
    assert (shape.state_dim, shape.goal_dim, shape.action_dim, shape.horizon) == (2, 2, 2, 8)
    assert (shape.action_low, shape.action_high) == ((-1, 0), (1, 4))
    goals = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    assert task.reward(goals, torch.tensor([[0.1, 0.0], [1.0, 0.0]])).tolist() == [0, -1]


def test_actions_reach_the_environment_in_its_own_units():
    with make_envs(find_task(f"{HERE}Walk-v0").spec, 2) as envs:
        before = envs.reset(0).state
        after = envs.step(np.array([[-1.0, -1.0], [0.5, 1.0]])).observation.state
    assert np.allclose(after - before, [[-1, 0], [0.5, 4]])


def test_a_reward_for_single_rows_is_called_row_by_row():
    task = find_task(f"{HERE}OneRowReward-v0")
    assert task.reward.batched is False
    assert find_task(f"{HERE}Walk-v0").reward.batched is True
    rewards = task.reward(torch.zeros(3, 2), torch.tensor([[0.0, 0], [3, 0], [0.2, 0]]))
    assert rewards.tolist() == [0, -1, 0]


def test_the_library_pen_is_called_row_by_row():
    """Its batched reward is wrong, which the check at the start finds out."""
    task = task_of("HandManipulatePenRotate_BooleanTouchSensors-v1")
    assert task.spec.state_dim == 153
    assert task.reward.batched is False


def test_the_papers_tasks_are_known_by_their_ids_too():
    assert find_task("FetchPickAndPlace-v4") is TASKS["FetchPick"]


def test_rewards_are_shifted():
    task = find_task(f"{HERE}PaysOne-v0", reward_shift=-1)
    assert task.reward(torch.zeros(1, 2), torch.zeros(1, 2)).tolist() == [0]


def test_early_termination_is_recorded_and_nothing_after_it():
    task = find_task(f"{HERE}EndsAtGoal-v0")
    with make_envs(task.spec, 6) as envs:

        def walk(observation):
            way = (observation.goal - observation.achieved).clip([-1, 0], [1, 4])
            return np.stack([way[:, 0], way[:, 1] / 2 - 1], axis=1)  # to [-1, 1]

        episodes = collect_episodes(envs, walk, Episodes.allocate(task.spec, 6), seed=2)
    assert episodes.terminated.any()
    assert not episodes.terminated.all()  # some goals lie below, where it cannot walk
    for i in range(6):
        end = episodes.length[i]
        reached = (
            np.linalg.norm(episodes.achieved[i, : end + 1] - episodes.goal[i, 0], axis=1) <= 0.5
        )
        if episodes.terminated[i]:
            assert reached[1:].tolist() == [False] * (end - 1) + [True]
            assert episodes.success[i, end - 1]
        else:
            assert end == 8
        # One episode, one goal: nothing of the next one is within the length.
        assert (episodes.goal[i, : end + 1] == episodes.goal[i, 0]).all()


def up(observation):
    return np.tile([0.0, -0.85], (len(observation.goal), 1))


@pytest.mark.parametrize("async_envs", [False, True])
def test_the_success_of_an_environment_does_not_depend_on_its_neighbours(async_envs):
    """One that has told its success and rests must not speak for those that have not."""
    shape, count = find_task(f"{HERE}TellsAtEnd-v0").spec, 12
    with make_envs(shape, count, async_envs=async_envs) as envs:
        together = collect_episodes(envs, up, Episodes.allocate(shape, count), seed=4)
    ends = together.length
    within = np.arange(shape.horizon) < ends[:, None]  # (N, T)
    distance = np.linalg.norm(together.achieved[:, 1:] - together.goal[:, 1:], axis=-1)
    assert np.array_equal(together.success & within, (distance <= 0.5) & within)
    # Some end before others, and there are some on the way that pass by their goals meanwhile.
    late = np.arange(shape.horizon) >= ends.min()
    assert (together.success & within & late)[ends > ends.min()].any()
    for i in range(count):
        with make_envs(shape, 1, first=i) as envs:
            alone = collect_episodes(envs, up, Episodes.allocate(shape, 1), seed=4)
        assert alone.length[0] == ends[i]
        assert np.array_equal(alone.success[0, : ends[i]], together.success[i, : ends[i]])


def test_each_environments_own_word_counts_before_the_reward():
    otherwise = np.array([True, True, True, False])
    assert batched_success({}, otherwise).tolist() == [True, True, True, False]
    told = {
        "is_success": np.array([0.0, 0.0, 0.0, 1.0]),
        "_is_success": np.array([True, False, False, True]),
        "success": np.array([True, False, None, None]),
        "_success": np.array([True, True, False, False]),
    }
    assert batched_success(told, otherwise).tolist() == [False, False, True, True]
    wrapped = {"is_success": np.array([[False], [True], [True], [True]]), "_is_success": ~otherwise}
    assert batched_success(wrapped, otherwise).tolist() == [True, True, True, True]
    with pytest.raises(
        UserError, match=r"info\['is_success'\] must be one value, got shape \(2,\)"
    ):
        batched_success(wrapped | {"is_success": np.zeros((4, 2))}, otherwise)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Discrete-v0", "action space must be a bounded Box.*choice of several are not supported"),
        ("Unbounded-v0", "action space must be a bounded Box.*RescaleAction"),
        ("Matrix-v0", "action space must be a bounded Box.*ActionWrapper"),
        ("NoneReward-v0", "has no method compute_reward"),
        ("FailsAtReset-v0", r"reset failed: KeyError: 'pond' \(.*custom_envs.py, line \d+\)"),
        (
            "FailsAtReward-v0",
            r"compute_reward failed: ValueError: no reward \(.*custom_envs.py, line",
        ),
        ("FailsAtStart-v0", r"cannot make.*OSError: no simulator \(.*custom_envs.py, line \d+\)"),
        ("Image-v0", "'observation' must be a vector"),
        ("PaysOne-v0", "rewards must lie in .-1, 0.*got 1; .*reward_shift"),
        ("NoReward-v0", "has no method compute_reward"),
        ("Endless-v0", "register it with max_episode_steps"),
    ],
)
def test_unfit_environments_are_refused(name, message):
    with pytest.raises(UserError, match=message):
        find_task(HERE + name)


def test_names_that_nothing_goes_by():
    with pytest.raises(UserError, match="CartPole-v1.*no goal environment"):
        find_task("CartPole-v1")
    with pytest.raises(UserError, match=r"unknown task 'FetchPusch'. Did you mean 'FetchPush'"):
        find_task("FetchPusch")
    with pytest.raises(UserError, match="there is no module 'no_such_module'"):
        find_task("no_such_module:Thing-v0")
    with pytest.raises(UserError, match="'envpool' does not have"):
        make_envs(find_task(f"{HERE}Walk-v0").spec, 1, "envpool")


def test_an_unknown_id_of_a_module_lists_its_own():
    with pytest.raises(UserError, match=r"There are: tests.envs.custom_envs:Dies-v0, ") as refused:
        find_task(f"{HERE}Nope-v0")
    assert "FetchPush" not in str(refused.value)


def test_a_module_that_does_not_parse(tmp_path, monkeypatch):
    (tmp_path / "crooked.py").write_text("import gymnasium\ndef (")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"cannot import 'crooked': SyntaxError.*crooked.py, line 2"
    ):
        find_task("crooked:Thing-v0")
    (tmp_path / "needy.py").write_text("import no_such_library")
    with pytest.raises(UserError, match=r"ModuleNotFoundError.*no_such_library.*needy.py, line 1"):
        find_task("needy:Thing-v0")


def test_a_limit_of_steps_that_is_none():
    steps = {"max_episode_steps": 2**63 - 1}
    with pytest.raises(UserError, match=r"limit of steps is 9,2.*,807, above 10,000,000; give a"):
        find_task(f"{HERE}Endless-v0", env_kwargs=steps)


@pytest.mark.filterwarnings("ignore:.*maximum and minimum values are equal")  # Gymnasium's
def test_an_action_that_cannot_be_moved_is_one():
    assert find_task(f"{HERE}Sized-v0", env_kwargs={"size": 0.0}).spec.action_high == (0, 0)


def test_arguments_of_the_constructor():
    task = find_task(f"{HERE}Sized-v0", env_kwargs={"size": 3.0})
    assert task.spec.action_high == (3.0, 3.0)
    with make_envs(task.spec, 2) as envs:
        before = envs.reset(0).state
        after = envs.step(np.ones((2, 2))).observation.state
    assert np.allclose(after - before, 3.0)
    with pytest.raises(UserError, match=r"cannot make .*unexpected keyword argument 'width'"):
        find_task(f"{HERE}Sized-v0", env_kwargs={"width": 1})
    with pytest.raises(UserError, match="env_kwargs is for environments of your own"):
        find_task("FetchPush", env_kwargs={"width": 1})


def test_actions_have_the_type_of_the_space():
    assert find_task(f"{HERE}Walk-v0").spec.action_dtype == "float64"
    assert find_task(f"{HERE}Sized-v0").spec.action_dtype == "float32"


def test_a_nan_is_located():
    with (
        make_envs(find_task(f"{HERE}GoesNaN-v0").spec, 2) as envs,
        pytest.raises(UserError, match=r"environment's achieved \(environment 0, step 3\)"),
    ):
        collect_episodes(envs, lambda o: np.zeros((2, 2)), Episodes.allocate(envs.task, 2), seed=0)
