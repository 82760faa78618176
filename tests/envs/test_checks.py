"""Tests of `mrn check`: its findings on good and bad environments, and agreement with training."""

import numpy as np
import pytest
import torch

from mrn import cli
from mrn.envs import find_task
from mrn.envs.checks import check_env, check_range, check_spread, std_beyond_rounding
from mrn.envs.custom import make_env
from mrn.replay.normalizer import RunningNorm
from mrn.utils.errors import UserError
from tests.envs import custom_envs

MODULE = "tests.envs.custom_envs:"
CHECKS = (
    "observation space",
    "action space",
    "max_episode_steps",
    "compute_reward",
    "batched reward",
    "determinism",
    "success",
    "value range",
    "value spread",
    "engine",
)


def findings(name, **options):
    return {finding.what: finding for finding in check_env(name, **options)}


def test_good_environment_passes_every_check():
    found = findings(f"{MODULE}TellsSuccess-v0")
    assert tuple(found) == CHECKS
    assert {finding.verdict for finding in found.values()} == {"ok"}
    assert not any(finding.remedy for finding in found.values())
    assert found["observation space"].found == "state dimension 2, goal dimension 2"
    assert found["action space"].found == "dimension 2, bounds [-1, 1] and [0, 4], float64"
    assert found["max_episode_steps"].found == "8"
    assert found["determinism"].found.startswith("bit-identical over 8 steps")
    assert found["value range"].found == "up to 10, clipped above 200"


