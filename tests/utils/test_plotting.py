"""Colors of methods."""

from mrn.utils.plotting import COLORS, method_colors


def test_methods_have_distinct_colors_of_their_critics():
    critics = [f"ddpg-{critic}" for critic in COLORS]
    assert list(method_colors(critics).values()) == list(COLORS.values())
    grid = [f"ddpg-{critic}+hidden_dim={dim}" for critic in COLORS for dim in (64, 128, 256, 512)]
    chosen = method_colors(grid)
    assert chosen["ddpg-mrn+hidden_dim=64"] == COLORS["mrn"]
    assert len(set(chosen.values())) == len(grid) == 80
    assert all(len(color) == 7 and int(color[1:], 16) >= 0 for color in chosen.values())
