"""Heavy packages are imported only where they are used."""

import subprocess
import sys


def test_importing_the_package_does_not_import_heavy_packages():
    code = (
        "import sys, mrn, mrn.cli, mrn.training.loop\n"
        "for name in mrn.critics.CRITICS: mrn.make_critic(name, 61, 20, 7)\n"
        "print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"envpool", "gymnasium", "mujoco", "tensorboard", "torch._dynamo", "scipy"}
    assert not heavy & set(run.stdout.split())
