"""Compare the times of corral's commands with AWS ParallelCluster's, as ratios of one run.

Each round runs each command once in its own process, so other load on the machine affects all of them equally. It
prints medians and their ratios. The first round only warms the disk cache and does not count. Results are not asserted,
because absolute times depend on the machine as much as on corral.
"""

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools" / "prepare"))

from steps import cache_dir  # noqa: E402 - `make bench` installs ParallelCluster there

CORRAL = ROOT / ".venv" / "bin" / "corral"
PARALLELCLUSTER = cache_dir() / "parallelcluster" / "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command to time."""

    name: str
    line: tuple[str, ...]
    needs: str = ""


HELP = Command(name="corral --help", line=(str(CORRAL), "--help"))
PLAN = Command(name="corral plan dev", line=(str(CORRAL), "plan", "dev"))
PCLUSTER_HELP = Command(name="pcluster --help", line=(str(PARALLELCLUSTER / "pcluster"), "--help"))
PCLUSTER_VERSION = Command(name="pcluster version", line=(str(PARALLELCLUSTER / "pcluster"), "version"))
PCLUSTER_SYNTH = Command(
    name="pcluster: a cluster's template",
    line=(str(PARALLELCLUSTER / "python"), "-W", "ignore", str(ROOT / "benchmarks" / "parallelcluster_synth.py")),
    needs="node",
)
COMMANDS = (HELP, PLAN, PCLUSTER_HELP, PCLUSTER_VERSION, PCLUSTER_SYNTH)
PAIRS = ((HELP, PCLUSTER_HELP), (HELP, PCLUSTER_VERSION), (PLAN, PCLUSTER_HELP), (PLAN, PCLUSTER_SYNTH))


def main() -> int:
    """Measure and print; return 1 if one of corral's commands fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each command (default: 5)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as home:
        skipped = {command: reason for command in COMMANDS if (reason := skip_reason(command, home))}
        measured = measure([command for command in COMMANDS if command not in skipped], rounds, home)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{rounds} rounds on {machine}; medians (fastest - slowest)\n")
    for command in COMMANDS:
        print(f"  {command.name:32}{skipped.get(command) or times(measured[command])}")
    print()
    for ours, theirs in PAIRS:
        if not {ours, theirs} & skipped.keys():
            ratio = statistics.median(measured[theirs]) / statistics.median(measured[ours])
            print(f"  {theirs.name} takes {ratio:.1f} times as long as {ours.name}")
    return 1 if {HELP, PLAN} & skipped.keys() else 0


def skip_reason(command: Command, home: str) -> str:
    """Run the command once to warm up; return why it cannot be measured, or an empty string."""
    if command.needs and not shutil.which(command.needs):
        return f"not measured: {command.needs} is not on PATH"
    done = run(command.line, home)
    last = (done.stderr.strip() or done.stdout.strip() or "?").splitlines()[-1]
    return f"not measured, it exited with {done.returncode}: {last}" if done.returncode else ""


def measure(commands: Sequence[Command], rounds: int, home: str) -> Mapping[Command, list[float]]:
    """Return the seconds of each command, round by round."""
    seconds: dict[Command, list[float]] = {command: [] for command in commands}
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for command in commands:
            started = time.perf_counter()
            run(command.line, home)
            seconds[command].append(time.perf_counter() - started)
    return seconds


def run(line: Sequence[str], home: str) -> subprocess.CompletedProcess[str]:
    """Run one command in the checkout, with an empty home directory and without a terminal."""
    quiet = {"HOME": home, "NO_COLOR": "1", "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1"}
    return subprocess.run(
        line,
        cwd=ROOT,
        env={**os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def times(seconds: Sequence[float]) -> str:
    """Return '0.15 s (0.14 - 0.17)'."""
    return f"{statistics.median(seconds):6.2f} s ({min(seconds):.2f} - {max(seconds):.2f})"


if __name__ == "__main__":
    sys.exit(main())
