"""Selection of an OpenGL backend for MuJoCo: a window system, or EGL on headless machines."""

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from mrn.utils.errors import UserError

VARIABLE = "MUJOCO_GL"
"""Environment variable that selects the backend; MuJoCo and Gymnasium read it."""
BACKENDS = ("egl", "glfw", "osmesa")
"""Backends that Gymnasium supports."""
PACKAGES = "libegl1 libopengl0 libgl1-mesa-dri"
"""Debian and Ubuntu packages that EGL needs without a GPU."""


def configure_opengl() -> None:
    """Select an OpenGL backend that works, and set `MUJOCO_GL` to it.

    If the variable is already set, only that backend is tried. Otherwise the default is EGL on a
    machine without a display. Call this before rendering anything.

    Raises:
        UserError: No backend works. The message names the packages to install.
    """
    chosen = os.environ.get(VARIABLE, "").lower().strip()
    failures = []
    for backend in [chosen] if chosen else _default_backends():
        problem = _find_problem(backend)
        if problem is None:
            os.environ[VARIABLE] = backend
            return
        failures.append(f"{backend} {problem}")
    if sys.platform == "linux":
        remedy = (
            f"Without a display it needs EGL: apt-get install {PACKAGES} (Debian, Ubuntu), and "
            f"{VARIABLE}=egl or unset"
        )
    else:
        remedy = f"It needs a display, and {VARIABLE} unset"
    raise UserError(f"MuJoCo cannot render on this machine: {'; '.join(failures)}. {remedy}")


def check_display(mujoco: bool) -> None:
    """Check that a window can be opened.

    Args:
        mujoco: Whether MuJoCo opens it. Without a working display, it would abort the process.

    Raises:
        UserError: There is no display, or it does not work.
    """
    problem = _find_problem("glfw") if _has_display() and mujoco else None
    if problem is not None or not _has_display():
        reason = f"GLFW {problem}" if problem else "neither DISPLAY nor WAYLAND_DISPLAY is set"
        raise UserError(
            f"cannot open a window: {reason}. Run it on a machine with a display, or record a "
            "video instead (`mrn video`), which needs none"
        )


def _has_display() -> bool:
    variables = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.platform != "linux" or any(os.environ.get(name) for name in variables)


def _default_backends() -> list[str]:
    if sys.platform != "linux":
        return ["glfw"]
    return ["glfw", "egl"] if _has_display() else ["egl"]


def _find_problem(backend: str) -> str | None:
    """Return why a backend does not work, or None if it does."""
    if backend not in BACKENDS:
        return f"is not supported ({VARIABLE} must be one of {', '.join(BACKENDS)})"
    with _suppress_output():
        try:
            mujoco = importlib.import_module("mujoco")
            context = importlib.import_module(f"mujoco.{backend}").GLContext(64, 64)
            context.make_current()
            # Creating a context may succeed even if its OpenGL lacks what MuJoCo needs.
            empty = mujoco.MjModel.from_xml_string("<mujoco/>")
            mujoco.MjrContext(empty, mujoco.mjtFontScale.mjFONTSCALE_100).free()
            context.free()
        except Exception as error:  # the type depends on the backend and the missing library
            first_line = str(error).strip().partition("\n")[0]
            return f"failed ({type(error).__name__}: {first_line})"
    return None


@contextmanager
def _suppress_output() -> Iterator[None]:
    """Suppress warnings and unraisable exceptions of the graphics libraries.

    A context that could not be created fails again when it is deleted, and prints a traceback.
    """
    hook, sys.unraisablehook = sys.unraisablehook, lambda _: None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.unraisablehook = hook
