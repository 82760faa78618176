"""The floor of an update consists of its matrix products."""

from benchmarks.matmul import record_operations, replay_products
from benchmarks.trainers import fill_replay, make_trainer, run_update


def test_products_of_the_monolithic_update_match_a_count_by_hand():
    """Each pass multiplies a batch with every weight: B x (sum of in x out)."""
    batch, width = 64, 32
    trainer = make_trainer(
        "FetchPush", "monolithic", batch_size=batch, hidden_dim=width, buffer_size=10_000
    )
    fill_replay(trainer, 10_000)
    recorded = record_operations(lambda: run_update(trainer))
    work = sum(a.shape[0] * a.shape[1] * b.shape[1] for a, b in recorded.factors)
    hidden = 2 * width * width
    critic, actor = 32 * width + hidden + width, 28 * width + hidden + 4 * width
    forward = 2 * actor + 3 * critic  # targets, both losses
    weights = critic + actor  # gradients of the weights
    # Gradients of layer inputs: not of the first layer, unless the action enters it.
    inputs = (hidden + width) + (hidden + 4 * width) + critic
    assert work == batch * (forward + weights + inputs)
    products = replay_products(recorded)
    assert record_operations(products).operations == len(recorded.factors) < recorded.operations
