"""Values of slurm.conf's keys that end slurmctld: every one is refused, word for word; those that Slurm takes are not.

tests/life tries them in a real slurmctld.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from specs import CLUSTER, edited, project

from corral.spec.errors import SpecErrors
from corral.spec.files import read_environment

CONF = "slurm.extra."
PARTITION = "queues[1].extra."
MINUTES = "write minutes, or days-hours:minutes:seconds as in 1-12:00:00"
MODES = "known are OFF, CANCEL, GANG, PRIORITY, REQUEUE, SUSPEND, WITHIN"
LEVELS = "known are quiet, fatal, error, info, verbose, debug, debug2, debug3, debug4, debug5"
SHARES = "NO, YES, YES:4, FORCE or FORCE:4"
Extra = Mapping[str, str | int]


def said(
    tmp_path: Path, *, conf: Extra | None = None, partition: Extra | None = None, image: str = "", queue: str = ""
) -> list[str]:
    """What is said of a spec with these own keys, without the file's name."""
    edits = [("    tags: {project: llm}\n", f"    slurm:\n      extra: {flow(conf)}\n    tags: {{project: llm}}\n")]
    edits += [("nodes: {max: 8}", f"nodes: {{max: 8}}{queue}\n        extra: {flow(partition)}")]
    edits += [("profile: ubuntu-24.04-dlami", f"profile: ubuntu-24.04-dlami{image}")]
    try:
        read_environment(project(tmp_path, cluster=edited(CLUSTER, edits)), "dev")
    except SpecErrors as errors:
        return [f"{error.path}: {error.message}" for error in errors.errors]
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
        ("DebugFlags", "gres,Bakfill", "'Bakfill' is not possible - did you mean 'Backfill'?"),
        (
            "DebugFlags",
            "Gres,audittls",
            "'AuditTLS' is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
        ("KillWait", -4, "-4 is too small - KillWait takes 0 to 65535"),
        ("KillWait", "5K", "'5K' is not a whole number - KillWait takes 0 to 65535"),
        ("KillWait", "30s", "'30s' is not a whole number - KillWait takes 0 to 65535"),
        ("MaxMemPerCPU", "4G", "'4G' is not a whole number - MaxMemPerCPU takes 0 to 18446744073709551615"),
        ("MaxDBDMsgs", 5, "5 is too small - MaxDBDMsgs takes 10000 to 4294967295"),
        ("PropagatePrioProcess", 3, "3 is too large - PropagatePrioProcess takes 0 to 2"),
        ("DisableRootJobs", "on", "'on' is neither yes nor no - DisableRootJobs takes YES or NO"),
        ("SlurmctldDebug", "zzz", f"'zzz' is not possible - {LEVELS}"),
        ("SlurmdDebug", "debug6", "'debug6' is not possible - did you mean 'debug'?"),
        (
            "EnforcePartLimits",
            "some",
            "'some' is not possible - known are YES, NO, ALL, ANY, UP, TRUE, 1, DOWN, FALSE, 0",
        ),
        ("PreemptMode", "checkpoint", f"'checkpoint' is not possible - {MODES}"),
        ("PreemptMode", "REQEUE", "'REQEUE' is not possible - did you mean 'REQUEUE'?"),
        ("PriorityUsageResetPeriod", "month", "'month' is not possible - did you mean 'MONTHLY'?"),
        (
            "PropagateResourceLimitsExcept",
            "memlock",
            "'memlock' is not possible - did you mean 'MEMLOCK'?",
        ),
        (
            "PropagateResourceLimitsExcept",
            "ALL,CORE",
            "'ALL,CORE' is not possible, for ALL stands alone - use ALL, or leave it out",
        ),
        (
            "TaskPluginParam",
            "cores,threads",
            "'cores,threads' is not possible, for cores and threads exclude each other - keep one",
        ),
        ("TaskPluginParam", "autobind", "'autobind' is not possible - did you mean 'Autobind=None'?"),
        ("PriorityMaxAge", "7 days", "'7 days' is not a value of slurm.conf - no spaces, quotes or # in it"),
        ("PriorityMaxAge", "7d", f"'7d' is not a time of Slurm's - {MINUTES}"),
        ("PriorityMaxAge", 99999999999, "99999999999 is too long - PriorityMaxAge takes 35791393 minutes or less"),
        ("PriorityCalcPeriod", 0, "0 is too short - PriorityCalcPeriod takes a minute or more"),
        ("PriorityCalcPeriod", "INFINITE", f"'INFINITE' is not a time of Slurm's - {MINUTES}"),
        ("PreemptExemptTime", "1h", f"'1h' is not a time of Slurm's - {MINUTES}"),
        ("BcastExclude", "/usr,lib", "'lib' is not possible - BcastExclude takes paths that begin with /, or none"),
        (
            "Licenses",
            "matlab:four",
            "'matlab:four' is not possible - Licenses takes names with their counts, as in matlab:4",
        ),
        (
            "SchedulerParameters",
            "bf_continue,max_script_size=999999999",
            "max_script_size=999999999 is too large - use 536870912 or less",
        ),
        (
            "SchedulerType",
            "sched/backfil",
            "'sched/backfil' is not a plugin of Slurm's - did you mean 'sched/backfill'?",
        ),
        (
            "PriorityType",
            "multifactor",
            "'multifactor' is not a plugin of Slurm's - did you mean 'priority/multifactor'?",
        ),
        (
            "JobSubmitPlugins",
            "throttle,loging",
            "'loging' is not a plugin of Slurm's - did you mean 'logging'?",
        ),
        (
            "FirstJobId",
            99999999,
            "job ids from 99999999 to 67043328 are none: slurmctld ends - use a smaller FirstJobId",
        ),
        ("MaxNodeCount", 4, "4 is too small: the queues have 12 nodes together - use that or more"),
        (
            "SlurmSchedLogLevel",
            1,
            "without a SlurmSchedLogFile: slurmctld ends - set that, too, such as /var/log/slurm/sched.log",
        ),
        ("MCSParameters", "enforced", "without an MCSPlugin: slurmctld ends - set that, too, such as mcs/user"),
        (
            "MCSPlugin",
            "mcs/group",
            "'mcs/group' without MCSParameters: slurmctld ends - set that, too: groups with | between them",
        ),
        (
            "PriorityDecayHalfLife",
            0,
            "0 without a PriorityUsageResetPeriod: slurmctld ends - set that, too, such as MONTHLY",
        ),
        (
            "JobAcctGatherParams",
            "UsePss,NoShared",
            "'UsePss,NoShared': slurmctld ends, for UsePss and NoShared exclude each other - keep one",
        ),
        (
            "JobAcctGatherParams",
            "OverMemoryKill",
            "OverMemoryKill: slurmctld ends, for TaskPlugin=task/cgroup limits memory already - leave it out",
        ),
        (
            "JobCompType",
            "jobcomp/script",
            "'jobcomp/script' without a JobCompLoc: slurmctld of 24.11 and later ends - set that, too: a"
            + " program of your image",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str | int) else "",
)
def test_a_value_of_slurm_conf_that_ends_slurmctld_is_refused(
    key: str, value: str | int, message: str, tmp_path: Path
) -> None:
    assert said(tmp_path, conf={key: value}) == [f"{CONF}{key}: {message}"]


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("PriorityTier", "high", "'high' is not a whole number - PriorityTier takes 0 to 65535"),
        ("PriorityTier", 65536, "65536 is too large - PriorityTier takes 0 to 65535"),
        ("MaxNodes", "x", "'x' is not a whole number - MaxNodes takes 0 to 4294967295"),
        ("LLN", "q", "'q' is neither yes nor no - LLN takes YES or NO"),
        ("PreemptMode", "zzz", f"'zzz' is not possible - {MODES}"),
        ("PreemptMode", "OFF,CANCEL", "'OFF,CANCEL' is not possible, for OFF and CANCEL exclude each other - keep one"),
        (
            "PreemptMode",
            "REQUEUE,PRIORITY",
            "'PRIORITY' is for Slurm from 25.05, image 'ubuntu-24.04-dlami' has 23.11 - leave it out",
        ),
        ("GraceTime", "y", "'y' is not a whole number - GraceTime takes 0 to 4294967295"),
        ("DefMemPerNode", "1G", "'1G' is not a whole number - DefMemPerNode takes 0 to 18446744073709551615"),
        ("DefaultTime", "1h", f"'1h' is not a time of Slurm's - {MINUTES}"),
        ("DefaultTime", 35791394, "35791394 is too long - DefaultTime takes 35791393 minutes or less"),
        ("OverSubscribe", "FORCED", f"'FORCED' is not possible - OverSubscribe takes {SHARES}"),
        ("OverSubscribe", "YES:1", f"'YES:1' is not possible - OverSubscribe takes {SHARES}"),
        ("OverSubscribe", "YES,NO", f"'YES,NO' is not possible - OverSubscribe takes {SHARES}"),
        ("Shared", "zzz", f"'zzz' is not possible - Shared takes {SHARES}"),
        (
            "OverSubscribe",
            "Exclusive",
            "'Exclusive' is said by the queue's own field - write exclusive: true instead",
        ),
        ("SelectTypeParameters", "CR_Memory", "'CR_Memory' is not possible - did you mean 'CR_Core_Memory'?"),
        (
            "TRESBillingWeights",
            "CPU=1.0,GRES/gpu=2.0",
            "'GRES/gpu=2.0' is not possible - TRESBillingWeights takes CPU=1.0 or Mem=0.25G; weights of"
            + " GRES need slurmdbd",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, str | int) else "",
)
def test_a_value_of_a_partition_that_ends_slurmctld_is_refused(
    key: str, value: str | int, message: str, tmp_path: Path
) -> None:
    assert said(tmp_path, partition={key: value}) == [f"{PARTITION}{key}: {message}"]


