"""How long corral's commands take beside AWS ParallelCluster's, as ratios measured in one run.

Every round runs each command once, each in a process of its own, so that what else the machine does falls on all of
them alike; shown are medians and their ratios. The first round only warms the disk and is not counted. Nothing is
asserted here: absolute times say more about the machine than about corral.
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

from steps import cache_dir  # noqa: E402 - it is where the set-up put ParallelCluster

CORRAL = ROOT / ".venv" / "bin" / "corral"
RIVAL = cache_dir() / "parallelcluster" / "bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command to be timed."""

    name: str
    line: tuple[str, ...]
    needs: str = ""


HELP = Command(name="corral --help", line=(str(CORRAL), "--help"))
PLAN = Command(name="corral plan dev", line=(str(CORRAL), "plan", "dev"))
RIVAL_HELP = Command(name="pcluster --help", line=(str(RIVAL / "pcluster"), "--help"))
RIVAL_VERSION = Command(name="pcluster version", line=(str(RIVAL / "pcluster"), "version"))
RIVAL_SYNTH = Command(
    name="pcluster: a cluster's template",
    line=(str(RIVAL / "python"), "-W", "ignore", str(ROOT / "benchmarks" / "parallelcluster_synth.py")),
    needs="node",
)
COMMANDS = (HELP, PLAN, RIVAL_HELP, RIVAL_VERSION, RIVAL_SYNTH)
PAIRS = ((HELP, RIVAL_HELP), (HELP, RIVAL_VERSION), (PLAN, RIVAL_HELP), (PLAN, RIVAL_SYNTH))


def main() -> int:
    """Measure, print, and return 1 if one of corral's own commands does not run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often each command is timed (default: 5)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as home:
        refused = {command: said for command in COMMANDS if (said := refusal(command, home))}
        measured = measure([command for command in COMMANDS if command not in refused], rounds, home)
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    print(f"{rounds} rounds on {machine}; medians (fastest - slowest)\n")
    for command in COMMANDS:
        print(f"  {command.name:32}{refused.get(command) or times(measured[command])}")
    print()
    for ours, theirs in PAIRS:
        if not {ours, theirs} & refused.keys():
            ratio = statistics.median(measured[theirs]) / statistics.median(measured[ours])
            print(f"  {theirs.name} takes {ratio:.1f} times as long as {ours.name}")
    return 1 if {HELP, PLAN} & refused.keys() else 0


def refusal(command: Command, home: str) -> str:
    """Return why the command cannot be timed, or an empty text once it has run: this is the round that warms up."""
    if command.needs and not shutil.which(command.needs):
        return f"not measured: there is no {command.needs} on PATH"
    done = run(command.line, home)
    last = (done.stderr.strip() or done.stdout.strip() or "?").splitlines()[-1]
    return f"not measured, it ended with {done.returncode}: {last}" if done.returncode else ""


def measure(commands: Sequence[Command], rounds: int, home: str) -> Mapping[Command, list[float]]:
    """Return the seconds that each command took, round by round."""
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
