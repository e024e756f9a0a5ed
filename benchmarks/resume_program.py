"""Measure how long slurmctld waits for its ResumeProgram: 27,500 nodes with a job each, ten times.

The program is that of a head, except for the paths of the requests and of the agent. ParallelCluster's returns after it
has launched all machines; benchmarks/resume.py measures that for 1,000 nodes.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from table import Row, print_table

from corral.agent.autoscaler import resume_program as agent_program
from corral.agent.config.file_placements import PROGRAMS

NODES, ROUNDS = 27_500, 10
_INSTALLED = "/opt/corral/agent/corral/agent/autoscaler/resume_program.py"


def main() -> int:
    """Measure and print the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """The median, as a row of the table."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as temporary:
        directory = Path(temporary)
        program = resume_program(directory)
        environment = {**os.environ, "SLURM_RESUME_FILE": _resume_file(directory)}
        times = [_seconds(program, environment) for _ in range(rounds)]
        written = len(list((directory / "requests").iterdir()))
    if written != rounds:
        raise SystemExit(f"{written} of {rounds} requests were written")
    print(f"  {', '.join(f'{seconds:.3f}' for seconds in times)} s", file=sys.stderr)
    what = f"ResumeProgram returns, {NODES:,} nodes and jobs"
    return [Row(what=what, unit="s", ours=statistics.median(times), limit=0.3)]


def resume_program(directory: Path) -> Path:
    """The head's ResumeProgram, which writes its requests to `requests` in this directory."""
    (directory / "requests").mkdir()
    text = Path(agent_program.__file__).read_text(encoding="utf-8")
    text = text.replace(agent_program.SPOOL, str(directory / "requests"))
    text = text.replace(agent_program.WAKE_SOCKET, str(directory / "wake.socket"))
    (directory / "resume_program.py").write_text(text, encoding="utf-8")
    program = directory / "resume"
    program.write_text(
        f"#!/bin/sh\n{PROGRAMS['resume'].replace(_INSTALLED, str(directory / 'resume_program.py'))}\n", encoding="utf-8"
    )
    program.chmod(0o755)
    return program


def _seconds(program: Path, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([str(program), f"train-[1-{NODES}]"], env=environment, check=True)
    return time.perf_counter() - start


def _resume_file(directory: Path) -> str:
    jobs = [
        {
            "extra": None, "features": None, "job_id": number, "nodes_alloc": f"train-{number}",
            "nodes_resume": f"train-{number}", "oversubscribe": "OK", "partition": "train", "reservation": None,
        }
        for number in range(1, NODES + 1)
    ]  # fmt: skip
    file = directory / "resume.json"
    file.write_text(json.dumps({"all_nodes_resume": f"train-[1-{NODES}]", "jobs": jobs}), encoding="utf-8")
    return str(file)


if __name__ == "__main__":
    sys.exit(main())
