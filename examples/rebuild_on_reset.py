"""Rebuild an environment at every reset, for simulators that carry state across episodes.

panda-gym's PandaPush is one of them. Train with `mrn train rebuild_on_reset:RebuiltPush-v0`.
"""

# --8<-- [start:wrapper]
import gymnasium as gym


class RebuildOnReset(gym.Wrapper):
    """Wrapper that recreates the environment at every reset."""

    def __init__(self, env_id):
        super().__init__(gym.make(env_id))
        self.env_id = env_id

    def reset(self, *, seed=None, options=None):
        self.env.close()
        self.env = gym.make(self.env_id)
        return self.env.reset(seed=seed, options=options)


if "RebuiltPush-v0" not in gym.registry:
    gym.register(
        "RebuiltPush-v0",
        lambda: RebuildOnReset("panda_gym:PandaPush-v3"),
        max_episode_steps=50,
    )
# --8<-- [end:wrapper]


if __name__ == "__main__":
    env = gym.make("RebuiltPush-v0")
    first, second = (env.reset(seed=1)[0]["observation"] for _ in range(2))
    print("same seed, same first observation:", (first == second).all())
