"""Adam with gradient clipping compared with PyTorch's."""

import pytest
import torch

from mrn.algorithms.adam import Adam


@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0])
def test_gradients_are_clipped_together_after_they_are_combined(scale):
    torch.manual_seed(0)
    ours = [torch.randn(3, 2), torch.randn(4)]
    theirs = [torch.nn.Parameter(weight.clone()) for weight in ours]
    optimizer, expected = Adam(ours, 1e-2, max_grad_norm=1.0), torch.optim.Adam(theirs, lr=1e-2)
    optimizer.combine = lambda gradients: [scale * gradient for gradient in gradients]
    for _ in range(3):
        for weight, other in zip(ours, theirs, strict=True):
            weight.grad = torch.randn_like(weight) / 5
            other.grad = scale * weight.grad
        torch.nn.utils.clip_grad_norm_(theirs, 1.0)
        optimizer.step()
        expected.step()
    for weight, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(weight, other.data, rtol=1e-5, atol=1e-6)
