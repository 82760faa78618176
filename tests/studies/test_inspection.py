"""Tests of `mrn inspect`: violations, correlations, shares, table and files."""

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


def test_ranks_equal_those_of_scipy():
    values = np.random.default_rng(0).integers(10, size=50).astype(float)
    np.testing.assert_array_equal(inspection.ranks(values), scipy.stats.rankdata(values) - 1)


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("inspect")
    critics = ("mrn", "mrn-sag", "mrn-sym", "monolithic")
    return {critic: tiny_run(folder / critic, critic=critic) for critic in critics} | {
        "folder": folder
    }


class StraightLineCritic(torch.nn.Module):
    """-Q is the cost of moving straight to a goal of FetchReach, as `straight` does."""

    def forward(self, state, action, goal):
        return -10 * (state[:, :3] - goal).norm(dim=-1)


@pytest.fixture(scope="module")
def straight_agent(tmp_path_factory):
    """An agent that moves straight to the goal, with a critic that knows the cost."""
    agent = tiny_run(tmp_path_factory.mktemp("straight") / "run")
    agent.act = straight
    agent.algorithm.critic = StraightLineCritic()
    for norm in (agent.normalizer.state, agent.normalizer.goal):
        norm.shift.zero_(), norm.scale.fill_(1)
    return agent


def test_true_distance_counts_steps_without_violations(straight_agent):
    samples = inspection.collect_samples(straight_agent, 20, seed=0)
    assert samples.success.mean() == 1
    assert len(samples.state) == 20 * 50
    found = inspection.inspect(straight_agent, samples)
    assert found.success == 1
    assert found.goal_triangle.share == 0
    # The robot accelerates first, so its steps are only roughly proportional to the distance.
    before = ~np.isnan(samples.steps_left)
    straight_cost, steps = _straight_cost(samples)[before], samples.steps_left[before]
    expected = scipy.stats.spearmanr(straight_cost, steps).statistic
    assert found.rank_correlation == pytest.approx(expected, abs=1e-6)
    assert expected > 0.9
    cost = [sum(0.98**t for t in range(int(count) - 1)) for count in steps]
    assert found.linear_correlation == pytest.approx(
        np.corrcoef(straight_cost, cost)[0, 1], abs=1e-6
    )
    assert found.bias == pytest.approx(np.mean(straight_cost - cost), abs=1e-4)
    assert found.symmetric_share is None
    # Steps count down to the first success, and are NaN after it.
    left = samples.steps_left[:50]
    first = int(left[0])
    np.testing.assert_array_equal(left[:first], np.arange(first, 0, -1))
    assert np.isnan(left[first:]).all()
    # The cheapest goal of the plane is at the gripper.
    across, up, values = inspection_report.goal_plane(straight_agent, samples)
    row, column = np.unravel_index(values.argmin(), values.shape)
    achieved = samples.achieved[0]
    assert abs(across[column] - achieved[0]) <= across[1] - across[0]
    assert abs(up[row] - achieved[1]) <= up[1] - up[0]


def test_episode_count_and_no_correlation_from_few_successes(straight_agent):
    samples = inspection.collect_samples(straight_agent, 30, seed=0)
    assert len(samples.success) == 30
    assert len(samples.state) == 30 * 50
    few = inspection.collect_samples(straight_agent, 9, seed=0)
    assert few.success.all()
    found = inspection.inspect(straight_agent, few)
    assert (found.rank_correlation, found.linear_correlation, found.bias) == (None, None, None)


def _straight_cost(samples):
    return 10 * (samples.achieved - samples.goal).norm(dim=-1).double().numpy()


def test_squared_distance_violates_the_triangle_inequality(straight_agent):
    samples = inspection.collect_samples(straight_agent, 20, seed=0)

    class Squared(StraightLineCritic):
        def forward(self, *inputs):
            return -(super().forward(*inputs) ** 2)

    straight_agent.algorithm.critic = Squared()
    found = inspection.inspect(straight_agent, samples)
    straight_agent.algorithm.critic = StraightLineCritic()
    assert found.goal_triangle.share > 0.05


@pytest.mark.parametrize("critic", ["mrn", "mrn-sag", "mrn-sym", "monolithic"])
def test_results_depend_on_the_type_of_critic(agents, critic):
    agent = agents[critic]
    found = inspection.inspect(agent, inspection.collect_samples(agent, 4, seed=1))
    if critic == "monolithic":
        assert found.embedding_triangle is None
    else:
        assert found.embedding_triangle.share == 0
    if critic in ("mrn", "mrn-sag"):
        assert 0 < found.symmetric_share < 1
    else:
        assert found.symmetric_share is None
    assert found.state_triangle is found.achieved_goal_distance is None  # states have no point


