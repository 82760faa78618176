"""Constants of input normalization, as in the paper."""

CLIP_RAW = 200.0
"""Largest absolute value of an input before standardization; larger ones are clipped."""
CLIP_STD = 5.0
"""Largest absolute value after standardization, in standard deviations."""
MIN_STD = 0.01
"""Lower bound of the standard deviation that inputs are divided by."""
