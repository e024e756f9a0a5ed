"""What a virtual machine's own commands print, and the agent reads there: outputs that `make vm-life` recorded.

The versions that printed them are in tests/agent/recorded_vm/versions.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corral.agent import imds_firewall, node_jobs
from corral.agent.health.system import read_mounts
from corral.agent.health.xids import read_xids
from corral.agent.host.instance_store import BlockDevice, instance_store_disks, top_devices
from corral.agent.host.lustre_client import default_interface
from corral.agent.slurm import read_node
from corral.agent.users.logins import login_events
from corral.plan.cluster import slurm_memory_mib

RECORDED = Path(__file__).with_name("recorded_vm")
C7I_XLARGE_MIB = 8192


def text(name: str) -> str:
    return (RECORDED / name).read_text()


def test_the_system_is_debian_13s() -> None:
    versions = dict(line.split(" ", 1) for line in text("versions").splitlines())
    assert (versions["slurmctld"].split("-")[0], versions["systemd"].split(".")[0]) == ("24.11.5", "257")


def test_the_interface_of_the_default_route_is_found() -> None:
    assert default_interface(text("node/routes.json")) == "enp0s5"


def test_root_is_on_a_partition_of_the_disk() -> None:
    root = BlockDevice(name="/dev/nvme0n1p1", disk=False, mounts=("/",))
    assert top_devices(json.loads(text("node/lsblk.json"))) == (root,)


def test_a_type_without_instance_stores_has_none(tmp_path: Path) -> None:
    links = tmp_path / "dev/disk/by-id"
    links.mkdir(parents=True)
    for name in text("node/disks.txt").split():
        (links / name).symlink_to("../../nvme0n1")
    assert instance_store_disks(tmp_path) == ()


def test_the_root_volume_has_ec2s_link() -> None:
    assert text("node/disks.txt").startswith("nvme-Amazon_Elastic_Block_Store_vol")


def test_home_is_mounted() -> None:
    assert "/home" in read_mounts(text("node/mounts.txt"))


def test_the_metadata_fence_is_a_rule_of_its_own_priority() -> None:
    rules = [line.split()[0] for line in text("node/rules.txt").splitlines() if "169.254.169.254" in line]
    assert rules == [f"{imds_firewall.PRIORITY}:"]


def test_a_kernel_log_without_gpus_has_no_xids() -> None:
    assert read_xids(text("node/kernel.log")) == ()


def test_slurmd_finds_more_memory_than_is_declared() -> None:
    hardware = dict(word.split("=") for word in text("node/slurmd-hardware.txt").split() if "=" in word)
    assert slurm_memory_mib(C7I_XLARGE_MIB) < int(hardware["RealMemory"]) < C7I_XLARGE_MIB


def test_slurmd_has_no_limit_for_its_start_and_wants_home() -> None:
    unit = dict(line.split("=", 1) for line in text("node/slurmd-unit.txt").splitlines())
    found = unit["Type"], unit["TimeoutStartUSec"], "home.mount" in unit["Wants"], "home.mount" in unit["After"]
    assert found == ("notify", "infinity", True, True)


def test_a_node_that_runs_has_a_machine_and_both_times() -> None:
    node = read_node(text("head/node.txt").strip())
    assert (node.wants_machine, "CLOUD" in node.states, bool(node.booted and node.started)) == (True, True, True)


def test_each_line_of_nodes_is_a_node() -> None:
    nodes = [read_node(line) for line in text("head/nodes.txt").splitlines() if line.strip()]
    assert [node.name for node in nodes][:2] == ["cpu-1", "cpu-2"]


def test_jobs_with_nodes_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_jobs, "squeue", lambda *_: text("head/jobs.txt"))
    assert [job.job_id.isdecimal() for job in node_jobs.running_jobs()] == [True]


def test_the_heads_name_is_at_its_own_address() -> None:
    assert text("head/hosts.txt").split() == ["10.64.0.22", "vm-head"]


def test_logins_and_uses_of_sudo_are_read_from_the_journal() -> None:
    who = {(event.event, event.facts["user"]) for event in login_events(text("head/logins.json"))}
    assert {("login", "ada"), ("login", "root"), ("sudo", "grace"), ("sudo", "admin")} <= who
