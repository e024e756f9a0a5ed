"""The table of values against Debian's slurmctld: the furthest that it allows starts, and what it refuses ends it.

Few starts: what is taken goes into one; of numbers and of yes or no, Slurm names each wrong value before it ends, so
that is one, too. The rest ends one slurmctld each, within 0.1 s, beside a cluster that runs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import slurms
from corral.box.slurm import Controller, SlurmError, without_accounting
from corral.catalog.slurm_releases import OLDEST
from corral.catalog.slurm_settings import Place, misfits, slurm_keys
from corral.catalog.slurm_value_kinds import Numbers, Words
from corral.catalog.slurm_values import value_rules, value_types
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from corral.spec.rules_slurm_keys import refusal
from corral.spec.rules_slurm_values import conflicts, value_problem
from render.plans import cpu, dev, train

pytestmark = pytest.mark.slurm

DEBIANS = "22.05"
NODES = 5
PLACES = (Place.CONF, Place.PARTITION)
# Numbers that something else holds to less: each other, the machine's memory.
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
# Each ends slurmctld by itself.
ENDING: tuple[tuple[Place, Mapping[str, str]], ...] = (
    (Place.CONF, {"MaxJobCount": "0"}),
    (Place.CONF, {"MaxDBDMsgs": "9999"}),
    (Place.CONF, {"PropagatePrioProcess": "3"}),
    (Place.CONF, {"MaxNodeCount": "4"}),
    (Place.CONF, {"FirstJobId": "67043329"}),
    (Place.CONF, {"SlurmSchedLogLevel": "1"}),
    (Place.CONF, {"SlurmctldDebug": "debug6"}),
    (Place.CONF, {"DebugFlags": "gres,zzz"}),
    (Place.CONF, {"EnforcePartLimits": "some"}),
    (Place.CONF, {"PreemptMode": "zzz"}),
    (Place.CONF, {"PriorityUsageResetPeriod": "hourly"}),
    (Place.CONF, {"PropagateResourceLimitsExcept": "memlock"}),
    (Place.CONF, {"PropagateResourceLimitsExcept": "ALL,CORE"}),
    (Place.CONF, {"TaskPluginParam": "cores,threads"}),
    (Place.CONF, {"PriorityMaxAge": "7d"}),
    (Place.CONF, {"PriorityCalcPeriod": "0"}),
    (Place.CONF, {"PriorityDecayHalfLife": "0"}),
    (Place.CONF, {"PreemptExemptTime": "1h"}),
    (Place.CONF, {"BcastExclude": "/usr,lib"}),
    (Place.CONF, {"Licenses": "matlab:four"}),
    (Place.CONF, {"SchedulerParameters": "max_script_size=536870913"}),
    (Place.CONF, {"SchedulerType": "backfill"}),
    (Place.CONF, {"JobSubmitPlugins": "logging,mine"}),
    (Place.CONF, {"MCSParameters": "enforced"}),
    (Place.CONF, {"MCSPlugin": "mcs/group"}),
    (Place.CONF, {"JobAcctGatherParams": "UsePss,NoShared"}),
    (Place.CONF, {"JobAcctGatherParams": "OverMemoryKill"}),
    (Place.CONF, {"PriorityType": "priority/multifactor", "PriorityWeightTRES": "GRES/gpu=5"}),
    (Place.PARTITION, {"DefaultTime": "1h"}),
    (Place.PARTITION, {"DefaultTime": "35791394"}),
    (Place.PARTITION, {"OverSubscribe": "YES,NO"}),
    (Place.PARTITION, {"Shared": "FORCED"}),
    (Place.PARTITION, {"PreemptMode": "OFF,CANCEL"}),
    (Place.PARTITION, {"SelectTypeParameters": "CR_Memory"}),
    (Place.PARTITION, {"TRESBillingWeights": "CPU=1,GRES/gpu=2"}),
)
# Beside the running cluster's: other ports, other state, so that nothing but its own keys can end it. Some end only
# when they have taken over, so that what runs has 2 s more.
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


def keys(place: Place) -> Iterator[str]:
    """The keys that a user may set in the system's Slurm and that it reads as numbers or as yes or no."""
    for name in sorted(slurm_keys(place).values()):
        if not refusal(place, name) and name in value_types(place) and not misfits(OLDEST, place, name):
            yield name


def furthest(place: Place, key: str) -> str:
    """The largest number that the table allows, or yes."""
    rule = value_rules(OLDEST, place, key)[0]
    return str(rule.most) if isinstance(rule, Numbers) else "true"


def too_far(place: Place, key: str) -> str:
    """Beyond the key's type, so that Slurm names it where it reads it."""
    rule = value_rules(OLDEST, place, key)[-1]
    return str(rule.most + 1) if isinstance(rule, Numbers) else "on"


def all_of(place: Place) -> Mapping[str, str]:
    return {key: furthest(place, key) for key in keys(place)}


