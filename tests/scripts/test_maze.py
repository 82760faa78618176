"""Cells are counted along the maze."""

import numpy as np
import pytest

from mrn.utils.errors import UserError
from scripts.maze import count_cells, main


def test_cells_are_counted_along_the_maze_and_not_through_its_wall():
    start = np.array([[-1.2, 0.8], [0.9, 0.1], [-1.1, -0.9]])
    goal = np.array([[-0.8, -1.2], [1.2, 0.9], [-0.9, -1.0]])
    assert count_cells(start, goal).tolist() == [6, 1, 0]


def test_no_runs_raise_an_error():
    with pytest.raises(UserError, match="give the runs to evaluate"):
        main([])
