"""The table of values against Debian's slurmctld: it starts with the allowed extremes and exits on refused values.

One start covers all accepted values. One more covers wrong numbers and yes-or-no values, because Slurm names each
before it exits. Every other wrong value ends a slurmctld of its own within 0.1 s, next to a running cluster.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tools.slurm_head.controller import Controller, SlurmError, without_accounting

import slurms
from corral.catalog.slurm.conf_keys import ConfSection, slurm_keys, unsupported_settings
from corral.catalog.slurm.conf_values import value_rules, value_types
from corral.catalog.slurm.releases import OLDEST
from corral.catalog.slurm.value_kinds import Numbers, Words
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from corral.spec.rules.slurm_key_rules import refusal
from corral.spec.rules.slurm_value_rules import conflicts, value_problem
from render.plans import cpu, dev, train

pytestmark = [pytest.mark.slurm, pytest.mark.long]

DEBIANS = "22.05"
NODES = 5
SECTIONS = (ConfSection.CONF, ConfSection.PARTITION)
# Numbers with lower limits elsewhere: each other, the machine's memory.
HELD: Mapping[str, str] = {
    "FirstJobId": "67108863",
    "MaxJobId": "67108863",
    "MaxNodeCount": "1000000",
    "SlurmSchedLogLevel": "65535",
}
TAKEN: Mapping[str, str] = {
    "DebugFlags": "gres,Agent,CPU_Bind,NO_CONF_HASH",
    "EnforcePartLimits": "any",
    "Licenses": "matlab:4,ansys",
    "LogTimeFormat": "zzz",
    "MCSParameters": "ondemand,root",
    "MCSPlugin": "mcs/group",
    "MpiDefault": "pmi2",
    "PreemptExemptTime": "-4",
    "PreemptMode": "suspend,gang",
    "PreemptType": "preempt/partition_prio",
    "PriorityCalcPeriod": "0:01",
    "PriorityDecayHalfLife": "0",
    "PriorityMaxAge": "35791393",
    "PriorityUsageResetPeriod": "yearly",
    "PropagateResourceLimitsExcept": "CORE,RLIMIT_STACK",
    "RebootProgram": "/nowhere",
    "SchedulerParameters": "max_script_size=536870912",
    "SlurmctldDebug": "5abc",
    "SlurmdDebug": "Debug5",
    "SlurmSchedLogFile": "/var/log/slurm/sched.log",
    "TaskPluginParam": "Verbose,autobind=cores",
    "TaskProlog": "/nowhere",
}
TAKEN_OF_A_PARTITION: Mapping[str, str] = {
    "DefaultTime": "35791393",
    "OverSubscribe": "yes:2",
    "PreemptMode": "within,cancel",
    "SelectTypeParameters": "CR_Socket",
    "TRESBillingWeights": "CPU=1e3,Mem=0.25G",
}
# Each of these ends slurmctld.
ENDING: tuple[tuple[ConfSection, Mapping[str, str]], ...] = (
    (ConfSection.CONF, {"MaxJobCount": "0"}),
    (ConfSection.CONF, {"MaxDBDMsgs": "9999"}),
    (ConfSection.CONF, {"PropagatePrioProcess": "3"}),
    (ConfSection.CONF, {"MaxNodeCount": "4"}),
    (ConfSection.CONF, {"FirstJobId": "67043329"}),
    (ConfSection.CONF, {"SlurmSchedLogLevel": "1"}),
    (ConfSection.CONF, {"SlurmctldDebug": "debug6"}),
    (ConfSection.CONF, {"DebugFlags": "gres,zzz"}),
    (ConfSection.CONF, {"EnforcePartLimits": "some"}),
    (ConfSection.CONF, {"PreemptMode": "zzz"}),
    (ConfSection.CONF, {"PriorityUsageResetPeriod": "hourly"}),
    (ConfSection.CONF, {"PropagateResourceLimitsExcept": "memlock"}),
    (ConfSection.CONF, {"PropagateResourceLimitsExcept": "ALL,CORE"}),
    (ConfSection.CONF, {"TaskPluginParam": "cores,threads"}),
    (ConfSection.CONF, {"PriorityMaxAge": "7d"}),
    (ConfSection.CONF, {"PriorityCalcPeriod": "0"}),
    (ConfSection.CONF, {"PriorityDecayHalfLife": "0"}),
    (ConfSection.CONF, {"PreemptExemptTime": "1h"}),
    (ConfSection.CONF, {"BcastExclude": "/usr,lib"}),
    (ConfSection.CONF, {"Licenses": "matlab:four"}),
    (ConfSection.CONF, {"SchedulerParameters": "max_script_size=536870913"}),
    (ConfSection.CONF, {"SchedulerType": "backfill"}),
    (ConfSection.CONF, {"JobSubmitPlugins": "logging,mine"}),
    (ConfSection.CONF, {"MCSParameters": "enforced"}),
    (ConfSection.CONF, {"MCSPlugin": "mcs/group"}),
    (ConfSection.CONF, {"JobAcctGatherParams": "UsePss,NoShared"}),
    (ConfSection.CONF, {"JobAcctGatherParams": "OverMemoryKill"}),
    (ConfSection.CONF, {"PriorityType": "priority/multifactor", "PriorityWeightTRES": "GRES/gpu=5"}),
    (ConfSection.PARTITION, {"DefaultTime": "1h"}),
    (ConfSection.PARTITION, {"DefaultTime": "35791394"}),
    (ConfSection.PARTITION, {"OverSubscribe": "YES,NO"}),
    (ConfSection.PARTITION, {"Shared": "FORCED"}),
    (ConfSection.PARTITION, {"PreemptMode": "OFF,CANCEL"}),
    (ConfSection.PARTITION, {"SelectTypeParameters": "CR_Memory"}),
    (ConfSection.PARTITION, {"TRESBillingWeights": "CPU=1,GRES/gpu=2"}),
)
# Ports and state differ from the running cluster's, so only its own keys can end it. Some exit only after they
# have taken over, so running ones get 2 s more.
TRY = """
for directory in /mnt/tries/*; do
    slurmctld -D -f "$directory/slurm.conf" >"$directory/log" 2>&1 &
    until grep -q "Running as primary" "$directory/log" || ! kill -0 $! 2>/dev/null; do
        sleep 0.02
    done
    for _ in $(seq 100); do
        kill -0 $! 2>/dev/null || break
        sleep 0.02
    done
    if kill -KILL $! 2>/dev/null; then echo "${directory##*/} runs"; else echo "${directory##*/} ended"; fi
done
"""


def plan(conf: Mapping[str, str], partition: Mapping[str, str]) -> ClusterPlan:
    return replace(dev(replace(train(), extra=partition), cpu(), slurm_version=DEBIANS), extra_slurm=conf)


def keys(section: ConfSection) -> Iterator[str]:
    """The keys that a user may set in the system's Slurm and that it reads as numbers or as yes or no."""
    for name in sorted(slurm_keys(section).values()):
        if (
            not refusal(section, name)
            and name in value_types(section)
            and not unsupported_settings(OLDEST, section, name)
        ):
            yield name


def furthest(section: ConfSection, key: str) -> str:
    """The largest number that the table allows, or yes."""
    rule = value_rules(OLDEST, section, key)[0]
    return str(rule.maximum) if isinstance(rule, Numbers) else "true"


def too_far(section: ConfSection, key: str) -> str:
    """A value beyond the key's type, so Slurm reports it while reading."""
    rule = value_rules(OLDEST, section, key)[-1]
    return str(rule.maximum + 1) if isinstance(rule, Numbers) else "on"


def all_of(section: ConfSection) -> Mapping[str, str]:
    return {key: furthest(section, key) for key in keys(section)}


def test_the_furthest_values_start_together(tmp_path: Path) -> None:
    conf = {**all_of(ConfSection.CONF), **HELD, **TAKEN}
    partition = {**all_of(ConfSection.PARTITION), **TAKEN_OF_A_PARTITION}
    problems = [value_problem(OLDEST, ConfSection.CONF, *item) for item in conf.items()]
    problems += [value_problem(OLDEST, ConfSection.PARTITION, *item) for item in partition.items()]
    with slurms.running_cluster(plan(conf, partition), tmp_path) as controller:
        part = slurms.show(controller, "partitions")[0]
        errors = [line for line in controller.run("sinfo").stderr.splitlines() if "Over" in line or "Array" in line]
    shown = [part[key] for key in ("PriorityTier", "DefaultTime", "OverSubscribe")]
    found = [*filter(None, problems), *conflicts(conf, OLDEST, NODES)]
    assert (found, errors, shown) == ([], [], ["65535", "24855-03:13:00", "YES:2"])


def test_what_every_command_complains_of_a_spec_refuses(tmp_path: Path) -> None:
    with slurms.running_cluster(plan({"MaxArraySize": "4000002"}, {"OverSubscribe": "YES:1"}), tmp_path) as controller:
        errors = controller.run("sinfo").stderr.splitlines()
    assert errors == [
        "sinfo: error: Ignoring bad OverSubscribe value: YES:1",
        "sinfo: error: MaxArraySize value (4000002) is greater than 4000001",
    ]


def test_a_default_time_beyond_the_queues_limit_is_ignored_in_silence(tmp_path: Path) -> None:
    limited = replace(cpu(), extra={"DefaultTime": "1-12:00:01"})
    with slurms.running_cluster(dev(train(), limited, slurm_version=DEBIANS), tmp_path) as controller:
        part = slurms.show(controller, "partitions")[1]
    assert (part["MaxTime"], part["DefaultTime"]) == ("1-12:00:00", "NONE")


def test_slurm_takes_the_debug_flags_of_its_release_and_no_others(tmp_path: Path) -> None:
    (rule,) = value_rules(OLDEST, ConfSection.CONF, "DebugFlags")
    assert isinstance(rule, Words)
    taken = {word for word in rule.words if "Invalid DebugFlag" not in read(tmp_path, f"DebugFlags={word}")}
    assert taken == {
        word for word in rule.words if not unsupported_settings(OLDEST, ConfSection.CONF, "DebugFlags", word)
    }


def test_slurmctld_names_each_number_that_is_too_large_and_each_word_that_is_neither_yes_nor_no(tmp_path: Path) -> None:
    wrong = {section: {key: too_far(section, key) for key in keys(section)} for section in SECTIONS}
    with (
        pytest.raises(SlurmError),
        slurms.running_cluster(plan(wrong[ConfSection.CONF], wrong[ConfSection.PARTITION]), tmp_path),
    ):
        pass
    errors = [line for line in (tmp_path / "slurmctld.out").read_text().splitlines() if "error: " in line]
    named = {key: sum(key in line for line in errors) for section in SECTIONS for key in wrong[section]}
    assert [key for key, count in named.items() if not count] == []


def test_what_a_spec_refuses_ends_slurmctld_and_nothing_else_does(tmp_path: Path) -> None:
    cases = [*ENDING, (ConfSection.CONF, {"MailDomain": "zzz"})]
    with slurms.running_cluster(plan({}, {}), tmp_path) as controller:
        for number, (section, extra) in enumerate(cases):
            prepare(tmp_path / f"tries/{number:02}", number, section, extra)
        ends = start_slurmctld(controller)
    assert ends == ["ended"] * len(ENDING) + ["runs"]


@pytest.mark.parametrize(
    ("section", "extra"), ENDING, ids=lambda value: "" if isinstance(value, ConfSection) else str(value)
)
def test_what_ends_slurmctld_a_spec_refuses(section: ConfSection, extra: Mapping[str, str]) -> None:
    single = [message for item in extra.items() if (message := value_problem(OLDEST, section, *item))]
    together = list(conflicts(extra, OLDEST, NODES)) if section is ConfSection.CONF else []
    assert len([*single, *together]) == 1


def read(directory: Path, line: str) -> str:
    """The output of a command that reads a slurm.conf with this line, as slurmctld does."""
    conf = directory / "slurm.conf"
    conf.write_text(f"ClusterName=x\nSlurmctldHost=x(127.0.0.1)\nSlurmctldPort=1\n{line}\nNodeName=n\n")
    environment = {"PATH": "/usr/bin", "SLURM_CONF": str(conf)}
    return subprocess.run(["scontrol", "ping"], env=environment, capture_output=True, text=True, check=False).stderr


def prepare(directory: Path, number: int, section: ConfSection, extra: Mapping[str, str]) -> None:
    """The files of another slurmctld, which differ only in the keys, the paths and the ports."""
    files = without_accounting(cluster_files(plan(extra, {}) if section is ConfSection.CONF else plan({}, extra)))
    (directory / "state").mkdir(parents=True)
    for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
        (directory / name).write_text(files[f"slurm/{name}"])
    for included in re.findall(r"(?m)^Include (\S+)$", files["slurm/slurm.conf"]):
        # Slurm waits a minute for an included file that is missing.
        (directory / included).touch()
    inside = f"/mnt/tries/{number:02}"
    moved = {
        "SlurmctldPort": 20000 + number,
        "StateSaveLocation": f"{inside}/state",
        "SlurmctldPidFile": f"{inside}/pid",
    }
    settings = dict(line.split("=", 1) for line in files["slurm/host.conf"].splitlines() if "=" in line)
    lines = [f"{key}={value}\n" for key, value in {**settings, **moved, "SlurmUser": "root"}.items()]
    (directory / "host.conf").write_text("".join(lines))


def start_slurmctld(controller: Controller) -> list[str]:
    """Start each and return how it ended, in order."""
    return [line.split()[1] for line in slurms.must(controller.run("sh", "-c", TRY)).splitlines()]
