"""Export of policies to ONNX, to run them without PyTorch and without this package."""

import logging
import os
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
"""Keys of a Gymnasium goal observation; policies do not use `achieved_goal`."""
OUTPUT = "action"
TOLERANCE = 1e-5
"""Largest difference between exported and original actions.

Absolute for action bounds up to 1, relative to the bound beyond, because of float32 precision."""


def export(agent: Agent, path: str | Path, force: bool = False) -> None:
    """Export a policy to ONNX.

    The model maps float32 batches of observations and goals to actions in the environment's units.
    Normalization and action bounds are part of it. Before writing the file, its actions in
    onnxruntime are compared with those of the policy.

    Args:
        agent: Agent whose policy is exported.
        path: Output file, ending with `.onnx`; its folder is created.
        force: Overwrite an existing file.

    Raises:
        UserError: The file exists or cannot be written, a package is missing, or ONNX cannot
            express a custom policy.
    """
    path = Path(path)
    prepare_output_file(path, (".onnx",), force)
    import_extra("onnx", "onnx")
    import_extra("onnxscript", "onnx")
    # Importing it would create a telemetry store in the home folder.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = import_extra("onnxruntime", "onnx")
    inputs = _sample_inputs(agent)
    try:
        content = _export(agent, inputs)
        session = runtime.InferenceSession(content)
    except Exception as error:  # the exporter can raise anything on a custom actor
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"the actor of algorithm {agent.config.algo!r} cannot be exported to ONNX: {first}"
        ) from error
    _check_actions(agent, session, inputs)
    write_atomically(path, content)


def _sample_inputs(agent: Agent) -> tuple[Tensor, Tensor]:
    """Return states and goals, some of them beyond the clipping range of the normalizer."""
    generator = torch.Generator().manual_seed(0)
    parts = (agent.normalizer.state, agent.normalizer.goal)
    noise = (3 * torch.randn(64, len(part.shift), generator=generator) for part in parts)
    state, goal = (
        part.shift.cpu() + sample / part.scale.cpu()
        for part, sample in zip(parts, noise, strict=True)
    )
    return state, goal


def _export(agent: Agent, inputs: tuple[Tensor, Tensor]) -> bytes:
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
    model.doc_string = f"Policy for {agent.spec.name}."
    # The exporter records source locations, which contain paths of this machine.
    for part in (model.graph, *model.functions, *model.graph.node, *model.graph.value_info):
        del part.metadata_props[:]
    return model.SerializeToString(deterministic=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's log messages and warnings."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _check_actions(agent: Agent, session: Any, inputs: tuple[Tensor, Tensor]) -> None:
    observation = {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True)}
    (action,) = session.run([OUTPUT], observation)
    expected, _ = agent.predict(observation)
    difference = np.abs(action - expected)
    bounds = np.abs([agent.spec.action_low, agent.spec.action_high]).max(axis=0)
    close = difference <= TOLERANCE * np.maximum(bounds, 1)  # False for NaN
    if not (action.dtype == expected.dtype and close.all()):
        raise UserError(
            f"the exported actor of algorithm {agent.config.algo!r} does not match the policy: "
            f"actions differ by up to {difference.max():g}. No file was written"
        )
