"""Normalizer, actor and action bounds as one module."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from mrn.algorithms import Policy
from mrn.envs import TaskSpec
from mrn.replay import Normalizer


class Fixed(nn.Module):
    """Actor with constant actions in [-1, 1]."""

    def __init__(self, action):
        super().__init__()
        self.action = torch.tensor(action)

    def forward(self, state, goal):
        return self.action.expand(len(state), -1)


def make_spec(low, high, dtype="float32"):
    return TaskSpec("t", "t", 2, 1, (low,), (high,), 5, action_dtype=dtype)


def policy_of(task, action):
    dtype = getattr(torch, task.action_dtype)
    return Policy(Normalizer(task), Fixed(action), task.action_low, task.action_high, dtype)


def test_scaling_to_the_action_bounds_by_hand():
    policy = policy_of(make_spec(-1.0, 3.0), [0.5])
    state, goal = torch.zeros(2, 2), torch.zeros(2, 1)
    assert policy.unit(state, goal).tolist() == [[0.5], [0.5]]
    assert policy(state, goal).tolist() == [[2.0], [2.0]]  # center 1 plus half of 2


def test_networks_get_normalized_inputs():
    task = make_spec(-1.0, 1.0)
    normalizer = Normalizer(task)
    normalizer.state.update(torch.tensor([[0.0, 10.0], [2.0, 30.0]]))
    seen = []

    class Spy(Fixed):
        def forward(self, state, goal):
            seen.append(state)
            return super().forward(state, goal)

    policy = Policy(normalizer, Spy([0.0]), task.action_low, task.action_high)
    policy(torch.tensor([[2.0, 10.0]]), torch.zeros(1, 1))
    assert seen[0].tolist() == [[1.0, -1.0]]  # one standard deviation (1 and 10) from the mean


def test_bounds_are_not_in_the_state_dict():
    assert not [key for key in policy_of(make_spec(-1.0, 1.0), [0.0]).state_dict() if "low" in key]


@settings(deadline=None)
@given(
    ends=st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)).map(sorted),
    action=st.floats(-1, 1, width=32),
    dtype=st.sampled_from(["float32", "float64"]),
)
def test_scaling_in_torch_and_numpy_agree_and_stay_in_bounds(ends, action, dtype):
    """Policies scale in torch, engines in NumPy: same values, dtype of the space, within it."""
    low, high = (float(np.dtype(dtype).type(end)) for end in ends)
    task = make_spec(low, high, dtype)
    ours = policy_of(task, [action]).to_bounds(torch.tensor([action])).numpy()
    theirs = task.to_bounds(np.array([action], np.float32))
    assert ours.dtype == theirs.dtype == np.dtype(dtype)
    assert np.array_equal(ours, theirs)
    assert low <= ours[0] <= high


def test_largest_action_of_a_float64_space():
    """0.2 as float32 is 0.20000000298, which Box(-0.2, 0.2, float64) does not contain."""
    assert make_spec(-0.2, 0.2, "float64").to_bounds(np.array([1.0], np.float32))[0] == 0.2
