"""What a head and a compute machine run and write on EC2, from a bare image to jobs, line by line."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from agent.stores import uploaded
from agent.transcripts import Disks, Transcript
from corral.agent.accounting.database import Accounting
from corral.agent.boot.head import boot_head
from corral.agent.boot.login import boot_login
from corral.agent.boot.sequence import boot_node, fetch
from corral.agent.config_store import ManifestStore
from corral.agent.host.ec2 import Ec2Host
from corral.agent.host.instance_store import mount_instance_store
from corral.agent.host.lustre_client import MachineSize
from corral.agent.node_identity import NodeIdentity
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.plan.cluster import plan_image
from corral.render import cluster_files, deployed_json
from corral.spec.models.image import ImageSpec
from render.plans import LOGIN, deployed, dev, train

# Files belong to the users of munge and Slurm.
pytestmark = pytest.mark.slurm
Golden: TypeAlias = Callable[[str, str], None]
KERNEL = "6.17.0-1019-aws"
PLAN = replace(dev(replace(train(), nvme_mount="/nvme")), image=plan_image(ImageSpec(), None))
P4D = tuple(f"/dev/nvme{number}n1" for number in range(1, 9))


class Around:
    """Secrets, backups and health without problems, for a boot."""

    class exceptions:
        class ResourceNotFoundException(Exception):
            """What no call of this machine's raises."""

    def get_secret_value(self, SecretId: str) -> Any:
        return {"SecretBinary": b"key"}

    def fetch(self, file: Path) -> None:
        return None

    def store(self, file: Path) -> str:
        raise AssertionError

    def query(self, tool: object, level: int) -> None:
        return None


