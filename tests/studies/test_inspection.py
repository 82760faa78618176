import json

import numpy as np
import pytest
import scipy.stats
import torch

import mrn
from mrn.studies.inspection import measure as inspection
from mrn.studies.inspection import report as inspection_report
from tests.commands import mrn as mrn_command
from tests.training.helpers import straight, tiny_run


def test_violations_by_hand():
    d12, d23 = torch.tensor([1.0, 1.0, 2.0, 0.0]), torch.tensor([1.0, 2.0, 2.0, 1.0])
    found = inspection.violations(d12, d23, torch.tensor([4.0, 3.0, 5.0, 1.0]))
    assert found.share == 0.5
    assert found.mean == pytest.approx((2 + 1) / 2)
    assert found.largest == pytest.approx(2)
    assert inspection.violations(d12, d23, d12 + d23).share == 0


def test_ranks_are_those_of_scipy():
    values = np.random.default_rng(0).integers(10, size=50).astype(float)
    np.testing.assert_array_equal(inspection.ranks(values), scipy.stats.rankdata(values) - 1)


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    critics = ("mrn", "mrn-sag", "mrn-sym", "monolithic")
    return {critic: tiny_run(folder / critic, critic=critic) for critic in critics} | {
        "folder": folder
    }


class Ruler(torch.nn.Module):
    """-Q is the cost of walking straight to a goal of FetchReach, as `straight` does."""

    def forward(self, state, action, goal):
        return -10 * (state[:, :3] - goal).norm(dim=-1)


@pytest.fixture(scope="module")
def walker(tmp_path_factory):
    """An agent that walks straight, and knows it."""
    agent = tiny_run(tmp_path_factory.mktemp("walker") / "run")
    agent.act = straight
    agent.algorithm.critic = Ruler()
    for norm in (agent.normalizer.state, agent.normalizer.goal):
        norm.shift.zero_(), norm.scale.fill_(1)
    return agent


def test_a_true_distance_counts_steps_and_breaks_no_triangle(walker):
    moments = inspection.watch(walker, 20, seed=0)
    assert moments.success.mean() == 1
    assert len(moments.state) == 20 * 50
    found = inspection.inspect(walker, moments)
    assert found.success == 1
    assert found.goal_triangle.share == 0
    # The robot gains speed first: its steps are nearly, not exactly, in proportion to the way.
    before = ~np.isnan(moments.steps_left)
    way, steps = _way(moments)[before], moments.steps_left[before]
    expected = scipy.stats.spearmanr(way, steps).statistic
    assert found.rank_correlation == pytest.approx(expected, abs=1e-6)
    assert expected > 0.9
    cost = [sum(0.98**t for t in range(int(count) - 1)) for count in steps]
    assert found.linear_correlation == pytest.approx(np.corrcoef(way, cost)[0, 1], abs=1e-6)
    assert found.bias == pytest.approx(np.mean(way - cost), abs=1e-4)
    assert found.symmetric_share is None
    # Steps count down to the one that reaches the goal, and mean nothing after it.
    left = moments.steps_left[:50]
    first = int(left[0])
    np.testing.assert_array_equal(left[:first], np.arange(first, 0, -1))
    assert np.isnan(left[first:]).all()
    # The cheapest goal of the plane is where the gripper is.
    across, up, values = inspection_report.goal_plane(walker, moments)
    row, column = np.unravel_index(values.argmin(), values.shape)
    here = moments.achieved[0]
    assert abs(across[column] - here[0]) <= across[1] - across[0]
    assert abs(up[row] - here[1]) <= up[1] - up[0]


def test_as_many_episodes_as_asked_for_and_no_correlation_from_few_successes(walker):
    moments = inspection.watch(walker, 30, seed=0)
    assert len(moments.success) == 30
    assert len(moments.state) == 30 * 50
    few = inspection.watch(walker, 9, seed=0)
    assert few.success.all()
    found = inspection.inspect(walker, few)
    assert (found.rank_correlation, found.linear_correlation, found.bias) == (None, None, None)


def _way(moments):
    return 10 * (moments.achieved - moments.goal).norm(dim=-1).double().numpy()


def test_a_distance_without_its_root_breaks_triangles(walker):
    moments = inspection.watch(walker, 20, seed=0)

    class Squared(Ruler):
        def forward(self, *inputs):
            return -(super().forward(*inputs) ** 2)

    walker.algorithm.critic = Squared()
    found = inspection.inspect(walker, moments)
    walker.algorithm.critic = Ruler()
    assert found.goal_triangle.share > 0.05


@pytest.mark.parametrize("critic", ["mrn", "mrn-sag", "mrn-sym", "monolithic"])
def test_each_critic_has_what_it_has(agents, critic):
    agent = agents[critic]
    found = inspection.inspect(agent, inspection.watch(agent, 4, seed=1))
    if critic == "monolithic":
        assert found.embedding_triangle is None
    else:
        assert found.embedding_triangle.share == 0
    if critic in ("mrn", "mrn-sag"):
        assert 0 < found.symmetric_share < 1
    else:
        assert found.symmetric_share is None


@pytest.mark.parametrize(
    ("spread", "axes"),
    [([1.0], (0, 0)), ([1, 2], (0, 1)), ([9, 1, 5], (0, 1)), ([1, 9, 2, 5], (1, 3))],
)
def test_the_plane_of_the_picture_is_that_of_the_goals(spread, axes):
    goals = torch.randn(50, len(spread)) * 0.01 + torch.linspace(-1, 1, 50)[:, None] * torch.tensor(
        spread
    )
    nothing = torch.zeros(50, 1)
    moments = inspection.Moments(nothing, nothing, goals, goals, np.zeros(50), np.zeros(1))
    assert inspection_report.plane_axes(moments) == axes


def test_the_share_of_the_parts_by_hand(agents):
    agent = agents["mrn"]
    moments = inspection.watch(agent, 4, seed=1)
    columns = (moments.state[:1], moments.action[:1], moments.goal[:1])
    share = inspection.symmetric_share(agent, *columns)
    state, goal = agent.normalizer.state(columns[0]), agent.normalizer.goal(columns[2])
    critic = agent.algorithm.critic
    x = critic.head.project(critic.e1(torch.cat([state, columns[1]], dim=-1)))
    y = critic.head.project(critic.e2(torch.cat([state, goal], dim=-1)))
    symmetric = (x[0] - y[0]).square().mean().sqrt()
    asymmetric = (x[1] - y[1]).max().clamp(min=0)
    assert share == pytest.approx((symmetric / (symmetric + asymmetric)).item(), rel=1e-4)


def test_the_command_prints_and_writes(agents):
    run = agents["folder"] / "mrn"
    done = mrn_command("inspect", run, "--episodes", "4")
    assert done.returncode == 0, done.stderr
    found = json.loads((run / "inspect.json").read_text())
    assert found["episodes"] == 4
    assert f"{found['symmetric_share']:.3f}" in done.stdout
    assert "broken triangles of the head between embeddings" in done.stdout
    assert (run / "inspect.png").read_bytes().startswith(b"\x89PNG")
    assert same_figures(found, mrn.load(run))


def same_figures(found, agent):
    again = inspection.inspect(agent, inspection.watch(agent, 4, seed=0), seed=0)
    return found["goal_triangle"]["share"] == again.goal_triangle.share
