"""What slurm.conf, gres.conf, cgroup.conf and host.conf say, for the plan and for each Slurm release."""

import re
from dataclasses import replace
from importlib.resources import files

import pytest

from corral.catalog.slurm.conf_keys import ConfSection, slurm_keys, unsupported_settings
from corral.catalog.slurm.releases import RELEASES, Release, parse_release, release_text
from corral.model.accounts import AccountsPlan, QosPlan
from corral.model.cluster import ClusterPlan, GresPlan, QueuePlan
from corral.model.users import AccessPlan, UserPlan
from corral.plan.cluster import plan_image
from corral.render import cluster_files
from corral.render.host_conf import EC2, HostFacts, host_conf, host_settings
from corral.render.nearest_release import ReleaseError, written_release
from corral.render.slurm_conf import (
    CONF_TEMPLATE,
    DEFAULTS,
    PREEMPTION,
    cgroup_conf,
    check_own_keys,
    gres_conf,
    node_line,
    partition_line,
    slurm_conf,
    slurm_time,
    tree_width,
)
from corral.spec.models.image import ImageSpec
from corral.spec.rules.slurm_key_rules import RESERVED, SHARING, WRITTEN
from render.plans import cpu, dev, image, train
from render.slurm_files import records, settings
from slurms import wide

VERSION_DEPENDENT = ("SlurmctldParameters", "CommunicationParameters", "TreeWidth", "PrivateData")
NEW = (26, 5)
KEY = re.compile(r"^([A-Z][A-Za-z]+)(?:=| )|\blines\.([A-Z][A-Za-z]+)", re.MULTILINE)
each_release = pytest.mark.parametrize("release", RELEASES, ids=release_text)


def template_keys() -> set[str]:
    """Every key that the template of slurm.conf writes, with Include, without nodes and partitions."""
    text = files("corral").joinpath("templates", *CONF_TEMPLATE.split("/")).read_text(encoding="utf-8")
    return {literal or placed for literal, placed in KEY.findall(text)}


def owned_keys() -> set[str]:
    """The keys of slurm.conf that only corral writes, including those of host.conf."""
    # Only if the environment has programs, or QOS that preempt others. Users may set them.
    own = {"JobSubmitPlugins", "PrologEpilogTimeout", *PREEMPTION}
    return {*template_keys(), *host_settings(EC2), "NodeName", "PartitionName"} - DEFAULTS.keys() - own


def trn(count: int = 16) -> QueuePlan:
    """The queue of p4d machines, with Neuron devices instead of GPUs."""
    return replace(train(), node=replace(train().node, gres=GresPlan(type="trainium2", count=count, name="neuron")))


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


def test_partition_of_a_gpu_queue_gives_memory_by_cpu_and_cpus_by_gpu() -> None:
    assert partition_line(train(), NEW) == (
        "PartitionName=train Nodes=train-[1-4] Default=YES MaxTime=INFINITE "
        "SuspendTime=600 DefMemPerCPU=11673 DefCpuPerGPU=12 State=UP"
    )


def test_partition_of_a_cpu_queue_gives_memory_by_cpu_and_keeps_its_limit() -> None:
    assert partition_line(cpu(), NEW) == (
        "PartitionName=cpu Nodes=cpu-1 Default=NO MaxTime=1-12:00:00 SuspendTime=600 DefMemPerCPU=3891 State=UP"
    )


@pytest.mark.parametrize(
    ("seconds", "text"), [(59, "0-00:00:59"), (3600, "0-01:00:00"), (90061, "1-01:01:01"), (8640000, "100-00:00:00")]
)
def test_durations_name_their_units(seconds: int, text: str) -> None:
    assert slurm_time(seconds) == text


def test_the_controller_is_the_planned_head_at_its_address() -> None:
    assert settings(slurm_conf(dev()))["SlurmctldHost"] == "dev-head(10.64.0.26)"


def test_release_22_05_sets_the_defaults_of_later_ones() -> None:
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


def test_release_23_11_has_no_removed_key() -> None:
    found = settings(slurm_conf(dev(slurm_version="23.11")))
    assert {key: found.get(key) for key in VERSION_DEPENDENT} == {
        "SlurmctldParameters": "disable_triggers,enable_configless,idle_on_node_suspend,rl_enable",
        "CommunicationParameters": None,
        "TreeWidth": None,
        "PrivateData": None,
    }


