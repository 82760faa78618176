"""Ring buffer of episodes: what it stores, what it drops, how much memory it takes."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mrn.envs import TASKS
from mrn.replay import ReplayBuffer
from mrn.replay.buffer import MAX_TRANSITIONS
from mrn.utils.errors import UserError
from tests.replay.helpers import (
    CPU,
    HORIZON,
    SPEC,
    counting_episodes,
    episode_of,
    filled_buffer,
    step_of,
)


def stored(buffer: ReplayBuffer) -> list[tuple[int, int]]:
    """Return (episode, step) of every stored transition, in order."""
    rows = buffer.newest(len(buffer))
    stamps = buffer.state[rows, 0]
    return list(zip(episode_of(stamps).tolist(), step_of(stamps).tolist(), strict=True))


@given(st.lists(st.lists(st.integers(1, HORIZON), min_size=1, max_size=3), min_size=1, max_size=12))
@settings(max_examples=150, deadline=None)
def test_buffer_keeps_the_newest_whole_episodes(groups):
    """Compare with a plain list of episodes, for any lengths and many wraps."""
    buffer = filled_buffer(40, groups)
    lengths = [length for group in groups for length in group]
    kept: list[int] = []
    first = 0
    for group in groups:  # episodes are dropped when a group arrives
        needed = sum(length + 1 for length in group)
        while sum(lengths[e] + 1 for e in kept) + needed > buffer.rows:
            kept.pop(0)
        kept += range(first, first + len(group))
        first += len(group)
    assert stored(buffer) == [(e, t) for e in kept for t in range(lengths[e])]
    rows = buffer.newest(len(buffer))
    next_rows = (rows + 1) % buffer.rows
    assert torch.equal(buffer.state[next_rows, 0], buffer.state[rows, 0] + 1)
    assert torch.equal(buffer.goal[rows, 0], -episode_of(buffer.state[rows, 0]).float())
    steps = step_of(buffer.state[rows, 0])
    assert torch.equal(buffer.since_start[rows].long(), steps)
    ends = torch.tensor([lengths[e] for e, _ in stored(buffer)])
    assert torch.equal(buffer.until_end[rows].long(), ends - steps)
    assert torch.allclose(buffer.action[rows, 0], steps / 100)


def test_gather_and_episode_lookups_match_the_stored_columns():
    buffer = filled_buffer(40, [[HORIZON, 3], [1, 7], [HORIZON, 4, 2], [5, 9]])  # wraps around
    rows = buffer.newest(len(buffer))
    found = buffer.gather(rows)
    stamps = found.state[:, 0]
    assert list(zip(episode_of(stamps).tolist(), step_of(stamps).tolist(), strict=True)) == stored(
        buffer
    )
    assert torch.equal(found.next_state[:, 0], stamps + 1)
    assert torch.equal(found.next_achieved[:, 0], stamps + 1)
    assert torch.equal(found.goal[:, 0], -episode_of(stamps).float())
    assert torch.equal(found.action, buffer.action[rows])
    assert torch.equal(found.terminated, buffer.terminated[rows])
    assert torch.equal(found.since_start.long(), step_of(stamps))
    starts = 1000 * episode_of(stamps)
    lengths = found.since_start + found.until_end
    assert torch.equal(buffer.achieved_after(rows, found.until_end)[:, 0], starts + lengths)
    assert torch.equal(buffer.achieved_after(rows, -found.since_start)[:, 0], starts.float())
    assert torch.equal(buffer.state[buffer.first_rows(rows), 0], starts.float())
    number, length = buffer.episodes_since(buffer.oldest)
    first = number % buffer.rows
    assert number[0] == buffer.oldest
    assert episode_of(buffer.state[first, 0]).tolist() == sorted(set(episode_of(stamps).tolist()))
    assert length.tolist() == list(buffer.lengths)
    assert (buffer.since_start[first] == 0).all()
    assert len(buffer.episodes_since(buffer.written)[0]) == 0


def test_full_length_episodes_fill_the_whole_capacity():
    buffer = filled_buffer(40, [[HORIZON] * 2] * 5)
    assert len(buffer) == 40
    assert sorted({e for e, _ in stored(buffer)}) == [6, 7, 8, 9]


def test_draws_are_uniform_over_transitions():
    buffer = filled_buffer(40, [[HORIZON, 3], [1, 7], [HORIZON, 4, 2]])
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
def test_indices_of_the_largest_buffer_fit_into_int32(horizon):
    """Draw its first and last transition wherever the ring starts, without allocating it.

    An index that overflows int32 would point to another transition.
    """
    buffer = ReplayBuffer(replace(SPEC, horizon=horizon), horizon, CPU)
    buffer.rows = MAX_TRANSITIONS // horizon * (horizon + 1)
    buffer._rows_of = lambda place: place % buffer.rows
    for first in (0, buffer.rows - 1):
        buffer.first, buffer.last = first, first + MAX_TRANSITIONS
        nearly_one = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
        expected = [first, (first + MAX_TRANSITIONS - 1) % buffer.rows]
        assert buffer.draw(nearly_one).tolist() == expected
    with pytest.raises(UserError, match="at most 500,000,000 transitions, got 500,000,001"):
        ReplayBuffer(replace(SPEC, horizon=horizon), MAX_TRANSITIONS + 1, CPU)
    assert buffer.rows - 1 <= torch.iinfo(buffer.transitions.dtype).max
    # Relabeling adds an offset of up to `horizon` to a row.
    assert buffer.rows - 1 + horizon <= torch.iinfo(buffer.until_end.dtype).max


def test_only_the_last_transition_of_an_episode_is_terminated():
    buffer = ReplayBuffer(SPEC, 40, CPU)
    buffer.add(counting_episodes(0, [4, HORIZON], terminated=[True, False]))
    rows = buffer.newest(len(buffer))
    assert buffer.terminated[rows].tolist() == [False] * 3 + [True] + [False] * HORIZON


def test_memory_is_allocated_once_and_holds_only_the_data():
    spec = TASKS["FetchPush"].spec
    buffer = ReplayBuffer(spec, 1_000_000, CPU)
    assert buffer.rows == 20_000 * 51
    floats = spec.state_dim + 2 * spec.goal_dim + spec.action_dim
    assert buffer.nbytes == buffer.rows * (4 * floats + 3 * 4 + 1)
    addresses = [t.data_ptr() for t in vars(buffer).values() if isinstance(t, torch.Tensor)]
    small = ReplayBuffer(SPEC, 40, CPU)
    before = [t.data_ptr() for t in vars(small).values() if isinstance(t, torch.Tensor)]
    for first in range(20):
        small.add(counting_episodes(first, [HORIZON]))
    after = [t.data_ptr() for t in vars(small).values() if isinstance(t, torch.Tensor)]
    assert before == after
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("episodes", [1, 3])
def test_capacity_below_one_addition_raises(episodes):
    with pytest.raises(UserError, match=rf"at least {episodes * HORIZON} \({episodes} episodes of"):
        ReplayBuffer(SPEC, episodes * HORIZON - 1, CPU, episodes)
    assert ReplayBuffer(SPEC, episodes * HORIZON, CPU, episodes).rows == episodes * (HORIZON + 1)


def test_only_memory_errors_are_reported_as_such(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch, "zeros", fail)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        ReplayBuffer(SPEC, 100, CPU)
