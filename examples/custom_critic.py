"""Train with a custom metric critic.

Run `python examples/custom_critic.py`. It takes a few seconds.
"""

# --8<-- [start:critic]
from mrn.critics import Architecture
from mrn.critics.heads.base import ProjectedHead
from mrn.critics.metric import MetricCritic


class Climb(ProjectedHead):
    """d(x, y) = max_i |u_i - v_i| + relu(v_0 - u_0), u = p(x), v = p(y). A quasipseudometric."""

    is_quasimetric = True

    def __init__(self, inputs, hidden):
        super().__init__(inputs, hidden, outputs=16)  # p is an MLP with one hidden layer

    def distance(self, from_, to):
        return (from_ - to).abs().amax(dim=-1) + (to[:, 0] - from_[:, 0]).relu()


climb = Architecture(
    build=lambda dims, hidden_dim, size: MetricCritic(dims, hidden_dim, Climb(hidden_dim, size)),
    size=352,  # adjusted automatically to match the monolithic critic's parameter count
    formula="-(max_i |u_i - v_i| + relu(v_0 - u_0))",
)
# --8<-- [end:critic]


# --8<-- [start:train]
if __name__ == "__main__":
    import mrn

    critic = mrn.make_critic("custom_critic:climb", state_dim=25, action_dim=4, goal_dim=3)
    print(critic)

    agent = mrn.train(
        "FetchReach",
        critic="custom_critic:climb",
        epochs=1,  # too short to learn: use the defaults for a full run
        cycles=2,
        gradient_steps=5,
        eval_episodes=20,
        run_dir="runs/climb",
        resume=True,  # skip training if the run is already complete
    )
    print(agent.evaluate(episodes=20))
# --8<-- [end:train]