@pytest.mark.parametrize(
    ("queue", "key", "value", "message"),
    [
        (
            "exclusive: true",
            "oversubscribe",
            "YES",
            "'YES' contradicts the queue's exclusive: true, whole nodes for each job - keep one of both",
        ),
        (
            "exclusive: true",
            "Shared",
            "NO",
            "'NO' contradicts the queue's exclusive: true, whole nodes for each job - keep one of both",
        ),
        (
            "time_limit: 12h",
            "DefaultTime",
            "12:00:01",
            "12:00:01 is longer than the queue's time_limit 12h: Slurm ignores it - use that or less",
        ),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_a_value_that_contradicts_the_queue_is_refused(
    queue: str, key: str, value: str, message: str, tmp_path: Path
) -> None:
    assert said(tmp_path, partition={key: value}, queue=f"\n        {queue}") == [f"{PARTITION}{key}: {message}"]


def test_a_default_time_up_to_the_queues_limit_is_not_refused(tmp_path: Path) -> None:
    assert said(tmp_path, partition={"DefaultTime": "12:00:00"}, queue="\n        time_limit: 12h") == []


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("epilog", "is to clean nodes there after each job"),
        ("TopologyPlugin", "is to tell Slurm about the network's topology itself"),
        ("SlurmctldAddr", "says in SlurmctldHost where the head is"),
        ("AccountingStoragePort", "sets accounting up as a whole"),
        ("NodeSet", "writes lines of several keys itself"),
    ],
)
def test_a_key_that_is_kept_for_corral_is_refused_with_the_reason(key: str, why: str, tmp_path: Path) -> None:
    assert said(tmp_path, conf={key: "x"}) == [f"{CONF}{key}: is kept for corral, which {why} - leave it out"]


