"""Tools are queried in parallel, each within its timeout, whether or not they are installed."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from corral.agent.health import probes
from corral.agent.health.evaluate import Expected, evaluate
from corral.agent.health.probes import QUICK, BoxProbe, SystemProbe, Tool, ToolOutput, read_all

EXPECTED = Expected(gpus=8, neuron=16, efa=1, mounts=("/home",))


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    return tmp_path / "bin"


def tool(directory: Path, name: str, script: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{script}\n")
    (directory / name).chmod(0o755)


def probe(tools: Path) -> SystemProbe:
    mounts = tools.parent / "proc/self/mounts"
    mounts.parent.mkdir(parents=True)
    mounts.write_text("fs-1 /home nfs4 rw 0 0\n")
    return SystemProbe(root=tools.parent, path=f"{tools}:/usr/bin:/bin")


def test_a_tool_is_queried_with_its_arguments(tools: Path) -> None:
    tool(tools, "dcgmi", 'echo "$@"')
    assert probe(tools).query(Tool.DIAGNOSTIC, 2) == ToolOutput(text="diag --run 2 --json\n")


def test_the_output_of_a_failing_tool_is_used(tools: Path) -> None:
    tool(tools, "nvidia-smi", "echo 'Unable to determine the device handle' >&2; exit 15")
    answer = probe(tools).query(Tool.GPUS, 1)
    assert answer == ToolOutput(text="Unable to determine the device handle\n")


def test_a_tool_that_is_not_installed_is_absent(tools: Path) -> None:
    assert probe(tools).query(Tool.GPUS, 1) == ToolOutput(absent=True)


def test_tools_that_hang_take_five_seconds_in_all(tools: Path) -> None:
    for name in ("nvidia-smi", "neuron-ls", "chronyc"):
        tool(tools, name, "trap '' TERM; sleep 60")
    began = time.monotonic()
    found = evaluate(EXPECTED, read_all(probe(tools), EXPECTED.tools & QUICK))
    assert time.monotonic() - began < 5
    assert [one.text for one in found if "nvidia-smi" in one.text] == [
        "nvidia-smi did not answer in 4 s: replace the machine"
    ] * 2


def test_efa_devices_are_read_from_sysfs_with_their_state(tools: Path) -> None:
    port = tools.parent / "sys/class/infiniband/rdmap79s0/ports/1"
    port.mkdir(parents=True)
    (port / "state").write_text("4: ACTIVE\n")
    assert probe(tools).query(Tool.EFA, 1) == ToolOutput(text="rdmap79s0 4: ACTIVE")


def test_disks_are_those_that_a_boot_mounts(tools: Path) -> None:
    links = tools.parent / "dev/disk/by-id"
    links.mkdir(parents=True)
    for name in ("Instance_Storage_AWS1", "Instance_Storage_AWS1-ns-1"):
        (links / f"nvme-Amazon_EC2_NVMe_{name}").symlink_to("../../nvme1n1")
    (links / "nvme-Amazon_Elastic_Block_Store_vol01").symlink_to("../../nvme0n1")
    assert probe(tools).query(Tool.DISKS, 1) == ToolOutput(text="/dev/nvme1n1")


def scope(root: Path) -> ToolOutput | None:
    return SystemProbe(root=root).query(Tool.SCOPE, 1)


def test_the_scope_of_jobs_is_found_whatever_slurmd_calls_it(tmp_path: Path) -> None:
    for unit in ("slurmd.service", "train-1_slurmstepd.scope"):
        (tmp_path / "sys/fs/cgroup/system.slice" / unit).mkdir(parents=True)
        (tmp_path / "sys/fs/cgroup/system.slice" / unit / "cgroup.events").touch()
    assert scope(tmp_path) == ToolOutput(text="train-1_slurmstepd.scope")


def test_a_slurmd_without_the_scope_of_jobs_makes_the_machine_sick(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup/system.slice/slurmd.service").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/system.slice/slurmd.service/cgroup.events").touch()
    found = evaluate(Expected(), {Tool.SCOPE: scope(tmp_path) or ToolOutput(hung=True)})
    assert [(one.kind, one.is_sick) for one in found] == [("scope-missing", True)]


def test_before_slurmd_runs_there_is_no_scope_to_miss(tmp_path: Path) -> None:
    assert scope(tmp_path) is None


def test_the_machines_own_mounts_are_read() -> None:
    answer = SystemProbe().query(Tool.MOUNTS, 1)
    assert answer is not None
    assert "/proc" in {line.split()[1] for line in answer.text.splitlines()}


def test_a_machine_of_the_box_is_not_queried_for_devices(tools: Path) -> None:
    queried = BoxProbe(tools.parent / "health", probe(tools))
    assert set(read_all(queried, EXPECTED.tools)) == {Tool.MOUNTS, Tool.CLOCK}


def test_a_machine_of_the_box_reads_outputs_from_files(tools: Path) -> None:
    (tools / "kernel.log").write_text("NVRM: ...\n")
    assert BoxProbe(tools, probe(tools)).query(Tool.KERNEL, 1) == ToolOutput(text="NVRM: ...\n")


def test_the_timeout_of_a_tool_keeps_the_quick_check_below_five_seconds() -> None:
    assert probes.QUICK_S == 4
