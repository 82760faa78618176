"""Tests of custom environments: which are accepted, which are rejected, and with what message."""

import numpy as np
import pytest
import torch

import mrn
from mrn.envs import TASKS, find_task, make_envs
from mrn.envs.custom import make_custom_task
from mrn.envs.vector import batched_success
from mrn.replay import Episodes
from mrn.training.rollout import collect_episodes
from mrn.utils.errors import UserError
from tests.training.helpers import tiny_run

MODULE = "tests.envs.custom_envs:"


def test_goal_environment_becomes_a_task():
    task = find_task(f"{MODULE}Walk-v0")
    spec = task.spec
    assert (spec.state_dim, spec.goal_dim, spec.action_dim, spec.horizon) == (2, 2, 2, 8)
    assert (spec.action_low, spec.action_high) == ((-1, 0), (1, 4))
    goals = torch.tensor([[0.0, 0.0], [0.0, 0.0]])
    assert task.reward(goals, torch.tensor([[0.1, 0.0], [1.0, 0.0]])).tolist() == [0, -1]


def test_actions_are_scaled_to_the_bounds_of_the_environment():
    with make_envs(find_task(f"{MODULE}Walk-v0").spec, 2) as envs:
        before = envs.reset(0).state
        after = envs.step(np.array([[-1.0, -1.0], [0.5, 1.0]])).observation.state
    assert np.allclose(after - before, [[-1, 0], [0.5, 4]])


def test_unbatched_reward_is_called_row_by_row():
    task = find_task(f"{MODULE}OneRowReward-v0")
    assert task.reward.batched is False
    assert find_task(f"{MODULE}Walk-v0").reward.batched is True
    rewards = task.reward(torch.zeros(3, 2), torch.tensor([[0.0, 0], [3, 0], [0.2, 0]]))
    assert rewards.tolist() == [0, -1, 0]


def test_pen_reward_of_gymnasium_robotics_is_called_row_by_row():
    """Its batched reward is wrong, which the constructor of EnvReward detects."""
    task = make_custom_task("HandManipulatePenRotate_BooleanTouchSensors-v1")
    assert task.spec.state_dim == 153
    assert task.reward.batched is False


def test_paper_tasks_are_found_by_gymnasium_id():
    assert find_task("FetchPickAndPlace-v4") is TASKS["FetchPick"]


def test_reward_shift_is_added():
    task = find_task(f"{MODULE}PaysOne-v0", reward_shift=-1)
    assert task.reward(torch.zeros(1, 2), torch.zeros(1, 2)).tolist() == [0]


def test_nothing_is_recorded_after_early_termination():
    task = find_task(f"{MODULE}EndsAtGoal-v0")
    with make_envs(task.spec, 6) as envs:

        def walk(observation):
            offset = (observation.goal - observation.achieved).clip([-1, 0], [1, 4])
            return np.stack([offset[:, 0], offset[:, 1] / 2 - 1], axis=1)  # to [-1, 1]

        episodes = collect_episodes(envs, walk, Episodes.allocate(task.spec, 6), seed=2)
    assert episodes.terminated.any()
    assert not episodes.terminated.all()  # some goals lie below, which it cannot reach
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
        # A single goal per episode: no data of the next episode is within the length.
        assert (episodes.goal[i, : end + 1] == episodes.goal[i, 0]).all()


def test_exit_in_a_step_is_an_error(tmp_path):
    """Otherwise, a script that trains would end as if it had succeeded."""
    with pytest.raises(mrn.RunError, match=r"failed in a step: SystemExit: 0 \(.*, line \d+\)"):
        tiny_run(tmp_path / "run", f"{MODULE}ExitsAtStep-v0")


def up(observation):
    return np.tile([0.0, -0.85], (len(observation.goal), 1))


@pytest.mark.parametrize("async_envs", [False, True])
def test_success_does_not_depend_on_the_other_environments(async_envs):
    """A frozen environment that reported success must not affect those that have not."""
    spec, count = find_task(f"{MODULE}TellsSuccessAtEnd-v0").spec, 12
    with make_envs(spec, count, async_envs=async_envs) as envs:
        together = collect_episodes(envs, up, Episodes.allocate(spec, count), seed=4)
    ends = together.length
    within = np.arange(spec.horizon) < ends[:, None]  # (N, T)
    distance = np.linalg.norm(together.achieved[:, 1:] - together.goal[:, 1:], axis=-1)
    assert np.array_equal(together.success & within, (distance <= 0.5) & within)
    # Some end before others, and some of those still running pass their goals after that.
    late = np.arange(spec.horizon) >= ends.min()
    assert (together.success & within & late)[ends > ends.min()].any()
    for i in range(count):
        with make_envs(spec, 1, first=i) as envs:
            alone = collect_episodes(envs, up, Episodes.allocate(spec, 1), seed=4)
        assert alone.length[0] == ends[i]
        assert np.array_equal(alone.success[0, : ends[i]], together.success[i, : ends[i]])


