"""Whether MuJoCo can draw on this machine, and by what: a window system, or EGL without one."""

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mrn.utils.errors import UserError

VARIABLE = "MUJOCO_GL"
"""By which a user chooses what draws; MuJoCo and Gymnasium read it."""
BACKENDS = ("egl", "glfw", "osmesa")
"""What Gymnasium knows to draw with."""
PACKAGES = "libegl1 libopengl0 libgl1-mesa-dri"
"""Of Debian and Ubuntu: what it takes to draw by EGL without a GPU."""


def settle_opengl() -> None:
    """Find out what MuJoCo can draw with, and have it use that.

    A choice of the user's is kept. Without one, it is EGL where there is no display. To be called
    before anything is drawn.

    Raises:
        UserError: Nothing can; says why, and what to install.
    """
    chosen = os.environ.get(VARIABLE, "").lower().strip()
    failures = []
    for backend in [chosen] if chosen else _usual():
        why = _failure(backend)
        if why is None:
            os.environ[VARIABLE] = backend
            return
        failures.append(f"by {backend} {why}")
    if sys.platform == "linux":
        remedy = (
            f"Without a display it needs EGL: apt-get install {PACKAGES} (Debian, Ubuntu), and "
            f"{VARIABLE}=egl or unset"
        )
    else:
        remedy = f"It needs a display, and {VARIABLE} unset"
    raise UserError(f"MuJoCo cannot draw here: {'; '.join(failures)}. {remedy}")


def _usual() -> list[str]:
    if sys.platform != "linux":
        return ["glfw"]
    display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return ["glfw", "egl"] if display else ["egl"]


def _failure(backend: str) -> str | None:
    """Why nothing can be drawn that way; None where it can."""
    if backend not in BACKENDS:
        return f"nothing is drawn ({VARIABLE} is one of {', '.join(BACKENDS)})"
    with _quiet():
        try:
            mujoco = importlib.import_module("mujoco")
            context = importlib.import_module(f"mujoco.{backend}").GLContext(64, 64)
            context.make_current()
            # A context may be had where its OpenGL lacks what MuJoCo needs.
            empty = mujoco.MjModel.from_xml_string("<mujoco/>")
            mujoco.MjrContext(empty, mujoco.mjtFontScale.mjFONTSCALE_100).free()
            context.free()
        except Exception as error:  # each backend and each missing library has its own
            first = str(error).strip().partition("\n")[0]
            return f"it fails ({type(error).__name__}: {first})"
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep away what the libraries print beside the error that they raise.

    A context that could not be made fails once more, and prints a traceback, when it is deleted.
    """
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
