"""Version of MuJoCo that Gymnasium-Robotics simulates with. EnvPool includes its own."""

import warnings
from functools import cache
from importlib import metadata

LAST_MUJOCO = (3, 6)
"""Last version with the physics of EnvPool and of the published policies."""


@cache  # one warning per process
def warn_if_fetch_moved() -> None:
    """Warn if the installed MuJoCo moves the Fetch robot differently."""
    version = metadata.version("mujoco")
    if tuple(map(int, version.split(".")[:2])) > LAST_MUJOCO:
        warnings.warn(
            f"mujoco {version} moves the Fetch robot differently: from 3.7 on, its gripper is up "
            "to 1 cm away from where EnvPool and earlier versions have it. Results are not "
            "comparable: pip install 'mujoco<3.7', or use engine 'envpool'",
            stacklevel=2,
        )
