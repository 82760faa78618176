"""Methods can be told apart."""

from mrn.utils.plotting import COLORS, method_colors


def test_a_method_has_its_critics_colour_and_no_two_are_alike():
    critics = [f"ddpg-{critic}" for critic in COLORS]
    assert list(method_colors(critics).values()) == list(COLORS.values())
    grid = [f"ddpg-{critic}+width={width}" for critic in COLORS for width in (64, 128, 256, 512)]
    chosen = method_colors(grid)
    assert chosen["ddpg-mrn+width=64"] == COLORS["mrn"]
    assert len(set(chosen.values())) == len(grid) == 60
    assert all(len(colour) == 7 and int(colour[1:], 16) >= 0 for colour in chosen.values())
