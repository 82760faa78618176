"""A policy as an ONNX file, which acts without torch and without this package."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mrn.agent import Agent
from mrn.utils.errors import UserError
from mrn.utils.extras import import_extra
from mrn.utils.files import prepare_output_file, write_atomically
from mrn.version import __version__

INPUTS = ("observation", "desired_goal")
"""As the environment's observation calls them; no policy looks at `achieved_goal`."""
OUTPUT = "action"
TOLERANCE = 1e-5
"""By how much the file's actions may differ from the policy's; where bounds are larger than 1, in
parts of the bound, because a float32 has no more digits."""


def export(agent: Agent, path: str | Path, force: bool = False) -> None:
    """Write a policy as ONNX: float32 vectors, any number at a time, to the environment's actions.

    The normalisation and the bounds of the actions are inside. What is written has been run in
    onnxruntime and compared with the policy.

    Args:
        agent: Whose policy.
        path: A file that ends with `.onnx`; its folder is made.
        force: Replace a file that is there.

    Raises:
        UserError: The file cannot be written or is there already, a package is missing, or the
            policy is one of the user's own that ONNX cannot express.
    """
    path = Path(path)
    prepare_output_file(path, (".onnx",), force)
    import_extra("onnx", "onnx")
    import_extra("onnxscript", "onnx")
    runtime = import_extra("onnxruntime", "onnx")
    inputs = _inputs(agent)
    try:
        content = _translate(agent, inputs)
        session = runtime.InferenceSession(content)
    except Exception as error:  # whatever the exporter raises on a user's own actor
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"the actor of agent {agent.config.algo!r} cannot be exported to ONNX: {first}"
        ) from error
    _compare(agent, session, inputs)
    write_atomically(path, content)


def _inputs(agent: Agent) -> tuple[Tensor, Tensor]:
    """States and goals as in training, and beyond where inputs are clipped."""
    generator = torch.Generator().manual_seed(0)
    parts = (agent.normalizer.state, agent.normalizer.goal)
    noise = (3 * torch.randn(64, len(part.shift), generator=generator) for part in parts)
    state, goal = (
        part.shift.cpu() + far / part.scale.cpu() for part, far in zip(parts, noise, strict=True)
    )
    return state, goal


def _translate(agent: Agent, inputs: tuple[Tensor, Tensor]) -> bytes:
    batch = torch.export.Dim("batch")
    with _quiet():
        program: Any = torch.onnx.export(
            agent.policy,
            tuple(value.to(agent.device) for value in inputs),
            input_names=INPUTS,
            output_names=[OUTPUT],
            dynamic_shapes=({0: batch}, {0: batch}),
            dynamo=True,
            verbose=False,
        )
    model = program.model_proto
    model.producer_name, model.producer_version = "mrn", __version__
    model.doc_string = f"A policy of {agent.spec.name}."
    # The exporter notes where in which file of this machine each step stands.
    for part in (model.graph, *model.functions, *model.graph.node, *model.graph.value_info):
        del part.metadata_props[:]
    return model.SerializeToString(deterministic=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks about itself, and about packages that we do not use, away."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _compare(agent: Agent, session: Any, inputs: tuple[Tensor, Tensor]) -> None:
    given = {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True)}
    (action,) = session.run([OUTPUT], given)
    expected, _ = agent.predict(given)
    difference = np.abs(action - expected)
    bounds = np.abs([agent.spec.action_low, agent.spec.action_high]).max(axis=0)
    close = difference <= TOLERANCE * np.maximum(bounds, 1)  # NaN is not
    if not (action.dtype == expected.dtype and close.all()):
        raise UserError(
            f"the exported actor of agent {agent.config.algo!r} is not the policy: its actions "
            f"differ by up to {difference.max():g}; nothing was written"
        )
