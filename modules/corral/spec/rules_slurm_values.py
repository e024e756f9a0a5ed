"""Rules about the values of what users add to slurm.conf: what ends slurmctld is refused, what Slurm takes is not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.catalog.names import suggestion
from corral.catalog.slurm_releases import Release
from corral.catalog.slurm_settings import Place, slurm_keys
from corral.catalog.slurm_value_kinds import Numbers, Plugins, Rule, Setting, Shape, Switch, Times, Words
from corral.catalog.slurm_values import read_minutes, read_number, value_rules
from corral.spec.durations import format_duration
from corral.spec.queues import QueueSpec
from corral.spec.rules_slurm_keys import SHARING

_WHOLE = frozenset({"exclusive", "node"})  # of OverSubscribe, and of Exclusive from 26.05 on
_LAST_JOB, _LARGEST_JOB = 67043328, 67108863  # MaxJobId where it is not set, and what it is at most. Tried on 22.05
_MULTIFACTOR: Release = (24, 11)  # has priority/multifactor where there is no PriorityType, 22.05 priority/basic. Tried


def value_problem(release: Release, place: Place, key: str, value: str, *, own_plugins: bool = False) -> str | None:
    """Why this release's slurmctld ends over the value of a key that it knows. An own image may hold own plugins."""
    name = slurm_keys(place)[key.lower()]
    rules = [rule for rule in value_rules(release, place, key) if not (own_plugins and isinstance(rule, Plugins))]
    return next((message for rule in rules if (message := _problem(rule, name, value))), None)


