"""Critics with a shared encoder: the triangle inequality between real states and goals."""

import pytest
import torch

from mrn.critics import CRITICS, make_critic
from mrn.critics.shared import SharedMetricCritic
from mrn.studies.inspection import measure
from tests.training.helpers import tiny_run

SHARED = [name for name in CRITICS if name.endswith("-shared")]
ROUNDING = 1 + 1e-5


@pytest.fixture(scope="module")
def pushed(tmp_path_factory):
    """An agent and real states of FetchPush; of the first four episodes' 200 steps."""
    folder = tmp_path_factory.mktemp("shared")
    settings = {"epochs": 1, "cycles": 1, "gradient_steps": 1, "eval_episodes": 1}
    agent = tiny_run(folder / "run", "FetchPush", critic="mrn-shared", **settings)
    return agent, measure.collect_samples(agent, 4, seed=0)


def test_every_plain_head_has_a_shared_encoder():
    assert {f"{head}-shared" for head in ("mrn", "dn", "wn", "pqe", "iqe")} == set(SHARED)


@pytest.mark.parametrize("name", SHARED)
def test_triangle_inequality_between_states_and_goals_of_fetch_push(name, pushed):
    agent, samples = pushed
    torch.manual_seed(0)
    critic = make_critic(name, state_dim=25, action_dim=4, goal_dim=3).double()
    assert isinstance(critic, SharedMetricCritic)
    with torch.no_grad():
        for weight in critic.parameters():
            weight.mul_(3)  # far from the initial scale
    state, goal = agent.policy.inputs(samples.state, samples.achieved)
    state, goal, action = state.double(), goal.double(), samples.action.double()
    i, j, k = torch.randint(len(state), (3, 2000), generator=torch.Generator().manual_seed(0))
    assert len(state) == 200

    def between(a, b):
        x = critic.embed_state(state, goal)
        return critic.head(x[a], x[b])

    assert between(i, k).max() > 0
    assert (between(i, i) == 0).all()
    assert (between(i, k) <= ROUNDING * (between(i, j) + between(j, k))).all()
    # From a state and action to a goal: through any other state.
    to_middle, to_goal = (-critic(state[i], action[i], goal[via]) for via in (j, k))
    assert (to_goal <= ROUNDING * (to_middle + between(j, k))).all()


def test_states_with_the_same_achieved_goal_are_one_point(pushed):
    agent, samples = pushed
    critic = agent.algorithm.critic
    goal = samples.achieved[:1].expand(len(samples.state), -1)
    state, goal = agent.policy.inputs(samples.state, goal)
    points = critic.embed_state(state, goal)
    assert (critic.head(points[:-1], points[1:]) == 0).all()


def test_goal_side_does_not_depend_on_the_state():
    critic = make_critic("mrn-shared", state_dim=25, action_dim=4, goal_dim=3)
    state, goal = torch.randn(8, 25), torch.randn(8, 3)
    one, other = critic.goal_side(state, goal), critic.goal_side(state + 1, goal)
    assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_inspection_finds_no_violation_between_states(pushed):
    agent, samples = pushed
    found = measure.inspect(agent, samples)
    assert found.state_triangle.share == found.embedding_triangle.share == 0
    assert found.achieved_goal_distance == 0
