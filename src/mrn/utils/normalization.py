"""On which scale networks see states and goals: the paper's numbers."""

CLIP_RAW = 200.0
"""Values are clipped to it on both sides before they are standardised."""
CLIP_STD = 5.0
"""And to so many standard deviations afterwards."""
MIN_STD = 0.01
"""The least standard deviation that values are divided by."""