@pytest.mark.parametrize(
    ("name", "what", "verdict", "problem", "remedy"),
    [
        ("Image", "observation space", "error", "'observation' must be a vector", "FlattenObserv"),
        ("Discrete", "action space", "error", "must be a bounded, one-dim", "discrete actions"),
        ("Unbounded", "action space", "error", "must be a bounded, one-dim", "finite low and high"),
        ("Endless", "max_episode_steps", "error", "no max_episode_steps", "gymnasium.register"),
        ("NoReward", "compute_reward", "error", "no method compute_reward", "add it"),
        ("PaysOne", "compute_reward", "error", "must lie in [-1, 0]", "reward_shift to -1"),
        ("FailsAtReward", "compute_reward", "error", "ValueError: no reward", "the line shown"),
        ("OneRowReward", "batched reward", "warning", "calling it per row is slow", "axis=-1"),
        ("Wanders", "determinism", "warning", "from step 1 on", "self.np_random"),
        ("Remembers", "determinism", "warning", "after other episodes", "new simulator"),
        ("Raises", "determinism", "error", "ZeroDivisionError", "the line shown"),
        ("GoesNaN", "determinism", "error", "'achieved_goal' is not finite", "fix the simulation"),
        ("IntegerActions", "action space", "error", "Box of floats, got Box", "dtype=np.float32"),
        ("Misshapen", "determinism", "error", "shape (3,), but its space has shape (2,)", "fix"),
        ("Millimeters", "value range", "warning", "inputs are clipped at 200", "to meters"),
        ("Kilometers", "value spread", "warning", "value 1 of 'desired_goal' has a sta", "meters"),
        ("FineGoal", "value spread", "warning", "value 2 of 'desired_goal' has a sta", "meters"),
        ("Walk", "success", "ok", "a reward of 0 counts", "is_success"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*observation space")  # raised by Gymnasium for Misshapen
def test_each_problem_is_reported_with_its_fix(name, what, verdict, problem, remedy):
    found = findings(f"{MODULE}{name}-v0")
    assert found[what].verdict == verdict
    assert problem in found[what].found
    assert remedy in found[what].remedy
    # Without a reward, the environment's steps fail too.
    affected = {what, "determinism"} if what == "compute_reward" else {what}
    others = [finding for finding in found.values() if finding.what not in affected]
    assert not any(finding.verdict in ("error", "warning") for finding in others)


ONLY_WHILE_STEPPING = {"Raises", "GoesNaN", "Misshapen", "FailsAtStart", "Hangs", "Dies"}
ONLY_WHILE_STEPPING |= {"ExitsAtStep"}
"""Environments whose problems appear only when stepped, or that must not be stepped here."""


def test_training_and_check_reject_the_same_environments():
    """Both use the same functions; compare them on every custom environment."""
    classes = [custom_envs.Walk, *custom_envs.Walk.__subclasses__()]
    names = {cls.__name__ for cls in classes} - ONLY_WHILE_STEPPING - {"Slow", "PaysNaN"}
    rejected = set()
    for name in names | {"Endless"}:
        env_id = f"{MODULE}{name}-v0"
        errors = [finding for finding in check_env(env_id) if finding.verdict == "error"]
        if errors:
            rejected.add(name)
            with pytest.raises(UserError) as error:
                find_task(env_id)
            assert errors[0].found in str(error.value)
            assert errors[0].remedy in str(error.value)
        else:
            find_task(env_id)
    assert {"Discrete", "Endless", "Image", "FailsAtReset", "PaysOne"} <= rejected
    assert {"Walk", "Wanders", "OneRowReward", "TellsSuccess"} <= names - rejected


def normalized_goals(name):
    """Return the goals of 20 episodes after normalization."""
    env, norm = make_env(f"{MODULE}{name}-v0"), RunningNorm(2)
    goals = torch.as_tensor(np.stack([env.reset(seed=i)[0]["desired_goal"] for i in range(20)]))
    norm.update(goals)
    return norm(goals.float())


def test_normalizer_hides_the_differences_that_the_check_warns_about():
    assert (normalized_goals("Walk").std(dim=0) > 0.9).all()
    assert normalized_goals("Millimeters").unique().numel() < 20  # most are clipped
    assert (normalized_goals("Kilometers").std(dim=0) < 0.1).all()
    assert (normalized_goals("FineGoal").std(dim=0) < 0.1).tolist() == [False, True]


@pytest.mark.parametrize("task", ["FetchPush", "BlockRotateParallel"])
def test_paper_tasks_pass_the_scale_checks(task):
    """Nearly constant values are fine: a closed gripper, a height that all goals share."""
    found = findings(task)
    assert {found[f"value {what}"].verdict for what in ("range", "spread")} == {"ok"}


def test_range_and_spread_by_hand():
    names = ["value 1 of 'desired_goal'", "value 2 of 'desired_goal'"]
    assert check_range(np.array([200.0, 3.0]), names).verdict == "ok"
    finding = check_range(np.array([3.0, 943.25]), names)
    assert finding.found == (
        "value 2 of 'desired_goal' reaches 943.2, but inputs are clipped at 200"
    )
    # Constant goal values need no spread; a single small state value is often noise.
    for state, goal, verdict in (
        ([1e-6, 0.5], [0.0, 0.5], "ok"),
        ([1e-6, 0.5], [1e-6, 0.5], "warning"),
        ([1e-6, 5e-4], [0.0, 0.5], "warning"),
        ([0.0, 0.0], [0.0, 0.5], "ok"),
        ([0.5, 0.5], [0.0011, 0.5], "ok"),
    ):
        assert check_spread(np.array(state), np.array(goal), names).verdict == verdict
    found = check_spread(np.array([1e-6, 5e-4]), np.zeros(2), names).found
    assert found == "no standard deviation in 'observation' is above 0.0005: " + (
        "far below 0.01, the networks cannot distinguish values"
    )


def test_rounding_differences_do_not_count_as_spread():
    values = np.array([[0.1 + 0.2, 1e-17, 4000.0, 1.0], [0.3, -1e-17, 4000.1, 3.0]])
    assert (std_beyond_rounding(values) > 0).tolist() == [False, False, True, True]
    assert std_beyond_rounding(values)[3] == 1


def test_missing_observation_key_is_an_error():
    found = findings(f"{MODULE}Forgets-v0")["determinism"]
    assert (found.verdict, found.found) == ("error", "its observation has no 'observation'")


def test_options_and_builtin_tasks():
    assert findings(f"{MODULE}PaysOne-v0", reward_shift=-1)["compute_reward"].verdict == "ok"
    sized = findings(f"{MODULE}Sized-v0", kwargs={"size": 3.0})
    assert sized["action space"].found == "dimension 2, bounds [-3, 3], float32"
    reach = findings("FetchReach")
    assert {finding.verdict for finding in reach.values()} == {"ok"}
    assert reach["max_episode_steps"].found == "50"
    assert reach["engine"].found == "envpool (default) and gymnasium"
    assert reach["batched reward"].found == "computed in torch on the training device"
    pen = findings("HandManipulatePenRotate-v1")["batched reward"]
    assert pen.verdict == "ok"
    assert pen.found.endswith("; the environment's own batched version is wrong")
    with pytest.raises(UserError, match="reward_shift only applies to custom environments"):
        check_env("FetchReach", reward_shift=-1)
    assert findings("CartPole-v1")["observation space"].verdict == "error"


def test_check_command(monkeypatch, capsys):
    def command(*args):
        monkeypatch.setattr("sys.argv", ["mrn", "check", *args])
        cli.main()
        return capsys.readouterr().out

    output = command(f"{MODULE}Walk-v0")
    assert output.rstrip().endswith(f"Ready to train: mrn train {MODULE}Walk-v0")
    assert all(what in output for what in CHECKS)
    sized = command(f"{MODULE}Sized-v0", "--env-kwargs", '{"size": 3}')
    assert "[-3, 3]" in sized
    assert f"""mrn train {MODULE}Sized-v0 '--env-kwargs={{"size": 3}}'""" in sized
    assert "--reward-shift=-1.0" in command(f"{MODULE}PaysOne-v0", "--reward-shift=-1")
    for args, message in (
        ([f"{MODULE}PaysOne-v0"], "cannot be used for training; failed checks: compute_reward"),
        ([f"{MODULE}FailsAtStart-v0"], "OSError: no simulator"),
        ([f"{MODULE}PaysOne-v0", "--reward-shift=-2"], "reward_shift must be at least -1"),
        (["FetchPusch"], "Did you mean 'FetchPush'?"),
    ):
        with pytest.raises(SystemExit) as end:
            command(*args)
        assert end.value.code == 2
        assert message in capsys.readouterr().err