def test_reported_success_takes_precedence_over_the_reward():
    default = np.array([True, True, True, False])
    assert batched_success({}, default).tolist() == [True, True, True, False]
    info = {
        "is_success": np.array([0.0, 0.0, 0.0, 1.0]),
        "_is_success": np.array([True, False, False, True]),
        "success": np.array([True, False, None, None]),
        "_success": np.array([True, True, False, False]),
    }
    assert batched_success(info, default).tolist() == [False, False, True, True]
    wrapped = {"is_success": np.array([[False], [True], [True], [True]]), "_is_success": ~default}
    assert batched_success(wrapped, default).tolist() == [True, True, True, True]
    with pytest.raises(
        UserError, match=r"info\['is_success'\] must be one value, got shape \(2,\)"
    ):
        batched_success(wrapped | {"is_success": np.zeros((4, 2))}, default)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Discrete-v0",
            "action space must be a bounded, one-dim.*discrete actions are not supported",
        ),
        ("Unbounded-v0", "action space must be a bounded, one-dim.*finite low and high"),
        ("Matrix-v0", "action space must be a bounded, one-dim.*ActionWrapper"),
        ("NoneReward-v0", "has no method compute_reward"),
        ("ExitsAtReset-v0", r"reset failed: SystemExit: 0 \(.*custom_envs.py, line \d+\)"),
        ("FailsAtReset-v0", r"reset failed: KeyError: 'pond' \(.*custom_envs.py, line \d+\)"),
        (
            "FailsAtReward-v0",
            r"compute_reward failed: ValueError: no reward \(.*custom_envs.py, line",
        ),
        ("FailsAtStart-v0", r"cannot make.*OSError: no simulator \(.*custom_envs.py, line \d+\)"),
        ("Image-v0", "'observation' must be a vector"),
        ("PaysOne-v0", "rewards must lie in .-1, 0.*got 1; .*reward_shift"),
        ("NoReward-v0", "has no method compute_reward"),
        ("Endless-v0", "has no max_episode_steps; set it in gymnasium.register"),
    ],
)
def test_unsupported_environments_are_rejected(name, message):
    with pytest.raises(UserError, match=message):
        find_task(MODULE + name)


def test_unknown_names_are_rejected():
    with pytest.raises(UserError, match="CartPole-v1.*not a goal environment"):
        find_task("CartPole-v1")
    with pytest.raises(UserError, match=r"unknown task 'FetchPusch'. Did you mean 'FetchPush'"):
        find_task("FetchPusch")
    with pytest.raises(UserError, match="there is no module 'no_such_module'"):
        find_task("no_such_module:Thing-v0")
    with pytest.raises(UserError, match="'envpool' does not support"):
        make_envs(find_task(f"{MODULE}Walk-v0").spec, 1, "envpool")


def test_unknown_id_of_a_module_lists_the_ids_of_that_module():
    with pytest.raises(UserError, match=r"Available: tests.envs.custom_envs:Dies-v0, ") as error:
        find_task(f"{MODULE}Nope-v0")
    assert "FetchPush" not in str(error.value)


def test_import_errors_name_the_file_and_line(tmp_path, monkeypatch):
    (tmp_path / "invalid.py").write_text("import gymnasium\ndef (")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"cannot import 'invalid': SyntaxError.*invalid.py, line 2"
    ):
        find_task("invalid:Thing-v0")
    (tmp_path / "incomplete.py").write_text("import no_such_library")
    with pytest.raises(
        UserError, match=r"ModuleNotFoundError.*no_such_library.*incomplete.py, line 1"
    ):
        find_task("incomplete:Thing-v0")


def test_excessive_max_episode_steps_is_rejected():
    steps = {"max_episode_steps": 2**63 - 1}
    with pytest.raises(UserError, match=r"must be at most 10,000,000, got 9,2.*,807; set a lower"):
        find_task(f"{MODULE}Endless-v0", env_kwargs=steps)


@pytest.mark.filterwarnings("ignore:.*maximum and minimum values are equal")  # by Gymnasium
def test_action_with_equal_bounds_is_valid():
    assert find_task(f"{MODULE}Sized-v0", env_kwargs={"size": 0.0}).spec.action_high == (0, 0)


def test_env_kwargs_reach_the_constructor():
    task = find_task(f"{MODULE}Sized-v0", env_kwargs={"size": 3.0})
    assert task.spec.action_high == (3.0, 3.0)
    with make_envs(task.spec, 2) as envs:
        before = envs.reset(0).state
        after = envs.step(np.ones((2, 2))).observation.state
    assert np.allclose(after - before, 3.0)
    with pytest.raises(UserError, match=r"cannot make .*unexpected keyword argument 'width'"):
        find_task(f"{MODULE}Sized-v0", env_kwargs={"width": 1})
    with pytest.raises(UserError, match="env_kwargs only applies to custom environments"):
        find_task("FetchPush", env_kwargs={"width": 1})


def test_actions_have_the_dtype_of_the_space():
    assert find_task(f"{MODULE}Walk-v0").spec.action_dtype == "float64"
    assert find_task(f"{MODULE}Sized-v0").spec.action_dtype == "float32"


def test_error_locates_a_nan():
    with (
        make_envs(find_task(f"{MODULE}GoesNaN-v0").spec, 2) as envs,
        pytest.raises(
            UserError,
            match=r"the achieved_goal of the environment is not finite \(environment 0, step 3\)",
        ),
    ):
        collect_episodes(envs, lambda o: np.zeros((2, 2)), Episodes.allocate(envs.task, 2), seed=0)