def store(work_dir: Path, plan: ClusterPlan) -> ManifestStore:
    """The cluster's files in a directory."""
    for name, text in {**cluster_files(plan), "deployed.json": deployed_json(deployed())}.items():
        (work_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (work_dir / name).write_text(text)
    return uploaded(work_dir)


def uname(_: Sequence[str]) -> str:
    return f"{KERNEL}\n"


def passwd(command: Sequence[str]) -> str:
    return f"{command[-1]}:x:1000:1001::/home/{command[-1]}:/bin/bash\n"


def as_head(tmp_path: Path, cluster: ClusterPlan = PLAN) -> Transcript:
    """A head boots for the first time."""
    root = tmp_path / "root"
    disk = root / "dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol1"
    disk.parent.mkdir(parents=True)
    disk.touch()
    state = root / "var/lib/corral"

    def made(command: Sequence[str]) -> str:
        (state / "mariadb.new").mkdir(parents=True)
        return ""

    answers = {"uname": uname, "getent": passwd, "mariadb-install-db": made}
    transcript = Transcript(root=root, answers=answers, reads=frozenset({"uname", "getent"}))
    host = Ec2Host(transcript, "us-east-1", root, size=MachineSize(vcpus=8, memory_mib=32 * 1024))
    plan, about = fetch(store(tmp_path / "store", cluster), Role.HEAD, None, root=root, host_in=lambda _: host)
    work_dir = {"data": state / "mariadb", "state_dir": state / "notes", "root": root}
    accounting = Accounting(transcript, Around(), listens=lambda: True, **work_dir)  # type: ignore[arg-type]
    boot_head(plan, about, host, Around(), accounting.start, lambda: None, lambda plan: None, root=root)
    return transcript


def as_node_with_efa(tmp_path: Path) -> Transcript:
    """A p5.48xlarge boots for the first time, in the zone of a Lustre file system with EFA."""
    root = tmp_path / "root"
    for number in range(79, 111):
        device = root / f"sys/class/infiniband/rdmap{number}s0/device"
        device.mkdir(parents=True)
        (device / "driver").symlink_to("/sys/bus/pci/drivers/efa")
    routes = '[{"dst":"default","gateway":"10.64.64.1","dev":"enp71s0","protocol":"dhcp","metric":100}]'
    answers = {"uname": uname, "ip": lambda _: routes}
    transcript = Transcript(root=root, answers=answers, reads=frozenset({"uname", "ip"}))
    host = Ec2Host(transcript, "us-east-1", root, size=MachineSize(vcpus=192, memory_mib=2048 * 1024))
    queue = replace(train(), instance_type="p5.48xlarge", lustre_efa=8, nvme_mount=None)
    lustre = tuple(replace(system, efa=True) for system in PLAN.lustre)
    cluster = replace(PLAN, queues=(queue,), lustre=lustre)
    identity = NodeIdentity(node="train-1", queue="train", zone_id=lustre[0].zone_id)
    plan, about = fetch(store(tmp_path / "store", cluster), Role.COMPUTE, "train", root=root, host_in=lambda _: host)
    boot_node(plan, about, identity, host, Around(), Around(), root=root)
    return transcript


def as_node(tmp_path: Path) -> Transcript:
    """A p4d boots for the first time; then its unit runs at a later boot, with the disks as they were."""
    root = tmp_path / "root"
    disks = Disks(names=P4D)
    disks.lay(root)
    transcript = Transcript(root=root, answers={"uname": uname, **disks.answers()}, reads=frozenset({"uname"}))
    host = Ec2Host(transcript, "us-east-1", root, size=MachineSize(vcpus=96, memory_mib=1152 * 1024))
    plan, about = fetch(store(tmp_path / "store", PLAN), Role.COMPUTE, "train", root=root, host_in=lambda _: host)
    boot_node(plan, about, NodeIdentity(node="train-1", queue="train"), host, Around(), Around(), root=root)
    transcript.heading("After a reboot: corral-agent nvme /nvme")
    disks.mounts.clear()
    mount_instance_store(transcript, Path("/nvme"), root)
    transcript.heading("After a stop and a start, which leave blank disks: corral-agent nvme /nvme")
    disks.mounts.clear()
    disks.file_systems.clear()
    disks.volume = None
    mount_instance_store(transcript, Path("/nvme"), root)
    return transcript


def as_login_node(tmp_path: Path) -> Transcript:
    """A login node boots for the first time."""
    root = tmp_path / "root"
    transcript = Transcript(root=root, answers={"uname": uname}, reads=frozenset({"uname"}))
    host = Ec2Host(transcript, "us-east-1", root, size=MachineSize(vcpus=4, memory_mib=8 * 1024))
    cluster = replace(PLAN, login=LOGIN)
    plan, about = fetch(store(tmp_path / "store", cluster), Role.LOGIN, None, root=root, host_in=lambda _: host)
    boot_login(plan, about, "login-1", IPv4Address("10.64.0.99"), host, Around(), root=root)
    return transcript


def test_what_a_head_runs_and_writes(golden: Golden, tmp_path: Path) -> None:
    golden("boot/head.txt", as_head(tmp_path).text())


def test_what_a_head_on_debian_runs_and_writes(golden: Golden, tmp_path: Path) -> None:
    debian = replace(PLAN, image=plan_image(ImageSpec(profile="debian-13"), None), lustre=())
    golden("boot/head-debian.txt", as_head(tmp_path, debian).text())


def test_what_a_login_node_runs_and_writes(golden: Golden, tmp_path: Path) -> None:
    golden("boot/login.txt", as_login_node(tmp_path).text())


def test_what_a_compute_machine_runs_and_writes(golden: Golden, tmp_path: Path) -> None:
    golden("boot/train.txt", as_node(tmp_path).text())


def test_what_a_machine_with_lustre_over_efa_runs_and_writes(golden: Golden, tmp_path: Path) -> None:
    golden("boot/lustre-efa.txt", as_node_with_efa(tmp_path).text())


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing: apt install systemd")
@pytest.mark.parametrize("boot", [as_head, as_node, as_node_with_efa])
def test_systemd_finds_nothing_wrong_with_any_unit_of_a_boot(boot: Any, tmp_path: Path) -> None:
    """Each unit at its path, with an existing program; units of packages are bases for their drop-ins."""
    units = boot(tmp_path).root / "etc/systemd/system"
    for drop_in in units.glob("*.service.d"):
        (units / drop_in.stem).write_text("[Service]\nExecStart=/bin/true\n")
    for unit in (*units.glob("*.service"), *units.glob("*.service.d/*.conf")):
        unit.write_text(re.sub(r"(Exec\w+=[-+]?)/\S+", r"\1/bin/true", unit.read_text()))
    names = sorted(file.name for file in units.iterdir() if file.is_file())
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *(str(units / name) for name in names)],
        capture_output=True,
        text=True,
        env={"SYSTEMD_UNIT_PATH": f"{units}:", "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, [line for line in done.stderr.splitlines() if any(name in line for name in names)]) == (
        0,
        [],
    )


@pytest.mark.parametrize("boot", [as_head, as_node])
def test_a_repeated_boot_installs_no_existing_program(boot: Any, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("munged", "mount.nfs4", "mount.lustre", "mkfs.xfs", "mdadm", "mariadbd"):
        (root / "usr/sbin").mkdir(parents=True, exist_ok=True)
        (root / "usr/sbin" / name).touch()
    for name in ("sbin/slurmd", "sbin/slurmctld", "sbin/slurmdbd", "bin/scontrol"):
        (root / "usr" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "usr" / name).touch()
    assert [line for line in boot(tmp_path).lines if "apt-" in line and "systemctl" not in line] == []
