"""The ring of episodes: what is stored, what is dropped, what it costs."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.envs import TASKS
from mrn.replay import ReplayBuffer
from mrn.replay.buffer import LARGEST
from mrn.utils.errors import UserError
from tests.replay.helpers import CPU, HORIZON, SHAPE, counting_episodes, episode_id, filled, step_of


def stored(buffer: ReplayBuffer) -> list[tuple[int, int]]:
    """(episode, step) of every stored transition, in order."""
    rows = buffer.newest(len(buffer))
    stamps = buffer.state[rows, 0]
    return list(zip(episode_id(stamps).tolist(), step_of(stamps).tolist(), strict=True))


@given(st.lists(st.lists(st.integers(1, HORIZON), min_size=1, max_size=3), min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_the_newest_whole_episodes_are_kept(groups):
    """Against a plain list of episodes, for any lengths, through many wraps."""
    buffer = filled(40, groups)
    lengths = [length for group in groups for length in group]
    kept: list[int] = []
    first = 0
    for group in groups:  # dropping happens as a group arrives
        needed = sum(length + 1 for length in group)
        while sum(lengths[e] + 1 for e in kept) + needed > buffer.rows:
            kept.pop(0)
        kept += range(first, first + len(group))
        first += len(group)
    assert stored(buffer) == [(e, t) for e in kept for t in range(lengths[e])]
    rows = buffer.newest(len(buffer))
    next_rows = (rows + 1) % buffer.rows
    assert torch.equal(buffer.state[next_rows, 0], buffer.state[rows, 0] + 1)
    assert torch.equal(buffer.goal[rows, 0], -episode_id(buffer.state[rows, 0]).float())
    steps = step_of(buffer.state[rows, 0])
    assert torch.equal(buffer.since_start[rows].long(), steps)
    ends = torch.tensor([lengths[e] for e, _ in stored(buffer)])
    assert torch.equal(buffer.until_end[rows].long(), ends - steps)
    assert torch.allclose(buffer.action[rows, 0], steps / 100)


def test_full_length_episodes_fill_the_whole_capacity():
    buffer = filled(40, [[HORIZON] * 2] * 5)
    assert len(buffer) == 40
    assert sorted({e for e, _ in stored(buffer)}) == [6, 7, 8, 9]


def test_every_transition_is_drawn_equally_often():
    buffer = filled(40, [[HORIZON, 3], [1, 7], [HORIZON, 4, 2]])
    generator = torch.Generator().manual_seed(0)
    draws = 200_000
    rows = buffer.draw(torch.rand(draws, generator=generator, dtype=torch.float64))
    known = buffer.newest(len(buffer))
    counts = torch.bincount(rows, minlength=buffer.rows)[known]
    assert counts.sum() == draws  # nothing but stored transitions
    expected = draws / len(buffer)
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    from scipy.stats import chi2

    assert chi_square < chi2.ppf(0.999, len(buffer) - 1)


@pytest.mark.parametrize("horizon", [1, HORIZON])
def test_places_of_the_largest_replay_fit_their_type(horizon):
    """Its last transition is drawn as the last one, wherever the ring begins; without the memory.

    Places are int32: beyond that they would be those of other transitions.
    """
    buffer = ReplayBuffer(replace(SHAPE, horizon=horizon), horizon, CPU)
    buffer.rows = LARGEST // horizon * (horizon + 1)
    buffer.row_of = lambda place: place % buffer.rows
    for first in (0, buffer.rows - 1):
        buffer.first, buffer.last = first, first + LARGEST
        nearly_one = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
        expected = [first, (first + LARGEST - 1) % buffer.rows]
        assert buffer.draw(nearly_one).tolist() == expected
    with pytest.raises(UserError, match="at most 500,000,000 transitions, got 500,000,001"):
        ReplayBuffer(replace(SHAPE, horizon=horizon), LARGEST + 1, CPU)
    assert buffer.rows - 1 <= torch.iinfo(buffer.transitions.dtype).max
    assert buffer.rows - 1 + horizon <= torch.iinfo(buffer.until_end.dtype).max  # of hindsight


def test_termination_is_marked_on_the_last_transition_only():
    buffer = ReplayBuffer(SHAPE, 40, CPU)
    buffer.add(counting_episodes(0, [4, HORIZON], terminated=[True, False]))
    rows = buffer.newest(len(buffer))
    assert buffer.terminated[rows].tolist() == [False] * 3 + [True] + [False] * HORIZON


def test_memory_is_what_the_data_needs():
    shape = TASKS["FetchPush"].spec
    buffer = ReplayBuffer(shape, 1_000_000, CPU)
    assert buffer.rows == 20_000 * 51
    numbers = shape.state_dim + 2 * shape.goal_dim + shape.action_dim
    assert buffer.nbytes == buffer.rows * (4 * numbers + 3 * 4 + 2)
    addresses = [t.data_ptr() for t in vars(buffer).values() if isinstance(t, torch.Tensor)]
    small = ReplayBuffer(SHAPE, 40, CPU)
    before = [t.data_ptr() for t in vars(small).values() if isinstance(t, torch.Tensor)]
    for first in range(20):
        small.add(counting_episodes(first, [HORIZON]))
    after = [t.data_ptr() for t in vars(small).values() if isinstance(t, torch.Tensor)]
    assert before == after  # allocated once
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_capacity_below_what_comes_at_once_is_refused(at_once):
    with pytest.raises(UserError, match=f"{at_once} episodes of 10 transitions"):
        ReplayBuffer(SHAPE, at_once * HORIZON - 1, CPU, at_once)
    assert ReplayBuffer(SHAPE, at_once * HORIZON, CPU, at_once).rows == at_once * (HORIZON + 1)
