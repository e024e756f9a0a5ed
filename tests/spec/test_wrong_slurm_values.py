"""Values of slurm.conf's keys that end slurmctld: every one is refused, word for word; those that Slurm takes are not.

tests/slurmctld tries them in a real slurmctld.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from specs import CLUSTER, edited, project

from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.stack_files import read_environment

CONF = "slurm.extra."
PARTITION = "queues[1].extra."
MINUTES = "write minutes, or days-hours:minutes:seconds as in 1-12:00:00"
MODES = "expected one of OFF, CANCEL, GANG, PRIORITY, REQUEUE, SUSPEND, WITHIN"
LEVELS = "expected one of quiet, fatal, error, info, verbose, debug, debug2, debug3, debug4, debug5"
SHARES = "NO, YES, YES:4, FORCE or FORCE:4"
Extra = Mapping[str, str | int]


def errors_of(
    tmp_path: Path, *, conf: Extra | None = None, partition: Extra | None = None, image: str = "", queue: str = ""
) -> list[str]:
    """The errors of a spec with these own keys, without the file name."""
    edits = [("    tags: {project: llm}\n", f"    slurm:\n      extra: {flow(conf)}\n    tags: {{project: llm}}\n")]
    edits += [("nodes: {max: 8}", f"nodes: {{max: 8}}{queue}\n        extra: {flow(partition)}")]
    edits += [("profile: ubuntu-24.04-dlami", f"profile: ubuntu-24.04-dlami{image}")]
    try:
        read_environment(project(tmp_path, cluster=edited(CLUSTER, edits)), "dev")
    except SpecErrors as errors:
        return [f"{error.path}: {error.text}" for error in errors.errors]
    return []


def flow(extra: Extra | None) -> str:
    """As it is written on one line of YAML."""
    return json.dumps(dict(extra or {}))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("MaxJobCount", "abc", "'abc' is not a whole number - MaxJobCount takes 1 to 4294967295"),
        ("MaxJobCount", "1.5", "'1.5' is not a whole number - MaxJobCount takes 1 to 4294967295"),
        ("MaxJobCount", 0, "0 is too small - MaxJobCount takes 1 to 4294967295"),
        ("maxjobcount", -4, "-4 is too small - MaxJobCount takes 1 to 4294967295"),
        ("MaxArraySize", 99999999999, "99999999999 is too large - MaxArraySize takes 0 to 4000001"),
        ("MaxArraySize", 4000002, "4000002 is too large - MaxArraySize takes 0 to 4000001"),
        ("MaxArraySize", "INFINITE", "INFINITE is too large - MaxArraySize takes 0 to 4000001"),
        ("DebugFlags", "gres,Bakfill", "invalid value 'Bakfill'; did you mean 'Backfill'?"),
        (
            "DebugFlags",
            "Gres,audittls",
            "'AuditTLS' is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - remove it",
        ),
        ("KillWait", -4, "-4 is too small - KillWait takes 0 to 65535"),
        ("KillWait", "5K", "'5K' is not a whole number - KillWait takes 0 to 65535"),
        ("KillWait", "30s", "'30s' is not a whole number - KillWait takes 0 to 65535"),
        ("MaxMemPerCPU", "4G", "'4G' is not a whole number - MaxMemPerCPU takes 0 to 18446744073709551615"),
        ("MaxDBDMsgs", 5, "5 is too small - MaxDBDMsgs takes 10000 to 4294967295"),
        ("PropagatePrioProcess", 3, "3 is too large - PropagatePrioProcess takes 0 to 2"),
        ("DisableRootJobs", "on", "'on' is neither yes nor no - DisableRootJobs takes YES or NO"),
        ("SlurmctldDebug", "zzz", f"invalid value 'zzz'; {LEVELS}"),
        ("SlurmdDebug", "debug6", "invalid value 'debug6'; did you mean 'debug'?"),
        (
            "EnforcePartLimits",
            "some",
            "invalid value 'some'; expected one of YES, NO, ALL, ANY, UP, TRUE, 1, DOWN, FALSE, 0",
        ),
        ("PreemptMode", "checkpoint", f"invalid value 'checkpoint'; {MODES}"),
        ("PreemptMode", "REQEUE", "invalid value 'REQEUE'; did you mean 'REQUEUE'?"),
        ("PriorityUsageResetPeriod", "month", "invalid value 'month'; did you mean 'MONTHLY'?"),
        (
            "PropagateResourceLimitsExcept",
            "memlock",
            "invalid value 'memlock'; did you mean 'MEMLOCK'?",
        ),
        (
            "PropagateResourceLimitsExcept",
            "ALL,CORE",
            "invalid value 'ALL,CORE'; ALL cannot be combined with others - use ALL, or remove it",
        ),
        (
            "TaskPluginParam",
            "cores,threads",
            "invalid value 'cores,threads'; cores and threads exclude each other - keep one",
        ),
        ("TaskPluginParam", "autobind", "invalid value 'autobind'; did you mean 'Autobind=None'?"),
        ("PriorityMaxAge", "7 days", "'7 days' is not a slurm.conf value - use no spaces, quotes or #"),
        ("PriorityMaxAge", "7d", f"'7d' is not a Slurm time - {MINUTES}"),
        ("PriorityMaxAge", 99999999999, "99999999999 is too long - PriorityMaxAge takes 35791393 minutes or less"),
        ("PriorityCalcPeriod", 0, "0 is too short - PriorityCalcPeriod takes a minute or more"),
        ("PriorityCalcPeriod", "INFINITE", f"'INFINITE' is not a Slurm time - {MINUTES}"),
        ("PreemptExemptTime", "1h", f"'1h' is not a Slurm time - {MINUTES}"),
        ("BcastExclude", "/usr,lib", "invalid value 'lib'; BcastExclude takes paths that begin with /, or none"),
        (
            "Licenses",
            "matlab:four",
            "invalid value 'matlab:four'; Licenses takes names with their counts, as in matlab:4",
        ),
        (
            "SchedulerParameters",
            "bf_continue,max_script_size=999999999",
            "max_script_size=999999999 is too large - use 536870912 or less",
        ),
        (
            "SchedulerType",
            "sched/backfil",
            "'sched/backfil' is not a Slurm plugin - did you mean 'sched/backfill'?",
        ),
        (
            "PriorityType",
            "multifactor",
            "'multifactor' is not a Slurm plugin - did you mean 'priority/multifactor'?",
        ),
        (
            "JobSubmitPlugins",
            "throttle,loging",
            "'loging' is not a Slurm plugin - did you mean 'logging'?",
        ),
        (
            "FirstJobId",
            99999999,
            "leaves no job ids, from 99999999 to 67043328: slurmctld exits - use a smaller FirstJobId",
        ),
        ("MaxNodeCount", 4, "4 is too small: the queues have 12 nodes in total - use 12 or more"),
        (
            "SlurmSchedLogLevel",
            1,
            "requires SlurmSchedLogFile, without which slurmctld exits - set it too, such as /var/log/slurm/sched.log",
        ),
        (
            "MCSParameters",
            "enforced",
            "requires MCSPlugin, without which slurmctld exits - set it too, such as mcs/user",
        ),
        (
            "MCSPlugin",
            "mcs/group",
            "'mcs/group' requires MCSParameters, without which slurmctld exits - set groups separated by |",
        ),
        (
            "PriorityDecayHalfLife",
            0,
            "0 requires PriorityUsageResetPeriod, without which slurmctld exits - set it too, such as MONTHLY",
        ),
        (
            "JobAcctGatherParams",
            "UsePss,NoShared",
            "'UsePss,NoShared' combines UsePss and NoShared, on which slurmctld exits - keep one",
        ),
        (
            "JobAcctGatherParams",
            "OverMemoryKill",
            "OverMemoryKill conflicts with TaskPlugin=task/cgroup: slurmctld exits - remove it",
        ),
        (
            "JobCompType",
            "jobcomp/script",
            "'jobcomp/script' requires JobCompLoc, without which slurmctld 24.11 and later exits - set it to a"
            + " program in your image",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str | int) else "",
)
def test_a_value_of_slurm_conf_that_ends_slurmctld_is_refused(
    key: str, value: str | int, message: str, tmp_path: Path
) -> None:
    assert errors_of(tmp_path, conf={key: value}) == [f"{CONF}{key}: {message}"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("PriorityTier", "high", "'high' is not a whole number - PriorityTier takes 0 to 65535"),
        ("PriorityTier", 65536, "65536 is too large - PriorityTier takes 0 to 65535"),
        ("MaxNodes", "x", "'x' is not a whole number - MaxNodes takes 0 to 4294967295"),
        ("LLN", "q", "'q' is neither yes nor no - LLN takes YES or NO"),
        ("PreemptMode", "zzz", f"invalid value 'zzz'; {MODES}"),
        ("PreemptMode", "OFF,CANCEL", "invalid value 'OFF,CANCEL'; OFF and CANCEL exclude each other - keep one"),
        (
            "PreemptMode",
            "REQUEUE,PRIORITY",
            "'PRIORITY' is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - remove it",
        ),
        ("GraceTime", "y", "'y' is not a whole number - GraceTime takes 0 to 4294967295"),
        ("DefMemPerNode", "1G", "'1G' is not a whole number - DefMemPerNode takes 0 to 18446744073709551615"),
        ("DefaultTime", "1h", f"'1h' is not a Slurm time - {MINUTES}"),
        ("DefaultTime", 35791394, "35791394 is too long - DefaultTime takes 35791393 minutes or less"),
        ("OverSubscribe", "FORCED", f"invalid value 'FORCED'; OverSubscribe takes {SHARES}"),
        ("OverSubscribe", "YES:1", f"invalid value 'YES:1'; OverSubscribe takes {SHARES}"),
        ("OverSubscribe", "YES,NO", f"invalid value 'YES,NO'; OverSubscribe takes {SHARES}"),
        ("Shared", "zzz", f"invalid value 'zzz'; Shared takes {SHARES}"),
        (
            "OverSubscribe",
            "Exclusive",
            "'Exclusive' has its own field - set exclusive: true instead",
        ),
        ("SelectTypeParameters", "CR_Memory", "invalid value 'CR_Memory'; did you mean 'CR_Core_Memory'?"),
        (
            "TRESBillingWeights",
            "CPU=1.0,GRES/gpu=2.0",
            "invalid value 'GRES/gpu=2.0'; TRESBillingWeights takes CPU=1.0 or Mem=0.25G; weights of"
            + " GRES need slurmdbd",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str | int) else "",
)
def test_a_value_of_a_partition_that_ends_slurmctld_is_refused(
    key: str, value: str | int, message: str, tmp_path: Path
) -> None:
    assert errors_of(tmp_path, partition={key: value}) == [f"{PARTITION}{key}: {message}"]


@pytest.mark.parametrize(
    ("queue", "key", "value", "message"),
    [
        (
            "exclusive: true",
            "oversubscribe",
            "YES",
            "'YES' conflicts with the queue's exclusive: true, which allocates whole nodes - keep one",
        ),
        (
            "exclusive: true",
            "Shared",
            "NO",
            "'NO' conflicts with the queue's exclusive: true, which allocates whole nodes - keep one",
        ),
        (
            "time_limit: 12h",
            "DefaultTime",
            "12:00:01",
            "12:00:01 is longer than the queue's time_limit 12h: Slurm ignores it - use 12h or less",
        ),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_a_value_that_contradicts_the_queue_is_refused(
    queue: str, key: str, value: str, message: str, tmp_path: Path
) -> None:
    assert errors_of(tmp_path, partition={key: value}, queue=f"\n        {queue}") == [f"{PARTITION}{key}: {message}"]


def test_a_default_time_up_to_the_queues_limit_is_not_refused(tmp_path: Path) -> None:
    assert errors_of(tmp_path, partition={"DefaultTime": "12:00:00"}, queue="\n        time_limit: 12h") == []


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("PluginDir", "installs Slurm's files itself"),
        ("TopologyPlugin", "configures the network topology itself"),
        ("SlurmctldAddr", "sets the head in SlurmctldHost"),
        ("AccountingStoragePort", "sets up accounting as a whole"),
        ("NodeSet", "writes these lines itself"),
    ],
)
def test_a_key_that_is_kept_for_corral_is_refused_with_the_reason(key: str, why: str, tmp_path: Path) -> None:
    assert errors_of(tmp_path, conf={key: "x"}) == [f"{CONF}{key}: is reserved: corral {why} - remove it"]


def test_a_key_that_is_kept_in_a_partition_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert errors_of(tmp_path, partition={"ResumeTimeout": 5}) == [
        f"{PARTITION}ResumeTimeout: is reserved: corral uses the same timeouts for all queues" + " - remove it"
    ]


def test_a_key_in_two_cases_is_refused_in_both_locations(tmp_path: Path) -> None:
    conf, partition = {"MaxJobCount": 5, "maxjobcount": 6}, {"PriorityTier": 3, "PRIORITYTIER": 3}
    assert errors_of(tmp_path, conf=conf, partition=partition) == [
        "queues[1].extra.PRIORITYTIER: repeats PriorityTier; Slurm ignores the case of keys - keep one",
        "slurm.extra.maxjobcount: repeats MaxJobCount; Slurm ignores the case of keys - keep one",
    ]


def test_all_wrong_values_are_reported_at_once(tmp_path: Path) -> None:
    assert errors_of(tmp_path, conf={"KillWait": "x", "WaitTime": -1}, partition={"LLN": 2, "MaxNodes": "y"}) == [
        "queues[1].extra.LLN: '2' is neither yes nor no - LLN takes YES or NO",
        "queues[1].extra.MaxNodes: 'y' is not a whole number - MaxNodes takes 0 to 4294967295",
        "slurm.extra.KillWait: 'x' is not a whole number - KillWait takes 0 to 65535",
        "slurm.extra.WaitTime: -1 is too small - WaitTime takes 0 to 65535",
    ]


def test_a_wrong_way_to_preempt_is_reported_once(tmp_path: Path) -> None:
    found = errors_of(tmp_path, conf={"PreemptType": "preempt/partition_prio", "PreemptMode": "zzz"})
    assert found == [f"slurm.extra.PreemptMode: invalid value 'zzz'; {MODES}"]


@pytest.mark.parametrize(
    "conf",
    [
        {"MaxJobCount": "UNLIMITED", "MaxArraySize": 4000001, "KillWait": 65535, "PriorityWeightAge": "64K"},
        {"PriorityMaxAge": "14-0", "PriorityCalcPeriod": "0:30", "PreemptExemptTime": "-1", "DisableRootJobs": "up"},
        {"PreemptType": "preempt/partition_prio", "PreemptMode": "suspend,gang", "SlurmctldDebug": 7},
        {"PriorityDecayHalfLife": 0, "PriorityUsageResetPeriod": "monthly", "Licenses": "matlab:4,ansys"},
        {"MCSPlugin": "mcs/group", "MCSParameters": "ondemand,ml|physics", "BcastExclude": "None"},
        {"SlurmSchedLogLevel": 1, "SlurmSchedLogFile": "/var/log/slurm/sched.log", "MaxNodeCount": 12},
        {"SchedulerParameters": "bf_continue,bf_window=zzz", "MailDomain": "zzz"},
        {"DebugFlags": "gres,CPU_Bind", "TaskProlog": "/opt/prolog", "RebootProgram": "/sbin/reboot"},
        {"MpiDefault": "pmix", "TaskEpilog": "/opt/epilog"},
        {"FirstJobId": 67043329, "MaxJobId": 67108863, "TaskPluginParam": "Verbose,autobind=cores"},
    ],
    ids=" ".join,
)
def test_what_slurm_takes_is_not_refused(conf: Extra, tmp_path: Path) -> None:
    assert errors_of(tmp_path, conf=conf) == []


def test_what_slurm_takes_of_a_partition_is_not_refused(tmp_path: Path) -> None:
    taken = {"PriorityTier": 65535, "MaxNodes": "INFINITE", "PreemptMode": "within,cancel"}
    more = {"DefMemPerNode": "1000K", "GraceTime": "0x10", "LLN": "true", "TRESBillingWeights": "CPU=1.0,Mem=0.25G"}
    freed = {"DefaultTime": "1-12:00:00", "OverSubscribe": "force:4"}
    assert errors_of(tmp_path, partition=taken | more | freed) == []


def test_an_image_of_ones_own_may_have_plugins_of_its_own(tmp_path: Path) -> None:
    own = "\n      id: ami-0123456789abcdef0"
    assert errors_of(tmp_path, conf={"PriorityType": "priority/mine", "JobSubmitPlugins": "mine"}, image=own) == []


@pytest.mark.parametrize(
    ("slurm", "conf", "expected"),
    [
        ("23.11", {"JobCompType": "jobcomp/mine"}, []),
        (
            "24.11",
            {"PriorityWeightTRES": "GRES/gpu=5"},
            [
                "invalid value 'GRES/gpu=5'; PriorityWeightTRES takes CPU=1000 or Mem=2000; weights of GRES"
                + " need slurmdbd"
            ],
        ),
        ("23.11", {"PriorityWeightTRES": "GRES/gpu=5"}, []),
        (
            "23.11",
            {"PriorityWeightTRES": "GRES/gpu=5", "PriorityType": "priority/multifactor"},
            [
                "invalid value 'GRES/gpu=5'; PriorityWeightTRES takes CPU=1000 or Mem=2000; weights of GRES"
                + " need slurmdbd"
            ],
        ),
        ("24.11", {"MaxNodeCount": 65537}, ["65537 is too large - MaxNodeCount takes 0 to 65536"]),
        ("23.11", {"MaxNodeCount": 65537}, []),
        (
            "24.11",
            {"PriorityFlags": "NO_FAIR_TREE"},
            ["'NO_FAIR_TREE' crashes slurmctld 24.11 without slurmdbd - remove it"],
        ),
        ("26.05", {"PriorityFlags": "NO_FAIR_TREE"}, []),
        (
            "24.11",
            {"DebugFlags": "TimeCray"},
            ["'TimeCray' is for Slurm before 24.11 (removed), image 'ami-0123456789abcdef0' has 24.11 - remove it"],
        ),
        ("26.05", {"DebugFlags": "TLS,AuditTLS"}, []),
        (
            "26.05",
            {"PowerAction": "x"},
            [
                "invalid value 'x'; PowerAction takes several settings with blanks between them, which cannot be"
                + " written here"
            ],
        ),
    ],
)
def test_what_only_newer_releases_check_is_refused_for_them_alone(
    slurm: str, conf: Extra, expected: list[str], tmp_path: Path
) -> None:
    own = f"\n      id: ami-0123456789abcdef0\n      slurm: {slurm}"
    found = errors_of(tmp_path, conf=conf, image=own)
    assert [line.partition(": ")[2] for line in found] == expected
