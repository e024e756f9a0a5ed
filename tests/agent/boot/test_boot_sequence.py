"""Boot steps of a head and a node and their order, on a host that only records them."""

from __future__ import annotations

import pwd
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from agent.stores import uploaded
from container_archives import CONTAINERS
from corral.agent.boot.head import boot_head
from corral.agent.boot.login import boot_login
from corral.agent.boot.sequence import boot_node, fetch
from corral.agent.health.check import HealthError
from corral.agent.health.probes import BoxProbe, Probe
from corral.agent.host.base import Daemon, Host
from corral.agent.host.packages import Package
from corral.agent.node_identity import NodeIdentity
from corral.agent.users.accounts import AccountChange
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.enums import Role
from corral.model.users import HOMES, AccessPlan, UserPlan
from corral.render import cluster_files, deployed_json
from render.plans import LOGIN, cpu, deployed, dev, image, train

# The key and the notes belong to the users of munge and Slurm.
pytestmark = pytest.mark.slurm


@dataclass(kw_only=True)
class Machine:
    """A host and its secrets, which record their calls."""

    root: Path
    steps: list[str] = field(default_factory=list)
    files_at_start: dict[str, list[str]] = field(default_factory=dict)

    class exceptions:
        class ResourceNotFoundException(Exception):
            """What no call of this machine's raises."""

    def restrict_metadata(self) -> None:
        self.steps.append("fence")

    def set_search_domain(self, zone: str) -> None:
        self.steps.append(f"search {zone}")

    def restrict_users(self) -> None:
        self.steps.append("restrict users")

    def limit_people(self) -> None:
        self.steps.append("limit people")

    def set_name(self, name: str, address: IPv4Address) -> None:
        self.steps.append(f"name {name} at {address}")

    def mount_volume(self, volume_id: str, path: Path) -> None:
        self.steps.append(f"mount {volume_id} {path}")

    def mount_home(self, file_system: str, path: Path) -> None:
        self.steps.append(f"mount {file_system} {path}")

    def set_up_lustre_efa(self, interfaces: int, mounts: Sequence[Path]) -> None:
        self.steps.append(f"{interfaces} EFA for {' '.join(map(str, mounts))}")

    def mount_lustre(self, dns_name: str, mount_name: str, path: Path) -> None:
        self.steps.append(f"mount {dns_name}/{mount_name} {path}")

    def build(self, script: Path, *arguments: str) -> None:
        self.steps.append(" ".join((str(script), *arguments)))

    def mount_nvme(self, path: Path) -> None:
        self.steps.append(f"mount own disks {path}")

    def make_home(self, user: str) -> None:
        self.steps.append(f"home of {user}")

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        self.steps.append(" ".join(("accounts", *(user.name for user in access.users))))
        if admin_homes != HOMES:
            self.steps.append(f"administrators at {admin_homes}")
        return ()

    def requeue_at_shutdown(self, node: str) -> None:
        self.steps.append("requeue at shutdown")

    def enable_gpu_persistence(self) -> None:
        self.steps.append("wake GPUs")

    def stop_updates(self) -> None:
        self.steps.append("stop updates")

    def install(self, packages: Sequence[Package]) -> None:
        files = sorted(file.name for file in self.root.rglob("*"))
        self.steps.append(f"install {' '.join(package.name for package in packages)}, having {files}")

    def reload_sshd(self) -> None:
        drop_ins = self.root / "etc/ssh/sshd_config.d"
        self.steps.append(f"reload sshd, having {sorted(file.name for file in drop_ins.iterdir())}")

    def write_units(self, daemons: Sequence[Daemon]) -> None:
        self.steps.append(f"units {' '.join(daemon.unit for daemon in daemons)}")

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        self.steps.append(" ".join(("start", *daemon.command, *options)))
        self.files_at_start[daemon.unit] = sorted(str(file.relative_to(self.root)) for file in self.root.rglob("*"))

    def start_accounting(self, plan: ClusterPlan, _: Host, state_dir: Path) -> None:
        self.steps.append(f"accounting of {plan.name}, {state_dir}")

    def sync_accounts(self, plan: ClusterPlan) -> None:
        self.steps.append(f"accounts of {plan.name}")

    def check_manifest(self) -> None:
        self.steps.append("check manifest")

    def get_secret_value(self, SecretId: str) -> Any:
        self.steps.append(f"read {SecretId.rsplit(':', 1)[1]}")
        return {"SecretBinary": b"key"}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(root=tmp_path)


