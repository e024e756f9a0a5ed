"""How long slurmctld waits for its ResumeProgram: 27,500 nodes, each wanted by a job of its own, ten times.

It is the program as it is on a head, but for the places of the notes and of the agent. ParallelCluster's returns when
all machines are launched; how long that takes for 1,000 nodes is benchmarks/resume.py's to say.
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

from corral.agent import note
from corral.agent.places import PROGRAMS

NODES, ROUNDS = 27_500, 10
_PLACED = "/opt/corral/agent/corral/agent/note.py"


def main() -> int:
    """Measures and prints the table."""
    print_table(rows())
    return 0


def rows(rounds: int = ROUNDS) -> list[Row]:
    """What was measured, as a row of the table: the median."""
    with tempfile.TemporaryDirectory(prefix="corral-bench-") as made:
        place = Path(made)
        program = resume_program(place)
        environment = {**os.environ, "SLURM_RESUME_FILE": _resume_file(place)}
        taken = [_seconds(program, environment) for _ in range(rounds)]
        left = len(list((place / "notes").iterdir()))
    if left != rounds:
        raise SystemExit(f"{left} of {rounds} notes were left")
    print(f"  {', '.join(f'{seconds:.3f}' for seconds in taken)} s", file=sys.stderr)
    what = f"ResumeProgram returns, {NODES:,} nodes and jobs"
    return [Row(what=what, unit="s", ours=statistics.median(taken), most=0.3)]


def resume_program(place: Path) -> Path:
    """The head's ResumeProgram, which leaves its notes in `notes` of this directory."""
    (place / "notes").mkdir()
    text = Path(note.__file__).read_text(encoding="utf-8").replace(note.SPOOL, str(place / "notes"))
    (place / "note.py").write_text(text.replace(note.BELL, str(place / "bell")), encoding="utf-8")
    program = place / "resume"
    program.write_text(f"#!/bin/sh\n{PROGRAMS['resume'].replace(_PLACED, str(place / 'note.py'))}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


def _seconds(program: Path, environment: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run([str(program), f"train-[1-{NODES}]"], env=environment, check=True)
    return time.perf_counter() - begun


def _resume_file(place: Path) -> str:
    jobs = [
        {
            "extra": None, "features": None, "job_id": number, "nodes_alloc": f"train-{number}",
            "nodes_resume": f"train-{number}", "oversubscribe": "OK", "partition": "train", "reservation": None,
        }
        for number in range(1, NODES + 1)
    ]  # fmt: skip
    file = place / "resume.json"
    file.write_text(json.dumps({"all_nodes_resume": f"train-[1-{NODES}]", "jobs": jobs}), encoding="utf-8")
    return str(file)


if __name__ == "__main__":
    sys.exit(main())
