"""Tests of the paper's theory on small MDPs with exact optimal values (Sec. 3.1)."""
