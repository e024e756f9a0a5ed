"""What `make vm-life` keeps of a run that was interrupted."""

from __future__ import annotations

from pathlib import Path

from tools.vm_life.boot_times import BootPart, BootTimes
from tools.vm_life.progress import MachineResult, Progress, StepResult

PART = BootPart(name="MariaDB", began_s=30.0, ended_s=90.0)
HEAD = MachineResult(
    boot=BootTimes(machine="head", parts=(PART,), analyzed="", blamed=("30s x",)), guest_mib=600, process_mib=2200
)
STEP = StepResult(title="the head boots", seconds=700.5, found="slurm 24.11.5", date="2026-11-25")


def test_a_run_that_continues_has_the_steps_and_machines_of_the_first(tmp_path: Path) -> None:
    Progress(file=tmp_path / "results.json").add(STEP, [HEAD])
    continued = Progress(file=tmp_path / "results.json")
    assert (continued.found.steps, continued.found.machines) == ((STEP,), (HEAD,))


def test_a_step_that_was_taken_is_not_taken_again(tmp_path: Path) -> None:
    Progress(file=tmp_path / "results.json").add(STEP, [HEAD])
    continued = Progress(file=tmp_path / "results.json")
    assert [continued.has(title) for title in ("the head boots", "srun")] == [True, False]
