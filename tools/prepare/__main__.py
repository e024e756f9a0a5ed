"""Install what the project needs: python3 tools/prepare STEP..., or lock. STEPS lists the steps.

Lists what it will install and where, installs it once, and continues after an interruption. The Makefile calls it; it
needs only Python 3.8 and its standard library.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping

from bootstrap import fetch_uv, find_python, find_uv
from debian_packages import ALL, BROWSER, CONTAINERS, SHELLCHECK, VIRTUAL_MACHINES, DebianPackages
from official_provider import OfficialProvider
from pulumi_cli import PulumiCli
from python_environment import parallelcluster_environment, project_environment
from slurm_roots import SlurmRoots
from steps import ROOT, CannotPrepareError, Step, run_steps

STEPS: Mapping[str, Callable[[], Step]] = {
    "venv": project_environment,
    "shellcheck": lambda: DebianPackages(SHELLCHECK),
    "debian": lambda: DebianPackages(ALL, "Slurm, munge, MariaDB, Prometheus, sshd, cloud-init, shellcheck, tmux"),
    "virtual-machines": lambda: DebianPackages(VIRTUAL_MACHINES),
    "containers": lambda: DebianPackages(CONTAINERS, "what compiles enroot and Pyxis, and what enroot calls"),
    "browser": lambda: DebianPackages(BROWSER),
    "pulumi": PulumiCli,
    "official-provider": OfficialProvider,
    "parallelcluster": parallelcluster_environment,
    "slurm-roots": SlurmRoots,
}


def main(names: list[str]) -> int:
    """Return 0 when everything named is installed, 1 if that fails, 2 for a wrong name, 130 if interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a `kill` cleans up as Ctrl-C does
    try:
        return lock(names[1:]) if names[:1] == ["lock"] else prepare(names)
    except CannotPrepareError as error:
        print(f"Setup failed: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted. Run the same command again to continue.", file=sys.stderr)
        return 130


def prepare(names: list[str]) -> int:
    """Return 0 when every named step is installed, 2 for a wrong name."""
    if not names or not set(names) <= set(STEPS):
        print(f"usage: python3 tools/prepare {{{','.join(STEPS)}}}...", file=sys.stderr)
        return 2
    run_steps([STEPS[name]() for name in names])
    return 0


def lock(options: list[str]) -> int:
    """Return 0 when the lock files are updated. Needs uv, and Python 3.11 for tools/lock.py."""
    uv = find_uv() or fetch_uv()
    if not uv:
        raise CannotPrepareError("`make lock` needs uv, and it could not be installed.")
    command = [find_python(), str(ROOT / "tools" / "lock.py"), "write", uv, *options]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
