"""Measure a cluster in a box of its own: boots, jobs on cold nodes, a spot interruption.

It runs the commands that users type, on the shipped environment `dev`: four nodes, whose machines are namespaces of
this machine and boot from their user data, with real daemons. It needs root or user namespaces, and some minutes.

It measures the time from `srun` in the head's shell to the first line of the program; from `sbatch` to the first line
of the script; of the agent in a compute boot, from the first byte in the boot log (before it fetches the bundle) to
slurmd; from the spot notice, before the start of `corral box fault`, to the signal in the job script; and from the
notice until the script runs again, on an idle machine and on a new one.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from bench_inputs import ROOT
from table import Row, print_table

from corral.box import client

CORRAL = Path(sys.executable).with_name("corral")
MARKS = "/scratch/bench"
_TIMEOUT_S = 180
# It requeues itself on the signal of an interruption, as the shipped job scripts do after their checkpoint.
_JOB = f"""#!/bin/bash
mark() {{ echo "$1 $(date +%s.%N)" >>{MARKS}-$SLURM_JOB_ID; }}
trap 'mark signal; scontrol requeue $SLURM_JOB_ID' USR1
mark running
for _ in $(seq 3000); do sleep 0.1; done
"""


class ClusterRun:
    """A box with the environment `dev`."""

    def __init__(self, directory: Path) -> None:
        self._environment = {**os.environ, "CORRAL_BOX_DIR": str(directory), "NO_COLOR": "1"}
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)
        self.directory = directory

    def corral(self, *arguments: str, stdin: str | None = None) -> str:
        """The output of a corral command. Raises SystemExit if it fails."""
        done = subprocess.run(
            [str(CORRAL), *arguments], cwd=ROOT, env=self._environment, input=stdin, capture_output=True, text=True
        )
        if done.returncode:
            raise SystemExit(f"corral {' '.join(arguments)} exited with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout

    def on_head(self, script: str, stdin: str | None = None) -> str:
        """The output of a script in the head's shell."""
        return self.corral("connect", "dev", "--box", "--", "sh", "-c", script, stdin=stdin)

    def submit(self, options: str) -> tuple[int, float]:
        """The number of a new job, and its submission time."""
        script = f"cat >/scratch/job; date +%s.%N; sbatch --parsable --chdir=/ {options} /scratch/job"
        output = self.on_head(script, stdin=_JOB)
        at, job = output.split()
        return int(job), float(at)

    def marks(self, job: int) -> Mapping[str, list[float]]:
        """The times of the marks that a job script wrote, by name."""
        found: dict[str, list[float]] = {}
        for line in self.on_head(f"cat {MARKS}-{job} 2>/dev/null || true").splitlines():
            name, at = line.split()
            found.setdefault(name, []).append(float(at))
        return found

    def wait_for_mark(self, job: int, name: str, count: int = 1) -> float:
        """The time of the job's mark number `count` of that name. Raises SystemExit after a timeout."""
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            if len(times := self.marks(job).get(name, [])) >= count:
                return times[count - 1]
            time.sleep(1)
        raise SystemExit(f"job {job} was not {name} within {_TIMEOUT_S} s\n{self.on_head('squeue; sinfo -R')}")

    def node_of(self, job: int) -> str:
        """The first node of a job."""
        return self.on_head(f"scontrol show hostnames $(squeue --noheader --jobs={job} --format=%N)").split()[0]

    def wait_for_powered_down_node(self) -> None:
        """Wait until a node is powered down. Raises SystemExit after a timeout."""
        deadline = time.monotonic() + 2 * _TIMEOUT_S
        while not self.on_head("sinfo --noheader --states=powered_down --format=%N").strip():
            if time.monotonic() > deadline:
                raise SystemExit(self.on_head("sinfo; squeue"))
            time.sleep(1)

    def boots(self) -> list[float]:
        """Seconds of the agent in each compute boot: from the creation of its log to the last line."""
        found = []
        for log in (self.directory / "machines" / "disks").glob("*/var/log/corral-boot.log"):
            if "started munge and slurmd" in log.read_text(encoding="utf-8"):
                created = subprocess.run(["stat", "--format=%.W", str(log)], capture_output=True, text=True, check=True)
                found.append(log.stat().st_mtime - float(created.stdout.strip()))
        return found


def main() -> int:
    """Measure a cluster in a new box, and print the table."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as directory:
        run = ClusterRun(Path(directory) / "box")
        try:
            run.corral("up", "dev", "--box", "--yes")
            print_table(rows(run))
        finally:
            client.stop(run.directory)
    return 0


def rows(run: ClusterRun) -> list[Row]:
    """The measurements, starting from an environment whose only machine is the head."""
    times = run.on_head("date +%s.%N; srun --nodes=2 --chdir=/ date +%s.%N").split()
    srun_s = max(map(float, times[1:])) - float(times[0])
    job, submitted = run.submit("--nodes=2 --exclude=train-[1-2]")
    sbatch_s = run.wait_for_mark(job, "running") - submitted
    run.on_head(f"scancel {job}")
    boots = run.boots()
    warm_signal_s, warm_s = _interrupt(run, "--nodes=1")
    run.wait_for_powered_down_node()  # the interrupted one
    cold_signal_s, cold_s = _interrupt(run, "--nodes=3")
    return [
        Row(what="srun on 2 cold nodes -> running", unit="s", ours=srun_s, limit=15),
        Row(what="sbatch on 2 cold nodes -> running", unit="s", ours=sbatch_s, limit=45),
        Row(what=f"the agent in a compute boot, longest of {len(boots)}", unit="s", ours=max(boots), limit=5),
        Row(what="spot notice -> signal in the job, longest of 2", unit="s",
            ours=max(warm_signal_s, cold_signal_s), limit=5),
        Row(what="spot notice -> running again on an idle machine", unit="s", ours=warm_s, limit=15),
        Row(what="spot notice -> running again on a new machine", unit="s", ours=cold_s, limit=60),
    ]  # fmt: skip


def _interrupt(run: ClusterRun, options: str) -> tuple[float, float]:
    """Seconds from a spot notice to the signal, and until the job runs again."""
    job, _ = run.submit(options)
    run.wait_for_mark(job, "running")
    node = run.node_of(job)
    notice = time.time()
    run.corral("box", "fault", "spot-notice", node)
    signal_s = run.wait_for_mark(job, "signal") - notice
    again_s = run.wait_for_mark(job, "running", 2) - notice
    run.on_head(f"scancel {job}")
    return signal_s, again_s


if __name__ == "__main__":
    sys.exit(main())
