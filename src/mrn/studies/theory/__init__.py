"""The paper's theory, checked on exact values of small problems (Sec. 3.1)."""
