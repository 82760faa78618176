"""What the processes of a run tell each other."""

import pytest
import torch

from mrn.errors import RunError, UserError
from mrn.team import ALONE, Team, joined, launcher
from tests.teams import in_team


def exchange() -> dict:
    with joined() as team:
        own = torch.tensor([1.0, 2.0]) * 10**team.rank
        matrix = torch.full((2, 2), float(team.rank))
        averages = team.average([own, matrix])
        return {
            "rank": team.rank,
            "leads": team.leads,
            "gather": [value.tolist() for value in team.gather(own)],
            "total": team.total(own).tolist(),
            "own": own.tolist(),
            "average": [value.tolist() for value in averages],
            "most": team.most(7 - team.rank),
            "texts": team.texts("grün" * (team.rank + 1)),
            "empty": team.texts(""),
        }


def test_what_three_processes_exchange(tmp_path):
    results = in_team(3, tmp_path, exchange)
    assert [result.pop("rank") for result in results] == [0, 1, 2]
    assert [result.pop("leads") for result in results] == [True, False, False]
    assert [result.pop("own") for result in results] == [[1, 2], [10, 20], [100, 200]]
    assert results[0] == results[1] == results[2]
    assert results[0] == {
        "gather": [[1, 2], [10, 20], [100, 200]],
        "total": [111, 222],
        "average": [[37, 74], [[1, 1], [1, 1]]],
        "most": 7,
        "texts": ["grün", "grüngrün", "grüngrüngrün"],
        "empty": ["", "", ""],
    }


def test_alone_nothing_is_exchanged():
    value = torch.ones(3)
    with joined() as team:
        assert team is ALONE
    assert ALONE.leads
    assert ALONE.gather(value)[0] is value
    assert ALONE.total(value) is value
    assert ALONE.average([value])[0] is value
    assert ALONE.texts("a") == ["a"]
    assert ALONE.most(3) == 3


def fail(rank: int) -> tuple:
    """One process makes a mistake; the others wait for it."""
    try:
        with joined() as team:
            if team.rank == rank:
                raise UserError("wrong")
            team.wait()
    except UserError as error:
        return type(error), error.said, str(error)
    return ()


def test_one_process_says_what_was_wrong_and_the_others_end(tmp_path):
    results = in_team(3, tmp_path, fail, 1)
    assert results[1] == (UserError, False, "wrong")
    assert [result[:2] for result in (results[0], results[2])] == [(RunError, True)] * 2


def fail_alike() -> bool:
    try:
        with joined():
            raise UserError("wrong")
    except UserError as error:
        return error.said


def test_what_all_find_wrong_is_said_once(tmp_path):
    assert sorted(in_team(3, tmp_path, fail_alike)) == [False, True, True]


def twice() -> list[int]:
    totals = []
    for _ in range(2):
        with joined() as team:
            totals.append(int(team.total(torch.tensor(team.rank + 1))))
    return totals


def test_a_process_may_train_two_runs_one_after_the_other(tmp_path):
    assert in_team(2, tmp_path, twice) == [[3, 3], [3, 3]]


def test_equal_shares_alone():
    assert Team(size=4).share("episodes", 20) == 5
    with pytest.raises(UserError, match="3 processes cannot share 20 episodes.*--episodes 18"):
        Team(size=3).share("episodes", 20)
    with pytest.raises(UserError, match="share 1 batch size equally: give --batch-size 2"):
        Team(size=2).share("batch_size", 1)


def test_how_it_is_started():
    assert launcher(1) == "mrn"
    assert launcher(4) == "torchrun --nproc-per-node 4 -m mrn"