@pytest.mark.parametrize(
    ("spread", "axes"),
    [([1.0], (0, 0)), ([1, 2], (0, 1)), ([9, 1, 5], (0, 1)), ([1, 9, 2, 5], (1, 3))],
)
def test_plane_axes_are_the_goal_coordinates_that_vary_most(spread, axes):
    goals = torch.randn(50, len(spread)) * 0.01 + torch.linspace(-1, 1, 50)[:, None] * torch.tensor(
        spread
    )
    empty = torch.zeros(50, 1)
    samples = inspection.Samples(empty, empty, goals, goals, np.zeros(50), np.zeros(1))
    assert inspection_report.plane_axes(samples) == axes


def test_symmetric_share_by_hand(agents):
    agent = agents["mrn"]
    samples = inspection.collect_samples(agent, 4, seed=1)
    columns = (samples.state[:1], samples.action[:1], samples.goal[:1])
    share = inspection.symmetric_share(agent, *columns)
    state, goal = agent.normalizer.state(columns[0]), agent.normalizer.goal(columns[2])
    critic = agent.algorithm.critic
    x = critic.head.project(critic.e1(torch.cat([state, columns[1]], dim=-1)))
    y = critic.head.project(critic.e2(torch.cat([state, goal], dim=-1)))
    symmetric = (x[0] - y[0]).square().mean().sqrt()
    asymmetric = (x[1] - y[1]).max().clamp(min=0)
    assert share == pytest.approx((symmetric / (symmetric + asymmetric)).item(), rel=1e-4)


@pytest.mark.parametrize("algo", ["qrl", "mqe"])
def test_distance_between_states_and_its_unit(algo, tmp_path):
    agent = tiny_run(tmp_path / "run", algo=algo)
    samples = inspection.collect_samples(agent, 4, seed=1)
    found = inspection.inspect(agent, samples)
    assert found.state_triangle.share == found.embedding_triangle.share == 0
    # The states and goals themselves, for the mean over all pairs.
    critic = agent.algorithm.critic
    state, achieved = agent.policy.inputs(samples.state, samples.achieved)
    with torch.no_grad():
        pairs = critic.pairs(critic.psi(state), achieved)  # (200, 200)
    expected = (pairs.diagonal().mean() / pairs.mean()).item()
    assert found.achieved_goal_distance == pytest.approx(expected, rel=0.05)
    steps = np.array([1.0, 4.0])
    exact = inspection.expected_distance(agent, steps)
    unit = {"qrl": [0, 3], "mqe": [-np.log(0.98), -4 * np.log(0.98)]}[algo]
    np.testing.assert_allclose(exact, unit)
    shown = inspection_report.table(found).columns[0]._cells
    label = {"qrl": "discounted cost", "mqe": "-log gamma per step"}[algo]
    assert f"mean of -Q minus their {label}" in shown
    assert "triangle violations of the distance between states" in shown
    assert inspection_report.draw(agent, samples).startswith(b"\x89PNG")


def test_inspect_command_prints_and_writes(agents):
    run = agents["folder"] / "mrn"
    done = mrn_command("inspect", run, "--episodes", "4")
    assert done.returncode == 0, done.stderr
    found = json.loads((run / "inspect.json").read_text())
    assert found["episodes"] == 4
    assert f"{found['symmetric_share']:.3f}" in done.stdout
    assert "triangle violations of the head between embeddings" in done.stdout
    assert (run / "inspect.png").read_bytes().startswith(b"\x89PNG")
    assert same_violations(found, mrn.load(run))


def test_inspect_does_not_overwrite_files(agents, tmp_path):
    for name in ("inspect.json", "inspect.png"):
        (tmp_path / name).write_text("precious")
        words = ("inspect", agents["folder"] / "mrn", "--episodes", "4", "-o", tmp_path)
        refused = mrn_command(*words)
        assert refused.returncode == 2
        assert f"{name} already exists; use force to overwrite it" in refused.stderr
        assert [path.name for path in tmp_path.iterdir()] == [name]
        assert mrn_command(*words, "--force").returncode == 0
        assert (tmp_path / name).read_bytes() != b"precious"
        for path in tmp_path.iterdir():
            path.unlink()


def test_constant_q_has_no_correlation_and_valid_json(straight_agent, tmp_path):
    class Constant(StraightLineCritic):
        def forward(self, *inputs):
            return 0 * super().forward(*inputs) - 3

    samples = inspection.collect_samples(straight_agent, 20, seed=0)
    straight_agent.algorithm.critic = Constant()
    found = inspection.inspect(straight_agent, samples)
    files = inspection_report.write(found, straight_agent, samples, tmp_path)
    straight_agent.algorithm.critic = StraightLineCritic()
    written = json.loads(files[0].read_text(), parse_constant=pytest.fail)
    assert written["rank_correlation"] is written["linear_correlation"] is None
    assert written["bias"] is not None


def same_violations(found, agent):
    again = inspection.inspect(agent, inspection.collect_samples(agent, 4, seed=0), seed=0)
    return found["goal_triangle"]["share"] == again.goal_triangle.share
