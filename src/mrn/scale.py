"""On which scale networks see states and goals: the paper's numbers."""

RAW_LIMIT = 200.0
"""Values are clipped to it on both sides before they are standardised."""
LIMIT = 5.0
"""And to so many standard deviations afterwards."""
LEAST_STD = 0.01
"""The least standard deviation that values are divided by."""
