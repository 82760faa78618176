"""`mrn check`: what is said of environments, good and bad; and that training agrees."""

import numpy as np
import pytest
import torch

from mrn import cli
from mrn.envs import find_task
from mrn.envs.checks import check_env, deviation, judge_size, judge_spread
from mrn.envs.custom import make_env
from mrn.replay.normalizer import RunningNorm
from mrn.utils.errors import UserError
from tests.envs import custom_envs

HERE = "tests.envs.custom_envs:"
ASKED = (
    "observations",
    "actions",
    "limit of steps",
    "reward, by row",
    "reward, by batch",
    "same seed, same episode",
    "success",
    "size of values",
    "spread of values",
    "engine",
)


def findings(name, **options):
    return {each.what: each for each in check_env(name, **options)}


def test_a_good_environment_fits_in_all():
    found = findings(f"{HERE}TellsSuccess-v0")
    assert tuple(found) == ASKED
    assert {each.verdict for each in found.values()} == {"yes"}
    assert not any(each.remedy for each in found.values())
    assert found["observations"].found == "state of 2 values, goals of 2"
    assert found["actions"].found == "2 values in [-1, 1] and [0, 4], float64"
    assert found["limit of steps"].found == "8 in an episode"
    assert found["same seed, same episode"].found.startswith("8 steps")
    assert found["size of values"].found == "up to 10, where 200 is seen"


