"""Heavy packages are imported only where they are used, and some may be missing."""

import subprocess
import sys


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_the_core_adds_little_to_torch():
    out = run_python(
        "import sys, time, numpy, torch\n"
        "before, start = set(sys.modules), time.process_time()\n"
        "import mrn\n"
        "print(time.process_time() - start)\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})\n"
        "print(*(name for name in sys.modules if name.startswith('mrn.')))"
    )
    seconds, packages, own = out.splitlines()
    assert set(packages.split()) - sys.stdlib_module_names <= {"mrn"}
    assert not {"fcntl", "resource"} & set(packages.split())
    packages = {name.split(".")[1] for name in own.split()}
    assert packages == {"algorithms", "batch", "critics", "utils", "version"}
    assert float(seconds) < 0.15


def test_training_modules_do_not_import_heavy_packages():
    code = (
        "import sys, mrn.cli, mrn.training.loop\n"
        "for name in mrn.critics.CRITICS: mrn.make_critic(name, 61, 20, 7)\n"
        "print(*sys.modules)"
    )
    heavy = {"envpool", "gymnasium", "mujoco", "tensorboard", "torch._dynamo", "scipy"}
    assert not heavy & set(run_python(code).split())


def test_critics_in_stable_baselines3_do_not_need_the_extra_train():
    missing = ["envpool", "gymnasium_robotics", "mujoco", "rich", "tensorboard", "tyro"]
    blocked = f"import sys; sys.modules |= dict.fromkeys({missing})\n"
    out = run_python(
        f"{blocked}from mrn.integrations.sb3 import MetricSACPolicy as p; print(p.__name__)"
    )
    assert out.split() == ["MetricSACPolicy"]


def test_windows_without_envpool_uses_critics_and_policies(tmp_path):
    """Without fcntl there are no locks to train with; everything else works."""
    out = run_python(
        "import signal, sys, warnings\n"
        "sys.modules |= dict.fromkeys(['fcntl', 'resource', 'envpool'])\n"
        "del signal.SIGHUP, signal.SIGUSR1\n"
        "import torch, mrn\n"
        "print(mrn.make_critic('mrn', 3, 2, 1)(*map(torch.ones, [(4, 3), (4, 2), (4, 1)])).shape)\n"
        "agent = mrn.load('zoo:FetchReach')\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    results = [agent.evaluate(2, threads=1) for _ in range(2)]\n"
        "print([result.engine for result in results], [str(each.message) for each in caught])\n"
        "try: agent.evaluate(2, engine='envpool')\n"
        "except mrn.UserError as error: print(error)\n"
        f"try: mrn.train('FetchReach', epochs=1, run_dir={str(tmp_path / 'run')!r})\n"
        "except mrn.UserError as error: print(error)\n"
    )
    shape, results, engine, training = out.splitlines()
    assert shape == "torch.Size([4])"
    assert results.startswith("['gymnasium', 'gymnasium'] ['EnvPool is not installed: tasks run on")
    assert results.count("EnvPool is not installed") == 1
    assert engine.startswith("engine 'envpool' is not installed")
    assert training.startswith("training needs the file locks of Linux or macOS")
    assert not list((tmp_path / "run").iterdir())
