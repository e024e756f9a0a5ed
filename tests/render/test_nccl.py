"""NCCL's settings: short, right for each type, and exported without overriding the user's own; Neuron's likewise."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from corral.catalog.aws.instance_types import find_instance_type
from corral.model.cluster import QueuePlan
from corral.plan.cluster import plan_node
from corral.plan.nccl_env.env_parser import assignments_in
from corral.plan.nccl_env.lint_env import Context, assumed_versions, lint
from corral.plan.network_interfaces import plan_nics
from corral.render.nccl import nccl_files
from render.plans import cpu, dev, train

# What aws-ofi-nccl sets by itself, and what is wrong with today's plugin and libfabric.
LEFT_ALONE = ("NCCL_BUFFSIZE", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_TOPO_FILE", "NCCL_PROTO", "NCCL_ALGO", "FI_PROVIDER")
WITH_EFA = (
    *("p3dn.24xlarge", "p4d.24xlarge", "p4de.24xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
    *("p6-b200.48xlarge", "p6-b300.48xlarge", "g5.48xlarge", "g6.48xlarge", "g6e.48xlarge"),
)
WITHOUT_EFA = ("g5.xlarge", "g6.xlarge", "g6e.xlarge")
NEURON = ("trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge")


def queue(name: str) -> QueuePlan:
    """A queue of these machines, with EFA where they have it."""
    machine = find_instance_type(name)
    efa = machine.efa_maximum > 0
    nics = plan_nics(machine, efa=efa)
    return replace(train(), instance_type=name, efa=efa, nics=nics, node=plan_node(machine))


def conf(name: str) -> str:
    return nccl_files(dev(queue(name)))["nccl/train.conf"]


def settings(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("#")]


def test_a_queue_without_accelerators_has_no_file() -> None:
    assert sorted(nccl_files(dev(train(), cpu()))) == ["nccl/profile.sh", "nccl/train.conf"]


def test_a_cluster_without_accelerators_has_no_file() -> None:
    assert nccl_files(dev(cpu())) == {}


@pytest.mark.parametrize("name", [*WITH_EFA, *WITHOUT_EFA])
def test_two_settings_are_enough(name: str) -> None:
    assert settings(conf(name)) == ["NCCL_SOCKET_IFNAME=en,eth", "NCCL_DEBUG=WARN"]


@pytest.mark.parametrize("name", [*WITH_EFA, *WITHOUT_EFA])
def test_nothing_in_it_is_found_fault_with(name: str) -> None:
    context = Context(instance_type=find_instance_type(name), versions=assumed_versions({}))
    assert {finding.verdict.value for finding in lint(assignments_in(conf(name)), context)} == {"fine"}


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        *(("p3dn.24xlarge", 1), ("p4d.24xlarge", 4), ("p4de.24xlarge", 4), ("p5.4xlarge", 1), ("p5.48xlarge", 32)),
        *(("p5e.48xlarge", 32), ("p5en.48xlarge", 16), ("p6-b200.48xlarge", 8), ("p6-b300.48xlarge", 16)),
    ],
)
def test_it_names_the_number_of_devices_of_a_healthy_job(name: str, devices: int) -> None:
    assert f"(found {devices} nics)" in conf(name)


@pytest.mark.parametrize("name", WITHOUT_EFA)
def test_without_efa_it_names_what_nccl_uses_instead(name: str) -> None:
    assert "without EFA, NCCL uses TCP" in conf(name)


def test_it_names_what_the_plugin_sets_on_the_type() -> None:
    assert "# (NCCL_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE, NCCL_TOPO_FILE, OFI_NCCL_PROTOCOL)." in conf("p4d.24xlarge")


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_the_plugin_sets_is_left_to_it(name: str) -> None:
    assert [text for text in nccl_files(dev()).values() if f"{name}=" in text] == []


def exported(profile: str, names: str, **environment: str) -> list[str]:
    """What the shell fragment leaves in the environment."""
    command = ["sh", "-eu", "-c", f"{profile}\nenv | grep -E '^({names})_' | sort"]
    paths = {"PATH": "/usr/bin:/bin", **environment}
    return subprocess.run(command, env=paths, capture_output=True, text=True, check=True).stdout.split()


def test_the_profile_exports_the_file_but_keeps_what_the_user_set(tmp_path: Path) -> None:
    files = nccl_files(dev())
    (tmp_path / "nccl.conf").write_text(files["nccl/train.conf"])
    profile = files["nccl/profile.sh"].replace("/etc/nccl.conf", str(tmp_path / "nccl.conf"))
    assert exported(profile, "NCCL", NCCL_DEBUG="INFO") == ["NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=en,eth"]


@pytest.mark.parametrize("name", NEURON)
def test_trainium_has_no_nccl(name: str) -> None:
    assert sorted(nccl_files(dev(queue(name)))) == ["neuron/train.sh"]


def test_trainium_without_efa_needs_nothing() -> None:
    assert nccl_files(dev(queue("trn1.2xlarge"))) == {}


def test_neurons_profile_exports_the_documented_variables() -> None:
    profile = nccl_files(dev(queue("trn2.48xlarge")))["neuron/train.sh"]
    assert exported(profile, "FI") == ["FI_EFA_FORK_SAFE=1", "FI_EFA_USE_DEVICE_RDMA=1", "FI_PROVIDER=efa"]


def test_neurons_profile_keeps_what_the_user_set() -> None:
    profile = nccl_files(dev(queue("trn1.32xlarge")))["neuron/train.sh"]
    assert exported(profile, "FI_EFA_FORK", FI_EFA_FORK_SAFE="0") == ["FI_EFA_FORK_SAFE=0"]


def test_a_cluster_of_both_kinds_has_both() -> None:
    files = nccl_files(dev(train(), replace(queue("trn1.32xlarge"), name="trn", is_default=False)))
    assert sorted(files) == ["nccl/profile.sh", "nccl/train.conf", "neuron/trn.sh"]


@pytest.mark.parametrize("path", ["nccl/profile.sh", "neuron/trn.sh"])
def test_shellcheck_finds_nothing(path: str) -> None:
    both = nccl_files(dev(train(), replace(queue("trn1.32xlarge"), name="trn", is_default=False)))
    done = subprocess.run(["shellcheck", "-"], input=both[path], capture_output=True, text=True)
    assert done.stdout == ""