def test_the_furthest_values_start_together(tmp_path: Path) -> None:
    conf = {**all_of(Place.CONF), **HELD, **TAKEN}
    partition = {**all_of(Place.PARTITION), **TAKEN_OF_A_PARTITION}
    said = [value_problem(OLDEST, Place.CONF, *item) for item in conf.items()]
    said += [value_problem(OLDEST, Place.PARTITION, *item) for item in partition.items()]
    with slurms.running_cluster(plan(conf, partition), tmp_path) as controller:
        part = slurms.show(controller, "partitions")[0]
        errors = [line for line in controller.run("sinfo").stderr.splitlines() if "Over" in line or "Array" in line]
    shown = [part[key] for key in ("PriorityTier", "DefaultTime", "OverSubscribe")]
    told = [*filter(None, said), *conflicts(conf, OLDEST, NODES)]
    assert (told, errors, shown) == ([], [], ["65535", "24855-03:13:00", "YES:2"])


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
    (rule,) = value_rules(OLDEST, Place.CONF, "DebugFlags")
    assert isinstance(rule, Words)
    taken = {word for word in rule.words if "Invalid DebugFlag" not in read(tmp_path, f"DebugFlags={word}")}
    assert taken == {word for word in rule.words if not misfits(OLDEST, Place.CONF, "DebugFlags", word)}


def test_slurmctld_names_each_number_that_is_too_large_and_each_word_that_is_neither_yes_nor_no(tmp_path: Path) -> None:
    wrong = {place: {key: too_far(place, key) for key in keys(place)} for place in PLACES}
    with pytest.raises(SlurmError), slurms.running_cluster(plan(wrong[Place.CONF], wrong[Place.PARTITION]), tmp_path):
        pass
    errors = [line for line in (tmp_path / "slurmctld.out").read_text().splitlines() if "error: " in line]
    named = {key: sum(key in line for line in errors) for place in PLACES for key in wrong[place]}
    assert [key for key, count in named.items() if not count] == []


def test_what_a_spec_refuses_ends_slurmctld_and_nothing_else_does(tmp_path: Path) -> None:
    cases = [*ENDING, (Place.CONF, {"MailDomain": "zzz"})]
    with slurms.running_cluster(plan({}, {}), tmp_path) as controller:
        for number, (place, extra) in enumerate(cases):
            prepare(tmp_path / f"tries/{number:02}", number, place, extra)
        ends = trial(controller)
    assert ends == ["ended"] * len(ENDING) + ["runs"]


@pytest.mark.parametrize(("place", "extra"), ENDING, ids=lambda value: "" if isinstance(value, Place) else str(value))
def test_what_ends_slurmctld_a_spec_refuses(place: Place, extra: Mapping[str, str]) -> None:
    single = [message for item in extra.items() if (message := value_problem(OLDEST, place, *item))]
    together = list(conflicts(extra, OLDEST, NODES)) if place is Place.CONF else []
    assert len([*single, *together]) == 1


def read(directory: Path, line: str) -> str:
    """What a command says of a slurm.conf with this line, which it reads as slurmctld does."""
    conf = directory / "slurm.conf"
    conf.write_text(f"ClusterName=x\nSlurmctldHost=x(127.0.0.1)\nSlurmctldPort=1\n{line}\nNodeName=n\n")
    environment = {"PATH": "/usr/bin", "SLURM_CONF": str(conf)}
    return subprocess.run(["scontrol", "ping"], env=environment, capture_output=True, text=True, check=False).stderr


def prepare(directory: Path, number: int, place: Place, extra: Mapping[str, str]) -> None:
    """The files of a slurmctld of its own, without any difference but the keys and where it writes and listens."""
    files = without_accounting(cluster_files(plan(extra, {}) if place is Place.CONF else plan({}, extra)))
    (directory / "state").mkdir(parents=True)
    for name in ("slurm.conf", "gres.conf", "cgroup.conf"):
        (directory / name).write_text(files[f"slurm/{name}"])
    (directory / "own.conf").touch()
    (directory / "first-job.conf").touch()
    (directory / "topology-plugin.conf").touch()
    inside = f"/mnt/tries/{number:02}"
    moved = {
        "SlurmctldPort": 20000 + number,
        "StateSaveLocation": f"{inside}/state",
        "SlurmctldPidFile": f"{inside}/pid",
    }
    settings = dict(line.split("=", 1) for line in files["slurm/host.conf"].splitlines() if "=" in line)
    lines = [f"{key}={value}\n" for key, value in {**settings, **moved, "SlurmUser": "root"}.items()]
    (directory / "host.conf").write_text("".join(lines))


def trial(controller: Controller) -> list[str]:
    """What became of each, in their order."""
    return [line.split()[1] for line in slurms.must(controller.run("sh", "-c", TRY)).splitlines()]
