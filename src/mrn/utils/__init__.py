"""General-purpose helpers, independent of reinforcement learning."""
