"""Commands that read run folders, and what they compute."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, NamedTuple

from safetensors import safe_open

from mrn.analysis.run import NO_EPOCH
from tests.reliability.hostile.sandbox import INTACT, OUT, RUNS, SUITE, VICTIM, Sandbox
from tests.training.helpers import metrics

RUN = f"../{VICTIM}"


class Shown(NamedTuple):
    """What a command shows about several runs."""

    runs: dict[str, Any]
    """Results and settings of each run."""
    problems: str


def evaluation(root: Path, done: CompletedProcess) -> Any:
    """Return the results with the tensors of the policy, because success rates are often equal."""
    found = json.loads(done.stdout)
    return found | {"weights": tensors(Path(root, "work", found["weights"]))}


def training(root: Path, done: CompletedProcess) -> Any:
    """Return the metrics without timings, and the weights."""
    return metrics(root / VICTIM), [
        tensors(root / VICTIM / f"{name}.safetensors") for name in ("latest", "best")
    ]


def tensors(path: Path) -> dict[str, bytes]:
    with safe_open(path, "numpy") as file:
        return {key: file.get_tensor(key).tobytes() for key in file.keys()}  # noqa: SIM118


def report(root: Path, done: CompletedProcess) -> Shown:
    page = (root / OUT / "index.html").read_text()
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    runs = [run for each in data["experiments"] for run in each["runs"] if not run["problem"]]
    shown = {run["name"]: (run["csv"], run["settings"]) for run in runs}
    return Shown(shown, " ".join(data["problems"]))


def figures(root: Path, done: CompletedProcess) -> Shown:
    copies = sorted((root / OUT).rglob("seed-*.csv"))
    shown = {
        copy.stem: (copy.read_bytes(), json.loads(copy.with_suffix(".json").read_text())["config"])
        for copy in copies
    }
    return Shown(shown, done.stderr)


def inspection(root: Path, done: CompletedProcess) -> Any:
    return json.loads((root / OUT / "inspect.json").read_text())


def output(root: Path, done: CompletedProcess) -> str:
    """Return the output without paths."""
    return done.stdout.replace(str(root), "")


class Reader(NamedTuple):
    """A command."""

    words: tuple[str, ...]
    result: Callable[[Path, CompletedProcess], Any]
    writes: str = OUT
    """Folder that it may change."""


READERS = {
    "eval": Reader(("eval", RUN, "--episodes=1", "--json"), evaluation),
    "eval best": Reader(("eval", RUN, "--episodes=1", "--json", "--weights=best"), evaluation),
    "inspect": Reader(("inspect", RUN, "--episodes=2", f"--out=../{OUT}", "--force"), inspection),
    "export": Reader(("export", RUN, f"../{OUT}/policy.onnx"), output),
    "video": Reader(("video", RUN, f"../{OUT}/video.mp4", "--episodes=1", "--size=64"), output),
    "resume": Reader(("resume", RUN, "--epochs=3"), training, VICTIM),
    "sweep": Reader(
        ("sweep", f"../{SUITE}", f"--runs=../{RUNS}", "--only=*/seed-1", "--jobs=1", "--threads=1"),
        output,
        RUNS,
    ),
    "report": Reader(("report", f"../{RUNS}", f"--out=../{OUT}"), report),
    "figures": Reader(("figures", f"../{RUNS}", f"--out=../{OUT}"), figures),
}


def run(sandbox: Sandbox, name: str) -> tuple[CompletedProcess, Any]:
    """Run a command; return its output and, if it succeeded, its result."""
    words, result, writes = READERS[name]
    done = sandbox.run(*words, writes=(writes,))
    return done, None if done.returncode else result(sandbox.root, done)


def judge(name: str, done: CompletedProcess, found: Any, genuine: Any) -> str:
    """Return how a command treated a damaged file; fail if it accepted the damage."""
    if done.returncode:
        assert "error: " in done.stderr, done
        assert not isinstance(genuine, Shown), f"one damaged run stops {name}: {done.stderr}"
        return "rejected"
    if found == genuine or (isinstance(found, Shown) and found.runs == genuine.runs):
        return "harmless"
    if name == "resume" and "differs from the checkpoint" in done.stderr:
        assert found[1] == genuine[1], f"{name} accepts the damage"  # the weights
        return "marked"
    assert isinstance(found, Shown), f"{name} accepts the damage"
    left = {name: run for name, run in genuine.runs.items() if name.endswith(Path(INTACT).name[-1])}
    assert found.runs == left, f"{name} accepts the damage: it shows {list(found.runs)}"
    reasons = (VICTIM, NO_EPOCH)  # a run without metrics may have just started
    assert any(reason in found.problems for reason in reasons), f"{name} hides the damaged run"
    return "marked"