def test_release_25_11_disables_http() -> None:
    found = settings(slurm_conf(dev(slurm_version="25.11")))
    assert {key: found.get(key) for key in VERSION_DEPENDENT} == {
        "SlurmctldParameters": "disable_triggers,enable_configless,idle_on_node_suspend,rl_enable",
        "CommunicationParameters": "disable_http",
        "TreeWidth": None,
        "PrivateData": None,
    }


def test_a_release_that_is_not_known_yet_gets_the_newest_known_ones_settings() -> None:
    newer, newest = (settings(slurm_conf(dev(slurm_version=version))) for version in ("27.11", "26.05"))
    assert newer == newest


def test_a_release_that_is_not_known_yet_is_named_in_the_file() -> None:
    assert slurm_conf(dev(slurm_version="27.11")).splitlines()[1:3] == [
        "# For Slurm 27.11. Settings that depend on the kind of host are in host.conf.",
        "# corral does not know this release: written as for 26.05.",
    ]


def test_a_release_that_is_too_old_is_refused_with_a_sentence() -> None:
    with pytest.raises(ReleaseError) as caught:
        slurm_conf(dev(slurm_version="21.08.5"))
    assert str(caught.value) == "Slurm 21.08.5 is too old: corral writes for 22.05 and later - take a newer image"


@pytest.mark.parametrize(
    ("version", "release"),
    [("22.05.8", (22, 5)), ("22.08", (22, 5)), ("24.11.5", (24, 11)), ("26.05.5", (26, 5)), ("31.11", (26, 5))],
)
def test_files_are_written_for_the_newest_known_release_that_is_not_newer(version: str, release: Release) -> None:
    assert written_release(version) == release


def test_a_job_of_a_sick_node_is_not_held_whatever_else_is_set() -> None:
    plans = [dev(), replace(dev(), extra_slurm={"schedulerparameters": "bf_continue"})]
    lines = [line for plan in plans for line in slurm_conf(plan).splitlines() if "nohold" in line]
    assert lines == [
        "SchedulerParameters=nohold_on_prolog_fail",
        "schedulerparameters=bf_continue,nohold_on_prolog_fail",
    ]


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
    assert [line for line in lines if line.startswith("Include")] == [
        "Include host.conf",
        "Include first-job.conf",
        "Include topology-plugin.conf",
        "Include users.conf",
        "Include own.conf",
    ]


def test_the_users_lines_come_last() -> None:
    assert slurm_conf(dev()).endswith("\nInclude own.conf\n")


def test_gres_names_the_device_files_of_gpu_queues_alone() -> None:
    assert records(gres_conf(dev(train(), cpu()))) == [
        {"AutoDetect": "off"},
        {"NodeName": "train-[1-4]", "Name": "gpu", "Type": "a100", "File": "/dev/nvidia[0-7]"},
    ]


def test_gres_of_neuron_devices_has_their_own_name() -> None:
    assert records(gres_conf(dev(trn()))) == [
        {"AutoDetect": "off"},
        {"NodeName": "train-[1-4]", "Name": "neuron", "Type": "trainium2", "File": "/dev/neuron[0-15]"},
    ]


def test_one_device_alone_is_no_range() -> None:
    assert records(gres_conf(dev(trn(1))))[1]["File"] == "/dev/neuron0"


def test_nodes_name_their_neuron_devices() -> None:
    assert records(node_line(trn()))[0]["Gres"] == "neuron:trainium2:16"


def test_memory_of_a_queue_with_neuron_devices_is_given_by_cpu() -> None:
    given = {key: value for key, value in records(partition_line(trn(), NEW))[0].items() if key.startswith("Def")}
    assert given == {"Default": "YES", "DefMemPerCPU": "11673"}


def test_every_kind_of_accelerator_is_a_type_of_resource() -> None:
    assert settings(slurm_conf(wide("26.05")))["GresTypes"] == "gpu,neuron"


def test_a_queues_weight_is_its_nodes() -> None:
    assert records(node_line(replace(cpu(), weight=7)))[0]["Weight"] == "7"


def test_only_named_accounts_may_use_a_queue_that_names_some() -> None:
    assert records(partition_line(replace(cpu(), accounts=("ml", "bio")), NEW))[0]["AllowAccounts"] == "ml,bio"


@pytest.mark.parametrize(
    ("release", "form"), [((22, 5), ("EXCLUSIVE", None)), ((25, 11), ("EXCLUSIVE", None)), ((26, 5), (None, "NODE"))]
)
def test_whole_nodes_are_declared_in_the_form_of_the_release(
    release: Release, form: tuple[str | None, str | None]
) -> None:
    found = records(partition_line(replace(cpu(), exclusive=True), release))[0]
    assert (found.get("OverSubscribe"), found.get("Exclusive")) == form


