"""Environments passed as Python objects: instances, and functions or classes that create one.

An object gets a name in Gymnasium's registry of this process, so everything else handles it like a
registered environment. Another process does not know the name and needs the object again.
"""

import re
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any
from weakref import WeakSet

import gymnasium as gym

from mrn.envs.tasks import OBJECT_PREFIX
from mrn.utils.errors import UserError

EnvMaker = Callable[..., gym.Env[Any, Any]]

_sources: dict[str, Any] = {}
"""The user's object by name."""


def task_of_object(env: Any) -> str:
    """Return a task name for an environment instance, or for a function that creates one.

    An instance is only a template: `gymnasium.make` creates new environments from its spec. If
    the spec is registered, the name is its id.

    Raises:
        UserError: The object is neither, or the instance cannot be created again.
    """
    if isinstance(env, gym.Env):
        spec = _spec_of(env)
        return spec.id if gym.registry.get(spec.id) == spec else register_object(env)
    return register_object(env)


def register_object(env: Any, name: str = "") -> str:
    """Register an environment object in this process; return its name.

    Args:
        env: An instance, or a function that creates one.
        name: The name; by default derived from the object.

    Raises:
        UserError: The object is neither, or the instance cannot be created again.
    """
    maker, default = _maker_of(env)
    name = name or OBJECT_PREFIX + default
    if _sources.get(name, env) is not env:
        warnings.warn(
            f"{name} now refers to the environment passed last: agents trained on an earlier one "
            "of this name are evaluated in the new one; give the functions different names",
            stacklevel=3,
        )
    _sources[name] = env
    gym.registry.pop(name, None)
    gym.register(name, maker)
    return name


def unknown_object(name: str) -> UserError:
    """Return the error for the name of an object that this process does not know."""
    return UserError(
        f"{name} was passed to mrn.train as a Python object and cannot be created from its name; "
        "pass it again: mrn.load(RUN, env=ENV), or mrn.train(ENV, run_dir=RUN, resume=True). The "
        "command line needs a registered environment, package.module:Id-v0"
    )


def _maker_of(env: Any) -> tuple[EnvMaker, str]:
    """Return a function that creates an environment, and a name for it."""
    if isinstance(env, gym.Env):
        spec = _spec_of(env)
        return lambda **kwargs: gym.make(spec, **kwargs), spec.name
    if not callable(env):
        raise UserError(
            "task must be a name, a Gymnasium environment, or a function that creates one, got "
            f"{type(env).__name__}"
        )
    function = env
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", type(function).__name__)
    return _require_new(env), re.sub(r"\W", "", name)


def _spec_of(env: gym.Env[Any, Any]) -> Any:
    """Return the spec of an instance, without its render mode."""
    spec = deepcopy(env.spec)
    remedy = "pass a function that creates the environment, for example lambda: MyEnv()"
    if spec is None:
        raise UserError(
            f"{type(env.unwrapped).__name__} was not created by gymnasium.make, so it cannot be "
            f"created again for parallel environments; {remedy}"
        )
    if lost := [wrapper.name for wrapper in spec.additional_wrappers if wrapper.kwargs is None]:
        raise UserError(
            f"wrapper {lost[0]} of {spec.id} cannot be created again for parallel environments; "
            f"{remedy}, or derive the wrapper from gymnasium.utils.RecordConstructorArgs"
        )
    spec.kwargs.pop("render_mode", None)  # rendering every step would change the simulation
    return spec


def _require_new(function: Callable[..., Any]) -> EnvMaker:
    """Check that each call of a function returns a new environment."""
    created: WeakSet[gym.Env[Any, Any]] = WeakSet()

    def make(**kwargs: Any) -> gym.Env[Any, Any]:
        env = function(**kwargs)
        if not isinstance(env, gym.Env):
            raise UserError(
                "the function passed as an environment must return a gymnasium.Env, got "
                f"{type(env).__name__}"
            )
        if env.unwrapped in created:
            raise UserError(
                "the function passed as an environment must create a new one at each call, but "
                "returned the same one twice; parallel environments would share their state"
            )
        created.add(env.unwrapped)
        return env

    return make