class NoRequests:
    """A machine whose health is not checked."""

    def query(self, tool: object, level: int) -> None:
        return None


NO_REQUESTS: Probe = NoRequests()


def as_head(machine: Machine, plan: ClusterPlan, made: Deployed) -> list[str]:
    """What a head of this cluster does."""
    boot_head(
        plan,
        made,
        machine,
        machine,
        machine.start_accounting,
        machine.check_manifest,
        machine.sync_accounts,
        root=machine.root,
    )
    return machine.steps


def as_node(machine: Machine, plan: ClusterPlan, made: Deployed, node: str, queue: str) -> list[str]:
    """What this node of the cluster does."""
    boot_node(plan, made, NodeIdentity(node=node, queue=queue), machine, machine, NO_REQUESTS, root=machine.root)
    return machine.steps


BARE = replace(dev(train(), cpu()), home=False, lustre=())


def test_a_head_mounts_before_it_starts_and_has_the_key_before_munge(machine: Machine) -> None:
    assert as_head(machine, dev(), deployed()) == [
        "units munge corral-credentials corral-agent mariadb slurmdbd slurmctld",
        "fence",
        "restrict users",
        "name dev-head at 10.64.0.26",
        "search dev.corral.internal",
        "mount vol-1 /var/lib/corral",
        "check manifest",
        "mount fs-2 /home",
        "mount fs-1.fsx.us-east-1.amazonaws.com/abc /scratch",
        "accounts",
        "home of ubuntu",
        "read munge-1",
        "start /usr/sbin/munged",
        "start /opt/corral/bin/corral-agent credentials",
        "start /opt/corral/bin/corral-agent autoscaler",
        "accounting of dev, /var/lib/corral/slurmctld",
        "start /usr/sbin/slurmctld",
        "accounts of dev",
    ]


def test_administrators_of_a_head_without_other_people_have_homes_there(machine: Machine) -> None:
    assert "administrators at /var/lib/corral/homes" in as_head(machine, replace(dev(), login=LOGIN), deployed())


def test_a_login_node_shares_the_homes_and_starts_no_daemon_of_slurm(machine: Machine) -> None:
    plan = replace(dev(), access=AccessPlan(users=(UserPlan(name="ada", uid=2000),)))
    boot_login(plan, deployed(), "login-1", IPv4Address("10.64.0.99"), machine, machine, root=machine.root)
    assert machine.steps == [
        "units munge corral-credentials corral-login",
        "fence",
        "restrict users",
        "limit people",
        "name login-1 at 10.64.0.99",
        "search dev.corral.internal",
        "mount fs-2 /home",
        "mount fs-1.fsx.us-east-1.amazonaws.com/abc /scratch",
        "accounts ada",
        "read munge-1",
        "start /usr/sbin/munged",
        "start /opt/corral/bin/corral-agent credentials",
        "start /opt/corral/bin/corral-agent login-watch",
    ]


def test_what_runs_containers_is_compiled_before_slurm_starts(machine: Machine) -> None:
    steps = as_head(machine, replace(BARE, containers=CONTAINERS), replace(deployed(), home=None))
    assert steps[-3:-1] == ["/opt/corral/containers/build.sh", "start /usr/sbin/slurmctld"]