def repeated(extra: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Keys that are there before in other letters, with what is wrong: Slurm takes the last one and logs an error."""
    first: dict[str, str] = {}
    for key in extra:
        if (earlier := first.setdefault(key.lower(), key)) != key:
            yield key, f"is {earlier} once more, for Slurm takes keys in any case - keep one"


def conflicts(extra: Mapping[str, str], release: Release, nodes: int) -> Iterator[tuple[str, str]]:
    """Keys of slurm.conf over which slurmctld ends because of others, or of the cluster's size, with what is wrong."""
    keys = {key.lower(): key for key in extra}
    yield from _sizes(extra, keys, nodes)
    yield from _companions(extra, keys)
    yield from _memory(extra, keys)
    yield from _priority(extra, keys, release)


def queue_conflicts(queue: QueueSpec) -> Iterator[tuple[str, str]]:
    """Keys of a partition that contradict what the queue says otherwise, with what is wrong. Tried on 22.05."""
    for key, value in queue.extra.items():
        minutes = read_minutes(Place.PARTITION, key, value) if key.lower() == "defaulttime" else None
        if minutes and queue.time_limit and minutes * 60 > queue.time_limit.total_seconds():
            limit = format_duration(queue.time_limit)
            yield key, f"{value} is longer than the queue's time_limit {limit}: Slurm ignores it - use that or less"
        shares = key.lower() in map(str.lower, SHARING)
        if shares and queue.exclusive:
            yield key, f"{value!r} contradicts the queue's exclusive: true, whole nodes for each job - keep one of both"
        elif shares and value.lower() in _WHOLE:
            yield key, f"{value!r} is said by the queue's own field - write exclusive: true instead"


def _problem(rule: Rule, name: str, value: str) -> str | None:
    match rule:
        case Numbers():
            return _number(rule, name, value)
        case Switch():
            return None if rule.takes(value) else f"{value!r} is neither yes nor no - {name} takes YES or NO"
        case Words():
            return _word(rule, value)
        case Times():
            return _time(rule, name, value)
        case Shape():
            stray = rule.stray(value)
            return stray and f"{stray!r} is not possible - {name} takes {rule.like}"
        case Plugins():
            stray = rule.stray(value)
            return stray and f"{stray!r} is not a plugin of Slurm's - {suggestion(stray, rule.like(stray))}"
        case Setting():
            number = rule.read(value)
            too_large = number is not None and number > rule.most
            return f"{rule.name}={number} is too large - use {rule.most} or less" if too_large else None


def _number(rule: Numbers, name: str, value: str) -> str | None:
    takes = f"{name} takes {rule.least} to {rule.most}"
    number = rule.read(value)
    if number is None:
        return f"{value!r} is not a whole number - {takes}"
    if number < rule.least:
        return f"{value} is too small - {takes}"
    return f"{value} is too large - {takes}" if number > rule.most else None


def _word(rule: Words, value: str) -> str | None:
    if stray := rule.stray(value):
        return f"{stray!r} is not possible - {suggestion(stray, rule.words)}"
    if lone := rule.crowded(value):
        return f"{value!r} is not possible, for {lone} stands alone - use {lone}, or leave it out"
    if clash := rule.clash(value):
        return f"{value!r} is not possible, for {clash[0]} and {clash[1]} exclude each other - keep one"
    return None


def _time(rule: Times, name: str, value: str) -> str | None:
    if rule.is_endless(value):
        return None
    minutes = rule.read(value)
    if minutes is None:
        return f"{value!r} is not a time of Slurm's - write minutes, or days-hours:minutes:seconds as in 1-12:00:00"
    if minutes < rule.least_min:
        return f"{value} is too short - {name} takes a minute or more"
    if rule.most_min is not None and minutes > rule.most_min:
        return f"{value} is too long - {name} takes {rule.most_min} minutes or less"
    return None


def _sizes(extra: Mapping[str, str], keys: Mapping[str, str], nodes: int) -> Iterator[tuple[str, str]]:
    first, last = _size(extra, keys, "FirstJobId", 1), _size(extra, keys, "MaxJobId", _LAST_JOB)
    if first > min(last, _LARGEST_JOB):
        key = keys.get("firstjobid", keys.get("maxjobid", ""))
        yield (
            key,
            f"job ids from {first} to {min(last, _LARGEST_JOB)} are none: slurmctld ends - use a smaller FirstJobId",
        )
    if _size(extra, keys, "MaxNodeCount", nodes) < nodes:
        key = keys["maxnodecount"]
        yield key, f"{extra[key]} is too small: the queues have {nodes} nodes together - use that or more"
    if "slurmschedlogfile" not in keys and _size(extra, keys, "SlurmSchedLogLevel", 0) > 0:
        what = "without a SlurmSchedLogFile: slurmctld ends"
        yield keys["slurmschedloglevel"], f"{what} - set that, too, such as /var/log/slurm/sched.log"


def _size(extra: Mapping[str, str], keys: Mapping[str, str], name: str, default: int) -> int:
    """The number that a key has; the default where it is not there, or where another rule refuses it."""
    key = keys.get(name.lower())
    given = read_number(Place.CONF, name, extra[key]) if key else None
    return default if given is None else given


def _companions(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    plugin, parameters = keys.get("mcsplugin"), keys.get("mcsparameters")
    if parameters and not plugin:
        yield parameters, "without an MCSPlugin: slurmctld ends - set that, too, such as mcs/user"
    elif plugin and not parameters and extra[plugin] == "mcs/group":
        yield plugin, "'mcs/group' without MCSParameters: slurmctld ends - set that, too: groups with | between them"
    half_life = keys.get("prioritydecayhalflife")
    minutes = read_minutes(Place.CONF, half_life, extra[half_life]) if half_life else None
    if half_life and minutes == 0 and "priorityusageresetperiod" not in keys:
        what = f"{extra[half_life]} without a PriorityUsageResetPeriod: slurmctld ends"
        yield half_life, f"{what} - set that, too, such as MONTHLY"
    route = keys.get("routeplugin")
    if route and extra[route] == "route/topology":
        yield route, "'route/topology' needs TopologyPlugin=topology/tree: slurmctld ends - leave it out"


def _memory(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    key = keys.get("jobacctgatherparams")
    given = extra[key].lower() if key else ""
    if key and "usepss" in given and "noshared" in given:
        yield key, f"{extra[key]!r}: slurmctld ends, for UsePss and NoShared exclude each other - keep one"
    if key and "overmemorykill" in given.split(","):
        yield key, "OverMemoryKill: slurmctld ends, for TaskPlugin=task/cgroup limits memory already - leave it out"


def _priority(extra: Mapping[str, str], keys: Mapping[str, str], release: Release) -> Iterator[tuple[str, str]]:
    """What is wrong with priority/multifactor, which older releases have only where it is asked for."""
    type_ = extra[keys["prioritytype"]] if "prioritytype" in keys else None
    key, flags = keys.get("priorityweighttres"), keys.get("priorityflags")
    if key and release < _MULTIFACTOR and type_ == "priority/multifactor":
        message = value_problem(_MULTIFACTOR, Place.CONF, key, extra[key])
        yield from [(key, message)] if message else []
    unfair = flags and any(flag in extra[flags].lower() for flag in ("depth_oblivious", "no_fair_tree"))
    if flags and unfair and release == _MULTIFACTOR and type_ != "priority/basic":
        yield flags, f"{extra[flags]!r}: slurmctld of 24.11 without slurmdbd breaks down - leave it out"
