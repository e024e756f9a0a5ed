"""How long a life takes, in a box of its own: boots, jobs on nodes without machines, a spot machine that is taken back.

The commands are those that people type, on the shipped environment `dev`: four nodes, whose machines are namespaces of
this machine and boot from their user data, with real daemons. It needs root or user namespaces, and some minutes.

What is measured: from `srun` in the head's shell to the first line of the program; from `sbatch` to the first line of
the script; the agent of a compute machine, from its first byte in the boot's log (before it fetches the bundle) to
slurmd; from the notice, before `corral box fault` is typed, to the signal in the job's script; and from the notice to
the script running again, where another machine waits idle, and where the job needs a new one.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from ground import ROOT
from table import Row, print_table

from corral.box import control

CORRAL = Path(sys.executable).with_name("corral")
SEEN = "/scratch/bench"
_PATIENCE_S = 180
# It asks for its own requeue when it is told that its machine goes, as the shipped job scripts do when they have saved.
_JOB = f"""#!/bin/bash
mark() {{ echo "$1 $(date +%s.%N)" >>{SEEN}-$SLURM_JOB_ID; }}
trap 'mark signal; scontrol requeue $SLURM_JOB_ID' USR1
mark running
for _ in $(seq 3000); do sleep 0.1; done
"""


class Life:
    """One box, in which `dev` is up."""

    def __init__(self, directory: Path) -> None:
        self._environment = {**os.environ, "CORRAL_BOX_DIR": str(directory), "NO_COLOR": "1"}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.directory = directory

    def corral(self, *arguments: str, given: str | None = None) -> str:
        """What a corral command printed. Ends the benchmark where it fails."""
        done = subprocess.run(
            [str(CORRAL), *arguments], cwd=ROOT, env=self._environment, input=given, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"corral {' '.join(arguments)} ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def on_head(self, script: str, given: str | None = None) -> str:
        """What a script in the head's shell printed."""
        return self.corral("connect", "dev", "--box", "--", "sh", "-c", script, given=given)

    def submit(self, options: str) -> tuple[int, float]:
        """The number of a new job, and when it was submitted."""
        said = self.on_head(f"cat >/scratch/job; date +%s.%N; sbatch --parsable --chdir=/ {options} /scratch/job", _JOB)
        at, job = said.split()
        return int(job), float(at)

    def marks(self, job: int) -> Mapping[str, list[float]]:
        """When the script of a job was where, by name."""
        found: dict[str, list[float]] = {}
        for line in self.on_head(f"cat {SEEN}-{job} 2>/dev/null || true").splitlines():
            name, at = line.split()
            found.setdefault(name, []).append(float(at))
        return found

    def wait_for(self, job: int, name: str, count: int = 1) -> float:
        """When the script of a job was there for the so-manieth time. Ends the benchmark where it never is."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            if len(seen := self.marks(job).get(name, [])) >= count:
                return seen[count - 1]
            time.sleep(1)
        raise SystemExit(f"job {job} was not {name} within {_PATIENCE_S} s\n{self.on_head('squeue; sinfo -R')}")

    def node_of(self, job: int) -> str:
        """The first node of a job."""
        return self.on_head(f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)").split()[0]

    def wait_until_one_is_off(self) -> None:
        """Until a node has no machine and could have one. Ends the benchmark where that does not come."""
        until = time.monotonic() + 2 * _PATIENCE_S
        while not self.on_head("sinfo --noheader --states=powered_down --format=%N").strip():
            if time.monotonic() > until:
                raise SystemExit(self.on_head("sinfo; squeue"))
            time.sleep(1)

    def boots(self) -> list[float]:
        """Seconds of the agent in each compute machine's boot, by its log: from its making to its last line."""
        found = []
        for log in (self.directory / "machines" / "disks").glob("*/var/log/corral-boot.log"):
            if "slurmd are started" in log.read_text(encoding="utf-8"):
                begun = subprocess.run(["stat", "--format=%.W", str(log)], capture_output=True, text=True, check=True)
                found.append(log.stat().st_mtime - float(begun.stdout.strip()))
        return found


def main() -> int:
    """Measures a life in a new box, and prints the table."""
    with tempfile.TemporaryDirectory(prefix="corral-life-") as made:
        life = Life(Path(made) / "box")
        try:
            life.corral("up", "dev", "--box", "--yes")
            print_table(rows(life))
        finally:
            control.stop(life.directory)
    return 0


def rows(life: Life) -> list[Row]:
    """What was measured in the life of an environment without a machine but its head."""
    said = life.on_head("date +%s.%N; srun --nodes=2 --chdir=/ date +%s.%N").split()
    srun_s = max(map(float, said[1:])) - float(said[0])
    job, submitted = life.submit("--nodes=2 --exclude=train-[1-2]")
    sbatch_s = life.wait_for(job, "running") - submitted
    life.on_head(f"scancel {job}")
    boots = life.boots()
    warm_signal_s, warm_s = _taken_back(life, "--nodes=1")
    life.wait_until_one_is_off()  # the one that was taken back
    cold_signal_s, cold_s = _taken_back(life, "--nodes=3")
    return [
        Row(what="srun on 2 cold nodes -> running", unit="s", ours=srun_s, most=15),
        Row(what="sbatch on 2 cold nodes -> running", unit="s", ours=sbatch_s, most=45),
        Row(what=f"the agent in a compute boot, longest of {len(boots)}", unit="s", ours=max(boots), most=5),
        Row(what="spot notice -> signal in the job, longest of 2", unit="s",
            ours=max(warm_signal_s, cold_signal_s), most=5),
        Row(what="spot notice -> running again, warm machine", unit="s", ours=warm_s, most=15),
        Row(what="spot notice -> running again, cold machine", unit="s", ours=cold_s, most=60),
    ]  # fmt: skip


def _taken_back(life: Life, options: str) -> tuple[float, float]:
    """Seconds from a notice to the signal, and to the job running again."""
    job, _ = life.submit(options)
    life.wait_for(job, "running")
    node = life.node_of(job)
    noticed = time.time()
    life.corral("box", "fault", "spot-notice", node)
    signal_s = life.wait_for(job, "signal") - noticed
    again_s = life.wait_for(job, "running", 2) - noticed
    life.on_head(f"scancel {job}")
    return signal_s, again_s


if __name__ == "__main__":
    sys.exit(main())