def test_a_nodes_containers_are_on_its_instance_store(machine: Machine) -> None:
    plan = replace(BARE, queues=(replace(train(), nvme_mount="/local"),), containers=CONTAINERS)
    steps = as_node(machine, plan, replace(deployed(), home=None), "train-1", "train")
    built = steps.index("/opt/corral/containers/build.sh /local/enroot")
    assert steps.index("mount own disks /local") < built
    assert steps[built + 1].startswith("start /usr/sbin/slurmd")


def test_a_head_without_home_and_lustre_mounts_its_state_alone(machine: Machine) -> None:
    assert as_head(machine, BARE, replace(deployed(), home=None)) == [
        "units munge corral-credentials corral-agent mariadb slurmdbd slurmctld",
        "fence",
        "restrict users",
        "name dev-head at 10.64.0.26",
        "search dev.corral.internal",
        "mount vol-1 /var/lib/corral",
        "check manifest",
        "accounts",
        "read munge-1",
        "start /usr/sbin/munged",
        "start /opt/corral/bin/corral-agent credentials",
        "start /opt/corral/bin/corral-agent autoscaler",
        "accounting of dev, /var/lib/corral/slurmctld",
        "start /usr/sbin/slurmctld",
        "accounts of dev",
    ]


def test_a_node_mounts_before_it_starts_and_has_the_key_before_munge(machine: Machine) -> None:
    assert as_node(machine, dev(train(), cpu()), deployed(), "train-3", "train") == [
        "fence",
        "restrict users",
        "search dev.corral.internal",
        "mount fs-2 /home",
        "mount fs-1.fsx.us-east-1.amazonaws.com/abc /scratch",
        "accounts",
        "units munge corral-credentials slurmd corral-watch",
        "read munge-1",
        "start /usr/sbin/munged",
        "start /opt/corral/bin/corral-agent credentials",
        "wake GPUs",
        "start /usr/sbin/slurmd --conf-server 10.64.0.26:6817 -N train-3",
        "requeue at shutdown",
        "start /opt/corral/bin/corral-agent node-watch",
    ]


def test_a_node_of_a_queue_without_accelerators_without_home_mounts_nothing(machine: Machine) -> None:
    assert as_node(machine, BARE, replace(deployed(), home=None), "cpu-1", "cpu") == [
        "fence",
        "restrict users",
        "search dev.corral.internal",
        "accounts",
        "units munge corral-credentials slurmd corral-watch",
        "read munge-1",
        "start /usr/sbin/munged",
        "start /opt/corral/bin/corral-agent credentials",
        "start /usr/sbin/slurmd --conf-server 10.64.0.26:6817 -N cpu-1",
        "requeue at shutdown",
        "start /opt/corral/bin/corral-agent node-watch",
    ]


def test_a_node_has_its_instance_store_before_jobs_can_start(machine: Machine) -> None:
    plan = dev(replace(train(), nvme_mount="/nvme"))
    assert as_node(machine, plan, deployed(), "train-1", "train")[-4:] == [
        "mount own disks /nvme",
        "start /usr/sbin/slurmd --conf-server 10.64.0.26:6817 -N train-1",
        "requeue at shutdown",
        "start /opt/corral/bin/corral-agent node-watch",
    ]


def fetched(machine: Machine, tmp_path: Path) -> list[str]:
    """What fetching the files of a head does."""
    store = tmp_path / "store"
    for name, text in {**cluster_files(dev()), "deployed.json": deployed_json(deployed())}.items():
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text(text)
    machine.root = tmp_path / "root"
    fetch(uploaded(store), Role.HEAD, None, root=machine.root, host_in=lambda _: machine)
    return machine.steps


def test_packages_come_before_the_files_that_belong_to_their_users(machine: Machine, tmp_path: Path) -> None:
    assert fetched(machine, tmp_path)[:2] == [
        "stop updates",
        "install mariadb-server munge nfs-common slurm-client slurmctld slurmdbd, having []",
    ]