def mixed(head: str, nodes: str) -> ClusterPlan:
    """A cluster whose head has one Slurm, and one of its two queues an older one."""
    return replace(dev(replace(cpu(), exclusive=True), replace(train(), image=image(nodes))), image=image(head))


def test_whole_nodes_are_declared_in_the_form_of_the_oldest_node() -> None:
    (cpus, _) = [line for line in records(slurm_conf(mixed("26.05", "25.11"))) if "PartitionName" in line]
    assert (cpus.get("OverSubscribe"), cpus.get("Exclusive")) == ("EXCLUSIVE", None)


@pytest.mark.parametrize("head", [release_text(release) for release in RELEASES if release >= (24, 11)])
@pytest.mark.parametrize("back", [1, 2, 3])
def test_the_oldest_nodes_of_a_head_know_every_key_that_it_writes(head: str, back: int) -> None:
    """A slurmd exits on an unknown key; a word that it does not know it ignores."""
    nodes = RELEASES[RELEASES.index(parse_release(head)) - back]
    text = slurm_conf(mixed(head, release_text(nodes)))
    keys = {(ConfSection.CONF, key) for key in settings(text)}
    keys |= {(ConfSection.PARTITION, key) for line in records(text) if "PartitionName" in line for key in line}
    keys |= {(ConfSection.NODE, key) for line in records(text) if "NodeName" in line for key in line}
    assert [key for section, key in sorted(keys) if unsupported_settings(nodes, section, key)] == []


@pytest.mark.parametrize(
    ("nodes", "expected"), [("22.05", ("65533", "NoAddrCache")), ("23.11", (None, None))], ids=["old", "as the head"]
)
def test_messages_reach_nodes_that_are_older_than_their_head(nodes: str, expected: tuple[str | None, ...]) -> None:
    """Before 23.11 nodes do not know each other's addresses and cannot forward messages."""
    found = settings(slurm_conf(mixed("23.11", nodes)))
    assert (found.get("TreeWidth"), found.get("CommunicationParameters")) == expected


def test_a_queues_own_keys_stand_in_its_partition() -> None:
    assert records(partition_line(replace(cpu(), extra={"PriorityTier": "3"}), NEW))[0]["PriorityTier"] == "3"


def test_a_queues_own_memory_for_a_node_replaces_the_default() -> None:
    own = replace(cpu(), extra={"DefMemPerNode": "1000"})
    given = {key: value for key, value in records(partition_line(own, NEW))[0].items() if key.startswith("DefMem")}
    assert given == {"DefMemPerNode": "1000"}


def test_a_gpu_queues_own_memory_for_a_node_leaves_it_the_cpus_by_gpu() -> None:
    own = replace(train(), extra={"DefMemPerNode": "1000"})
    given = {key: value for key, value in records(partition_line(own, NEW))[0].items() if key.startswith("Def")}
    assert given == {"Default": "YES", "DefCpuPerGPU": "12", "DefMemPerNode": "1000"}


def test_a_node_with_fewer_cpus_than_gpus_gives_each_one() -> None:
    few = replace(train().node, sockets=1, cores_per_socket=2, gres=GresPlan(type="t4", count=8))
    assert records(partition_line(replace(train(), node=few), NEW))[0]["DefCpuPerGPU"] == "1"


def test_an_own_images_slurm_is_the_one_that_files_are_written_for() -> None:
    image = plan_image(ImageSpec(id="ami-0123456789abcdef0", slurm="25.11"), None)
    assert settings(slurm_conf(replace(dev(), image=image)))["CommunicationParameters"] == "disable_http"


def test_own_keys_of_the_cluster_stand_in_slurm_conf() -> None:
    assert settings(slurm_conf(wide("26.05")))["MaxJobCount"] == "20000"


def test_an_own_key_replaces_the_default_of_corrals() -> None:
    written = [line for line in slurm_conf(wide("26.05")).splitlines() if line.startswith("MailProg")]
    assert written == ["MailProg=/bin/true"]


@pytest.mark.parametrize(
    ("release", "nodes", "width"),
    [
        ((22, 5), 4, 65533),
        ((23, 2), 27500, 65533),
        ((23, 11), 4368, None),
        ((23, 11), 4369, 17),
        ((24, 11), 27500, 30),
    ],
)
def test_messages_reach_every_node_within_three_hops(release: Release, nodes: int, width: int | None) -> None:
    assert tree_width(release, nodes) == width