@pytest.mark.parametrize(
    ("name", "what", "verdict", "said", "remedy"),
    [
        ("Image", "observations", "no", "'observation' must be a vector", "FlattenObservation"),
        ("Discrete", "actions", "no", "must be a bounded Box", "a choice of several"),
        ("Unbounded", "actions", "no", "must be a bounded Box", "RescaleAction"),
        ("Endless", "limit of steps", "no", "no limit of steps", "max_episode_steps"),
        ("NoReward", "reward, by row", "no", "no method compute_reward", "add it"),
        ("PaysOne", "reward, by row", "no", "must lie in [-1, 0]", "reward_shift to -1"),
        ("FailsAtReward", "reward, by row", "no", "ValueError: no reward", "line that is named"),
        ("OneRowReward", "reward, by batch", "but", "row by row, which is slow", "axis=-1"),
        ("Wanders", "same seed, same episode", "but", "from step 1 on", "self.np_random"),
        ("Remembers", "same seed, same episode", "but", "after other episodes", "make it anew"),
        ("Raises", "same seed, same episode", "no", "ZeroDivisionError", "line that is named"),
        ("GoesNaN", "same seed, same episode", "no", "'achieved_goal' is not finite", "mend"),
        ("NonNegativeInt", "actions", "no", "of floats, got Box", "dtype=np.float32"),
        ("Misshapen", "same seed, same episode", "no", "shape (3,), its space says (2,)", "mend"),
        ("Millimetres", "size of values", "but", "beyond 200 all look alike", "to metres"),
        ("Kilometres", "spread of values", "but", "value 1 of 'desired_goal' has a sta", "metres"),
        ("FineGoal", "spread of values", "but", "value 2 of 'desired_goal' has a sta", "metres"),
        ("Walk", "success", "yes", "a reward of 0 counts", "is_success"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*observation space")  # Gymnasium's, of Misshapen
def test_what_does_not_fit_is_said_with_its_remedy(name, what, verdict, said, remedy):
    found = findings(f"{HERE}{name}-v0")
    assert found[what].verdict == verdict
    assert said in found[what].found
    assert remedy in found[what].remedy
    # The steps of an environment without a reward fail too.
    same = {what, "same seed, same episode"} if what == "reward, by row" else {what}
    others = [each for each in found.values() if each.what not in same]
    assert not any(each.verdict in ("no", "but") for each in others)


WHILE_PLAYING = {"Raises", "GoesNaN", "Misshapen", "FailsAtStart", "Hangs", "Dies"}
"""What is found out only when it is stepped, by training too; or is not to be tried here."""


def test_training_refuses_what_the_check_refuses():
    """Both ask the same functions; here of every environment that can be asked."""
    classes = [custom_envs.Walk, *custom_envs.Walk.__subclasses__()]
    names = {each.__name__ for each in classes} - WHILE_PLAYING - {"Slow", "PaysNaN"}
    refused = set()
    for name in names | {"Endless"}:
        env_id = f"{HERE}{name}-v0"
        told = [each for each in check_env(env_id) if each.verdict == "no"]
        if told:
            refused.add(name)
            with pytest.raises(UserError) as error:
                find_task(env_id)
            assert told[0].found in str(error.value)
            assert told[0].remedy in str(error.value)
        else:
            find_task(env_id)
    assert {"Discrete", "Endless", "Image", "FailsAtReset", "PaysOne"} <= refused
    assert {"Walk", "Wanders", "OneRowReward", "TellsSuccess"} <= names - refused


def seen_as(name):
    """Goals of some episodes, and the same ones as a policy sees them."""
    env, norm = make_env(f"{HERE}{name}-v0"), RunningNorm(2)
    goals = torch.as_tensor(np.stack([env.reset(seed=i)[0]["desired_goal"] for i in range(20)]))
    norm.update(goals)
    return norm(goals.float())


def test_goals_look_alike_where_the_check_says_so():
    """The scale of the check is the normaliser's."""
    assert (seen_as("Walk").std(dim=0) > 0.9).all()
    assert seen_as("Millimetres").unique().numel() < 20  # most are at one end or the other
    assert (seen_as("Kilometres").std(dim=0) < 0.1).all()
    assert (seen_as("FineGoal").std(dim=0) < 0.1).tolist() == [False, True]


@pytest.mark.parametrize("task", ["FetchPush", "BlockRotateParallel"])
def test_values_of_the_papers_tasks_can_be_told_apart(task):
    """Though some hardly change: a shut gripper's; a height that goals have in common."""
    found = findings(task)
    assert {found[f"{what} of values"].verdict for what in ("size", "spread")} == {"yes"}


def test_size_and_spread_by_hand():
    names = ["value 1 of 'desired_goal'", "value 2 of 'desired_goal'"]
    assert judge_size(np.array([200.0, 3.0]), names).verdict == "yes"
    told = judge_size(np.array([3.0, 943.25]), names)
    assert told.found == "value 2 of 'desired_goal' comes to 943.2: beyond 200 all look alike"
    # Goals that do not differ are no goals to tell apart; one value of a state is often noise.
    for state, goal, verdict in (
        ([1e-6, 0.5], [0.0, 0.5], "yes"),
        ([1e-6, 0.5], [1e-6, 0.5], "but"),
        ([1e-6, 5e-4], [0.0, 0.5], "but"),
        ([0.0, 0.0], [0.0, 0.5], "yes"),
        ([0.5, 0.5], [0.0011, 0.5], "yes"),
    ):
        assert judge_spread(np.array(state), np.array(goal), names).verdict == verdict
    told = judge_spread(np.array([1e-6, 5e-4]), np.zeros(2), names).found
    assert told == "no standard deviation in 'observation' is above 0.0005: " + (
        "far below 0.01 values look alike"
    )


def test_values_that_differ_by_rounding_alone_do_not_differ():
    values = np.array([[0.1 + 0.2, 1e-17, 4000.0, 1.0], [0.3, -1e-17, 4000.1, 3.0]])
    assert (deviation(values) > 0).tolist() == [False, False, True, True]
    assert deviation(values)[3] == 1


def test_an_observation_that_is_not_there():
    found = findings(f"{HERE}Forgets-v0")["same seed, same episode"]
    assert (found.verdict, found.found) == ("no", "it shows no 'observation'")


def test_options_and_the_papers_tasks():
    assert findings(f"{HERE}PaysOne-v0", reward_shift=-1)["reward, by row"].verdict == "yes"
    sized = findings(f"{HERE}Sized-v0", kwargs={"size": 3.0})
    assert sized["actions"].found == "2 values in [-3, 3], float32"
    reach = findings("FetchReach")
    assert {each.verdict for each in reach.values()} == {"yes"}
    assert reach["limit of steps"].found == "50 in an episode"
    assert reach["engine"].found == "envpool (by default) and gymnasium"
    assert reach["reward, by batch"].found == "computed in torch, on the device"
    pen = findings("HandManipulatePenRotate-v1")["reward, by batch"]
    assert pen.verdict == "yes"
    assert pen.found.endswith("; the environment's own is wrong, for other libraries")
    with pytest.raises(UserError, match="reward_shift is for environments of your own"):
        check_env("FetchReach", reward_shift=-1)
    assert findings("CartPole-v1")["observations"].verdict == "no"


def test_the_command(monkeypatch, capsys):
    def command(*words):
        monkeypatch.setattr("sys.argv", ["mrn", "check", *words])
        cli.main()
        return capsys.readouterr().out

    told = command(f"{HERE}Walk-v0")
    assert told.rstrip().endswith(f"It can be trained on: mrn train {HERE}Walk-v0")
    assert all(what in told for what in ASKED)
    sized = command(f"{HERE}Sized-v0", "--env-kwargs", '{"size": 3}')
    assert "[-3, 3]" in sized
    assert f"""mrn train {HERE}Sized-v0 '--env-kwargs={{"size": 3}}'""" in sized
    assert "--reward-shift=-1.0" in command(f"{HERE}PaysOne-v0", "--reward-shift=-1")
    for words, message in (
        ([f"{HERE}PaysOne-v0"], "cannot be trained on as it is: reward, by row"),
        ([f"{HERE}FailsAtStart-v0"], "OSError: no simulator"),
        ([f"{HERE}PaysOne-v0", "--reward-shift=-2"], "reward_shift must be at least -1"),
        (["FetchPusch"], "Did you mean 'FetchPush'?"),
    ):
        with pytest.raises(SystemExit) as end:
            command(*words)
        assert end.value.code == 2
        assert message in capsys.readouterr().err
