"""What slurm.conf, gres.conf, cgroup.conf and host.conf say, for the plan and for each Slurm release."""

from dataclasses import replace

import pytest

from corral.render.host import HostFacts, host_conf
from corral.render.slurm import cgroup_conf, gres_conf, node_line, partition_line, slurm_conf, slurm_time
from render.plans import cpu, dev, train
from render.slurm_files import records, settings

VERSION_DEPENDENT = ("SlurmctldParameters", "CommunicationParameters", "TreeWidth", "PrivateData")


def test_nodes_of_a_gpu_queue() -> None:
    assert node_line(train()) == (
        "NodeName=train-[1-4] Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=1120665 "
        "Gres=gpu:a100:8 Feature=p4d.24xlarge,efa Weight=1 State=CLOUD"
    )


def test_node_of_a_queue_without_accelerators() -> None:
    assert node_line(cpu()) == (
        "NodeName=cpu-1 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=31129 "
        "Feature=m7i.2xlarge Weight=1 State=CLOUD"
    )


def test_partition_of_a_gpu_queue_gives_memory_by_gpu() -> None:
    assert partition_line(train()) == (
        "PartitionName=train Nodes=train-[1-4] Default=YES MaxTime=INFINITE "
        "SuspendTime=600 DefMemPerGPU=140083 State=UP"
    )


def test_partition_of_a_cpu_queue_gives_memory_by_cpu_and_keeps_its_limit() -> None:
    assert partition_line(cpu()) == (
        "PartitionName=cpu Nodes=cpu-1 Default=NO MaxTime=1-12:00:00 SuspendTime=600 DefMemPerCPU=3891 State=UP"
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "0-00:00:59"), (3600, "0-01:00:00"), (90061, "1-01:01:01"), (8640000, "100-00:00:00")]
)
def test_durations_name_their_units(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text


def test_the_controller_is_the_planned_head_at_its_address() -> None:
    assert settings(slurm_conf(dev()))["SlurmctldHost"] == "dev-head(10.64.0.26)"


def test_release_22_05_is_told_what_later_ones_do_anyway() -> None:
    found = settings(slurm_conf(dev(slurm_version="22.05")))
    assert {key: found.get(key) for key in VERSION_DEPENDENT} == {
        "SlurmctldParameters": "cloud_reg_addrs,enable_configless,idle_on_node_suspend",
        "CommunicationParameters": "NoAddrCache",
        "TreeWidth": "65533",
        "PrivateData": "cloud",
    }


def test_release_23_02_shows_cloud_nodes_and_limits_calls() -> None:
    found = settings(slurm_conf(dev(slurm_version="23.02")))
    assert {key: found.get(key) for key in VERSION_DEPENDENT} == {
        "SlurmctldParameters": "cloud_reg_addrs,enable_configless,idle_on_node_suspend,rl_enable",
        "CommunicationParameters": "NoAddrCache",
        "TreeWidth": "65533",
        "PrivateData": None,
    }


def test_release_23_11_is_told_nothing_that_it_removed() -> None:
    found = settings(slurm_conf(dev(slurm_version="23.11")))
    assert {key: found.get(key) for key in VERSION_DEPENDENT} == {
        "SlurmctldParameters": "enable_configless,idle_on_node_suspend,rl_enable",
        "CommunicationParameters": None,
        "TreeWidth": None,
        "PrivateData": None,
    }


def test_a_patch_release_counts_as_its_release() -> None:
    assert settings(slurm_conf(dev(slurm_version="23.11.4"))) == settings(slurm_conf(dev(slurm_version="23.11")))


def test_only_the_first_nodes_of_a_queue_stay() -> None:
    plan = dev(replace(train(), min_nodes=2), cpu())
    assert settings(slurm_conf(plan))["SuspendExcNodes"] == "train-[1-2],cpu-1"


def test_no_node_stays_where_all_are_dynamic() -> None:
    assert "SuspendExcNodes" not in settings(slurm_conf(dev()))


def test_generic_resources_are_left_out_without_accelerators() -> None:
    assert "GresTypes" not in settings(slurm_conf(dev(cpu())))


def test_no_setting_stands_twice() -> None:
    lines = [key for record in records(slurm_conf(dev())) if len(record) == 1 for key in record]
    assert sorted(lines) == sorted(set(lines))


def test_includes_are_relative_so_that_slurmctld_sends_them_to_nodes() -> None:
    lines = slurm_conf(dev()).splitlines()
    assert [line for line in lines if line.startswith("Include")] == ["Include host.conf", "Include own.conf"]


def test_the_users_lines_come_last() -> None:
    assert slurm_conf(dev()).endswith("\nInclude own.conf\n")


def test_gres_names_the_device_files_of_gpu_queues_alone() -> None:
    assert records(gres_conf(dev(train(), cpu()))) == [
        {"AutoDetect": "off"},
        {"NodeName": "train-[1-4]", "Name": "gpu", "Type": "a100", "File": "/dev/nvidia[0-7]"},
    ]


def test_jobs_are_fenced_into_their_devices_cores_and_memory() -> None:
    constrained = {key: value for key, value in settings(cgroup_conf()).items() if key.startswith("Constrain")}
    assert constrained == {"ConstrainDevices": "YES", "ConstrainCores": "YES", "ConstrainRAMSpace": "YES"}


def test_host_conf_of_ec2() -> None:
    assert settings(host_conf()) == {
        "SlurmUser": "slurm",
        "SlurmdUser": "root",
        "SlurmctldPort": "6817",
        "SlurmdPort": "6818",
        "StateSaveLocation": "/var/lib/corral/slurmctld",
        "SlurmdSpoolDir": "/var/spool/slurmd",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/affinity,task/cgroup",
        "PrologFlags": "Alloc,Contain",
    }


def test_host_conf_of_a_small_host_that_poses_as_the_planned_one() -> None:
    facts = HostFacts(slurm_user="ann", cgroups=False, poses=True, munge_socket="/tmp/m.sock", controller_port=7001)
    wanted = (
        "SlurmUser",
        "ProctrackType",
        "TaskPlugin",
        "SlurmdParameters",
        "AuthInfo",
        "SlurmctldPort",
        "PrologFlags",
    )
    found = settings(host_conf(facts))
    assert {key: found.get(key) for key in wanted} == {
        "SlurmUser": "ann",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "SlurmdParameters": "config_overrides",
        "AuthInfo": "socket=/tmp/m.sock",
        "SlurmctldPort": "7001",
        "PrologFlags": None,
    }


def test_a_host_fact_with_a_space_is_refused() -> None:
    with pytest.raises(ValueError, match="StateSaveLocation: '/my state'"):
        host_conf(HostFacts(state_dir="/my state"))


def test_a_longer_queue_changes_its_own_lines_alone() -> None:
    before, after = (slurm_conf(dev(train(count))).splitlines() for count in (4, 6))
    assert [new.split()[:2] for old, new in zip(before, after, strict=True) if old != new] == [
        ["NodeName=train-[1-6]", "Sockets=2"],
        ["PartitionName=train", "Nodes=train-[1-6]"],
    ]