@each_release
def test_static_nodes_are_named_alike_in_every_release(release: Release) -> None:
    plan = dev(replace(train(), min_nodes=2), cpu(), slurm_version=release_text(release))
    assert settings(slurm_conf(plan))["SuspendExcNodes"] == "train-[1-2],cpu-1"


@each_release
def test_every_key_that_is_written_is_owned(release: Release) -> None:
    plan = dev(replace(train(), min_nodes=2), slurm_version=release_text(release))
    lines = f"{slurm_conf(plan)}\n{host_conf(HostFacts(munge_socket='/m', poses=True))}".splitlines()
    keys = {line.split("=")[0] for line in lines if "=" in line and not line.startswith("#")}
    assert keys - owned_keys() == {
        "JobRequeue",
        "MailProg",
        "PropagateResourceLimitsExcept",
        "SchedulerParameters",
        "TaskProlog",
    }


def test_owned_keys_are_these() -> None:
    assert sorted(owned_keys()) == [
        "AccountingStorageEnforce",
        "AccountingStorageHost",
        "AccountingStorageTRES",
        "AccountingStorageType",
        "AuthInfo",
        "BatchStartTimeout",
        "ClusterName",
        "CommunicationParameters",
        "Epilog",
        "EpilogSlurmctld",
        "GresTypes",
        "HealthCheckInterval",
        "HealthCheckNodeState",
        "HealthCheckProgram",
        "Include",
        "JobAcctGatherType",
        "LaunchParameters",
        "MessageTimeout",
        "NodeName",
        "PartitionName",
        "PrivateData",
        "ProctrackType",
        "Prolog",
        "PrologFlags",
        "PrologSlurmctld",
        "ResumeFailProgram",
        "ResumeProgram",
        "ResumeRate",
        "ResumeTimeout",
        "ReturnToService",
        "SelectType",
        "SelectTypeParameters",
        "SlurmUser",
        "SlurmctldHost",
        "SlurmctldLogFile",
        "SlurmctldParameters",
        "SlurmctldPidFile",
        "SlurmctldPort",
        "SlurmdLogFile",
        "SlurmdParameters",
        "SlurmdPidFile",
        "SlurmdPort",
        "SlurmdSpoolDir",
        "SlurmdTimeout",
        "SlurmdUser",
        "StateSaveLocation",
        "SuspendExcNodes",
        "SuspendProgram",
        "SuspendRate",
        "SuspendTime",
        "SuspendTimeout",
        "TaskPlugin",
        "TreeWidth",
    ]


def test_a_spec_calls_written_what_is_written_and_nothing_else() -> None:
    assert WRITTEN[ConfSection.CONF] == owned_keys()


def test_a_spec_calls_written_what_a_partition_line_has_and_nothing_else() -> None:
    lines = [
        partition_line(queue, release) for queue in (replace(cpu(), accounts=("ml",)), train()) for release in RELEASES
    ]
    assert {key for line in lines for key in records(line)[0]} == WRITTEN[ConfSection.PARTITION]


def test_a_queue_of_whole_nodes_may_also_have_keys_of_sharing() -> None:
    lines = [partition_line(replace(cpu(), exclusive=True), release) for release in RELEASES]
    more = {key for line in lines for key in records(line)[0]} - WRITTEN[ConfSection.PARTITION]
    assert (more, SHARING) == ({"OverSubscribe", "Exclusive"}, {"OverSubscribe", "Exclusive", "Shared"})


@pytest.mark.parametrize("section", WRITTEN, ids=lambda section: section.name.lower())
def test_no_key_that_is_written_is_called_kept(section: ConfSection) -> None:
    assert {key.lower() for key in WRITTEN[section]} & {key.lower() for key in RESERVED[section]} == set()


def test_jobs_are_fenced_into_their_devices_cores_and_memory() -> None:
    constrained = {key: value for key, value in settings(cgroup_conf(dev())).items() if key.startswith("Constrain")}
    assert constrained == {"ConstrainDevices": "YES", "ConstrainCores": "YES", "ConstrainRAMSpace": "YES"}


