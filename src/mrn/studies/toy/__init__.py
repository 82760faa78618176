"""The paper's toy example: shortest paths in a square (Sec. 3.2)."""
