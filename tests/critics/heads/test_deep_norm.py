"""Deep Norm."""

import pytest
import torch

from mrn.critics.heads.deep_norm import DeepNorm, DeepNormReleased
from tests.critics.heads.helpers import make_identity
from tests.critics.test_heads import points, random_head


@pytest.mark.parametrize(
    ("head_class", "w", "there", "back"),
    [
        # effective w = 9: h1 = relu(2 * 0.5) = 1; h = relu(9 * 1 - 0.5) = 8.5.
        # Backwards: h1 = relu(-1) = 0; h = relu(0 + 0.5) = 0.5.
        (DeepNorm, 3.0, 8.5, 0.5),
        # effective w = min(9, 3): h = relu(3 * 1 - 0.5). Backwards: relu(-3 + 0.5) = 0.
        (DeepNormReleased, 3.0, 2.5, 0.0),
        # effective w = min(1/4, 1/2): h = relu(1/4 - 0.5) = 0. Backwards: relu(-1/4 + 0.5).
        (DeepNormReleased, -0.5, 0.0, 0.25),
    ],
)
def test_deep_norm_by_hand(head_class, w, there, back):
    head = head_class(inputs=1, hidden=1, width=1)
    make_identity(head.concave)
    with torch.no_grad():
        head.u0.weight.fill_(2.0)
        head.u.weight.fill_(-1.0)
        head.w.fill_(w)
    d = torch.zeros(1, 16)
    d[0, 0] = 0.5
    zero = torch.zeros(1, 16)
    assert head.distance(d, zero).item() == pytest.approx(there)
    assert head.distance(zero, d).item() == pytest.approx(back)


def test_released_deep_norm_collapses_to_one_layer():
    """Without the ReLU, two linear layers are one; with it, they are not."""
    d, zero = 3 * points(1, 1.0, 64).repeat(1, 4)[:, :16], torch.zeros(64, 16).double()
    for head_class, collapses in ((DeepNormReleased, True), (DeepNorm, False)):
        head = random_head(head_class, 2, 1.0)
        one = head.effective_w() @ head.u0.weight + head.u.weight  # (width, embedding)
        expected = head.concave((d @ one.T).relu()).mean(dim=-1)
        assert torch.allclose(head.distance(d, zero), expected) is collapses