@pytest.mark.parametrize(("release", "timeout"), [("23.11", None), ("24.05", "30000"), ("26.05", "30000")])
def test_slurmd_waits_for_systemd_if_it_can(release: str, timeout: str | None) -> None:
    assert settings(cgroup_conf(dev(slurm_version=release))).get("SystemdTimeout") == timeout


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
        "TaskPlugin": "task/cgroup,task/affinity",
        "PrologFlags": "Alloc,Contain",
        "JobAcctGatherType": "jobacct_gather/cgroup",
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
        "TaskPlugin": None,
        "SlurmdParameters": "config_overrides",
        "AuthInfo": "socket=/tmp/m.sock",
        "SlurmctldPort": "7001",
        "PrologFlags": "Alloc",
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


def test_own_keys_that_this_slurm_lacks_are_refused_all_at_once() -> None:
    queue = replace(train(), extra={"ExclusiveTopo": "YES"})
    plan = replace(dev(queue), extra_slurm={"PrologTimeout": "60", "MaxJobCount": "5000"})
    with pytest.raises(ReleaseError) as refused:
        check_own_keys(plan)
    assert str(refused.value).split("\n") == [
        "slurm.extra: PrologTimeout is for Slurm from 25.05, this is 23.11",
        "queue train, extra: ExclusiveTopo is for Slurm from 24.05, this is 23.11",
    ]


@pytest.mark.parametrize(
    ("section", "others"),
    [(ConfSection.CONF, {"Include"}), (ConfSection.PARTITION, {"PartitionName"})],
    ids=["conf", "partition"],
)
def test_every_key_that_a_spec_refuses_as_corrals_is_one_of_slurm(section: ConfSection, others: set[str]) -> None:
    assert {key for key in (*WRITTEN[section], *RESERVED[section]) if key.lower() not in slurm_keys(section)} == others


@pytest.mark.parametrize(
    ("access", "hidden"),
    [
        (AccessPlan(), ""),
        (AccessPlan(users=(UserPlan(name="ada", uid=2001),)), "PrivateData=jobs,usage"),
        (AccessPlan(users=(UserPlan(name="ada", uid=2001),), shows_jobs=True), ""),
    ],
)
def test_people_see_their_own_jobs_in_squeue(access: AccessPlan, hidden: str) -> None:
    lines = slurm_conf(replace(dev(), access=access)).splitlines()
    assert [line for line in lines if line.startswith("PrivateData=")] == [hidden] * bool(hidden)


@pytest.mark.parametrize(("shows_jobs", "lines"), [(False, ["PrivateData=jobs,usage"]), (True, [])])
def test_slurmdbd_hides_the_jobs_of_others_like_slurmctld(shows_jobs: bool, lines: list[str]) -> None:
    access = AccessPlan(users=(UserPlan(name="ada", uid=2001),), shows_jobs=shows_jobs)
    text = cluster_files(replace(dev(), access=access))["accounting/slurmdbd.conf"]
    assert [line for line in text.splitlines() if line.startswith("PrivateData")] == lines


@pytest.mark.parametrize(("release", "lines"), [("25.05", []), ("25.11", ["DisableArchiveCommands=YES"])])
def test_slurmdbd_runs_no_archive_script_where_slurm_can_refuse_it(release: str, lines: list[str]) -> None:
    text = cluster_files(dev(slurm_version=release))["accounting/slurmdbd.conf"]
    assert [line for line in text.splitlines() if line.startswith("DisableArchive")] == lines


def test_accounts_order_waiting_jobs_by_qos_fair_share_and_age() -> None:
    text = cluster_files(replace(dev(), accounts=AccountsPlan(enforced=True)))["slurm/slurm.conf"]
    assert [line for line in text.splitlines() if line.startswith(("Priority", "AccountingStorageEnforce"))] == [
        "AccountingStorageEnforce=associations,limits,qos",
        "PriorityType=priority/multifactor",
        "PriorityWeightQOS=1000000",
        "PriorityWeightFairshare=100000",
        "PriorityWeightAge=1000",
    ]


def test_a_budget_starts_only_jobs_that_fit_into_the_rest() -> None:
    accounts = AccountsPlan(qos=(QosPlan(name="paper", gpu_hours=5),), enforced=True)
    text = cluster_files(replace(dev(), accounts=accounts))["slurm/slurm.conf"]
    assert "AccountingStorageEnforce=associations,limits,qos,safe\n" in text


def test_a_users_own_weight_replaces_that_of_accounts() -> None:
    plan = replace(dev(), accounts=AccountsPlan(enforced=True), extra_slurm={"PriorityWeightAge": "7"})
    lines = cluster_files(plan)["slurm/slurm.conf"].splitlines()
    assert [line for line in lines if line.startswith("PriorityWeightAge")] == ["PriorityWeightAge=7"]