def test_a_key_that_is_kept_in_a_partition_is_refused_with_the_reason(tmp_path: Path) -> None:
    assert said(tmp_path, partition={"ResumeTimeout": 5}) == [
        f"{PARTITION}ResumeTimeout: is kept for corral, which waits for machines equally long in every queue"
        + " - leave it out"
    ]


def test_a_key_in_two_cases_is_refused_in_both_places(tmp_path: Path) -> None:
    conf, partition = {"MaxJobCount": 5, "maxjobcount": 6}, {"PriorityTier": 3, "PRIORITYTIER": 3}
    assert said(tmp_path, conf=conf, partition=partition) == [
        "queues[1].extra.PRIORITYTIER: is PriorityTier once more, for Slurm takes keys in any case - keep one",
        "slurm.extra.maxjobcount: is MaxJobCount once more, for Slurm takes keys in any case - keep one",
    ]


def test_all_wrong_values_are_said_at_once(tmp_path: Path) -> None:
    assert said(tmp_path, conf={"KillWait": "x", "WaitTime": -1}, partition={"LLN": 2, "MaxNodes": "y"}) == [
        "queues[1].extra.LLN: '2' is neither yes nor no - LLN takes YES or NO",
        "queues[1].extra.MaxNodes: 'y' is not a whole number - MaxNodes takes 0 to 4294967295",
        "slurm.extra.KillWait: 'x' is not a whole number - KillWait takes 0 to 65535",
        "slurm.extra.WaitTime: -1 is too small - WaitTime takes 0 to 65535",
    ]


