"""How an agent is trained: the loop, evaluation, and the run folder."""