def test_a_running_sshd_reloads_its_settings_once(machine: Machine, tmp_path: Path) -> None:
    reloads = [fetched(machine, tmp_path)[2:].copy(), fetched(machine, tmp_path)[5:]]
    settings = "['50-corral-credentials.conf', '60-corral.conf', '70-corral-homes.conf']"
    assert reloads == [[f"reload sshd, having {settings}"], []]


def test_a_node_starts_the_slurmd_of_its_queues_own_image(machine: Machine) -> None:
    own = replace(train(), image=replace(image(), profile="pcs", slurm_sbin="/opt/slurm/sbin"))
    started = [step.split()[1] for step in as_node(machine, dev(own), deployed(), "train-1", "train") if "-N" in step]
    assert started == ["/opt/slurm/sbin/slurmd"]


def test_a_machine_that_is_sick_does_not_start_its_slurmd(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "nvidia-smi.csv.hangs").touch()
    identity = NodeIdentity(node="train-1", queue="train")
    with pytest.raises(HealthError, match="nvidia-smi did not answer"):
        boot_node(
            dev(), deployed(), identity, machine, machine, BoxProbe(tmp_path, NO_REQUESTS), root=machine.root / "root"
        )
    assert [step for step in machine.steps if step.startswith("start /usr/sbin/slurmd") or "GPUs" in step] == [
        "wake GPUs"
    ]


def test_munge_finds_its_key_when_it_starts(machine: Machine) -> None:
    as_node(machine, dev(), deployed(), "train-1", "train")
    assert machine.files_at_start["munge"] == ["etc", "etc/munge", "etc/munge/munge.key"]


def test_only_munge_can_read_the_key(machine: Machine) -> None:
    as_node(machine, dev(), deployed(), "train-1", "train")
    key = machine.root / "etc/munge/munge.key"
    owner = pwd.getpwuid(key.stat().st_uid).pw_name
    assert (key.read_bytes(), key.stat().st_mode & 0o7777, owner) == (b"key", 0o400, "munge")


def test_the_autoscaler_finds_the_request_queue_when_it_starts(machine: Machine) -> None:
    as_head(machine, dev(), deployed())
    assert "var/lib/corral/notes" in machine.files_at_start["corral-agent"]


def test_only_slurms_user_can_read_requests(machine: Machine) -> None:
    as_head(machine, dev(), deployed())
    requests = machine.root / "var/lib/corral/notes"
    assert (pwd.getpwuid(requests.stat().st_uid).pw_name, requests.stat().st_mode & 0o7777) == ("slurm", 0o700)


def test_a_head_that_boots_again_keeps_the_requests(machine: Machine) -> None:
    as_head(machine, dev(), deployed())
    (machine.root / "var/lib/corral/notes/1-1.json").touch()
    as_head(machine, dev(), deployed())
    assert (machine.root / "var/lib/corral/notes/1-1.json").exists()


PEOPLE = AccessPlan(users=(UserPlan(name="ada", uid=2001), UserPlan(name="bob", uid=2002)))


@pytest.mark.parametrize(("home", "homes"), [("fs-0123", []), (None, ["home of ada", "home of bob"])])
def test_a_node_makes_homes_only_where_machines_share_none(
    machine: Machine, home: str | None, homes: list[str]
) -> None:
    steps = as_node(machine, replace(BARE, access=PEOPLE), replace(deployed(), home=home), "cpu-1", "cpu")
    assert "accounts ada bob" in steps
    assert [step for step in steps if step.startswith("home of")] == homes


def test_a_head_makes_the_homes_of_all(machine: Machine) -> None:
    steps = as_head(machine, replace(dev(), access=PEOPLE), deployed())
    start = steps.index("accounts ada bob")
    assert steps[start + 1 : start + 4] == ["home of ubuntu", "home of ada", "home of bob"]