def test_a_wrong_way_to_preempt_is_said_once(tmp_path: Path) -> None:
    found = said(tmp_path, conf={"PreemptType": "preempt/partition_prio", "PreemptMode": "zzz"})
    assert found == [f"slurm.extra.PreemptMode: 'zzz' is not possible - {MODES}"]


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
    assert said(tmp_path, conf=conf) == []


def test_what_slurm_takes_of_a_partition_is_not_refused(tmp_path: Path) -> None:
    taken = {"PriorityTier": 65535, "MaxNodes": "INFINITE", "PreemptMode": "within,cancel"}
    more = {"DefMemPerNode": "1000K", "GraceTime": "0x10", "LLN": "true", "TRESBillingWeights": "CPU=1.0,Mem=0.25G"}
    freed = {"DefaultTime": "1-12:00:00", "OverSubscribe": "force:4"}
    assert said(tmp_path, partition=taken | more | freed) == []


def test_an_image_of_ones_own_may_have_plugins_of_its_own(tmp_path: Path) -> None:
    own = "\n      id: ami-0123456789abcdef0"
    assert said(tmp_path, conf={"PriorityType": "priority/mine", "JobSubmitPlugins": "mine"}, image=own) == []


@pytest.mark.parametrize(
    ("slurm", "conf", "says"),
    [
        ("23.11", {"JobCompType": "jobcomp/mine"}, []),
        (
            "24.11",
            {"PriorityWeightTRES": "GRES/gpu=5"},
            [
                "'GRES/gpu=5' is not possible - PriorityWeightTRES takes CPU=1000 or Mem=2000; weights of GRES"
                + " need slurmdbd"
            ],
        ),
        ("23.11", {"PriorityWeightTRES": "GRES/gpu=5"}, []),
        (
            "23.11",
            {"PriorityWeightTRES": "GRES/gpu=5", "PriorityType": "priority/multifactor"},
            [
                "'GRES/gpu=5' is not possible - PriorityWeightTRES takes CPU=1000 or Mem=2000; weights of GRES"
                + " need slurmdbd"
            ],
        ),
        ("24.11", {"MaxNodeCount": 65537}, ["65537 is too large - MaxNodeCount takes 0 to 65536"]),
        ("23.11", {"MaxNodeCount": 65537}, []),
        (
            "24.11",
            {"PriorityFlags": "NO_FAIR_TREE"},
            ["'NO_FAIR_TREE': slurmctld of 24.11 without slurmdbd breaks down - leave it out"],
        ),
        ("26.05", {"PriorityFlags": "NO_FAIR_TREE"}, []),
        (
            "24.11",
            {"DebugFlags": "TimeCray"},
            ["'TimeCray' is for Slurm before 24.11 (removed), image 'ami-0123456789abcdef0' has 24.11 - leave it out"],
        ),
        ("26.05", {"DebugFlags": "TLS,AuditTLS"}, []),
        (
            "26.05",
            {"PowerAction": "x"},
            [
                "'x' is not possible - PowerAction takes several settings with blanks between them, which cannot be"
                + " written here"
            ],
        ),
    ],
)
def test_what_only_newer_releases_check_is_refused_for_them_alone(
    slurm: str, conf: Extra, says: list[str], tmp_path: Path
) -> None:
    own = f"\n      id: ami-0123456789abcdef0\n      slurm: {slurm}"
    found = said(tmp_path, conf=conf, image=own)
    assert [line.partition(": ")[2] for line in found] == says
