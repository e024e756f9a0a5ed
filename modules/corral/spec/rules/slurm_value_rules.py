"""Rules about the values of users' own slurm.conf keys: reject those on which slurmctld exits, and no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from corral.catalog.loader.suggestions import suggestion
from corral.catalog.slurm.conf_keys import ConfSection, slurm_keys
from corral.catalog.slurm.conf_values import read_minutes, read_number, value_rules
from corral.catalog.slurm.releases import Release
from corral.catalog.slurm.value_kinds import NamedNumber, Numbers, Plugins, Shape, Switch, Times, ValueRule, Words
from corral.spec.models.durations import format_duration
from corral.spec.models.queues import QueueSpec
from corral.spec.rules.slurm_key_rules import SHARING
from corral.spec.spec_errors import SpecProblem

KeyProblem = tuple[str, SpecProblem]  # a key, and what is wrong with it

_WHOLE = frozenset({"exclusive", "node"})  # of OverSubscribe, and of Exclusive from 26.05 on
_LAST_JOB, _LARGEST_JOB = 67043328, 67108863  # MaxJobId by default, and its maximum. Tested on 22.05
_MULTIFACTOR: Release = (24, 11)  # PriorityType is priority/multifactor by default, in 22.05 priority/basic. Tested


def has_plugin(value: str, plugin: str) -> bool:
    """Whether a list of plugins has this one, with or without its kind: `lua`, `job_submit/lua`."""
    return plugin in (word.split("/")[-1] for word in value.split(","))


def value_problem(
    release: Release, section: ConfSection, key: str, value: str, *, own_plugins: bool = False
) -> SpecProblem | None:
    """Return why this release's slurmctld exits on this value of this known key. `own_plugins`: accept any plugin."""
    name = slurm_keys(section)[key.lower()]
    rules = [rule for rule in value_rules(release, section, key) if not (own_plugins and isinstance(rule, Plugins))]
    return next((problem for rule in rules if (problem := _problem(rule, name, value))), None)


def repeated(extra: Mapping[str, str]) -> Iterator[KeyProblem]:
    """Yield keys that repeat an earlier one in another case, with the problem: Slurm uses the last, with an error."""
    first: dict[str, str] = {}
    for key in extra:
        if (earlier := first.setdefault(key.lower(), key)) != key:
            yield key, SpecProblem(f"repeats {earlier}; Slurm ignores the case of keys", "keep one")


def conflicts(extra: Mapping[str, str], release: Release, nodes: int) -> Iterator[KeyProblem]:
    """Yield keys on which slurmctld exits because of other keys or of the cluster's size, with the problem."""
    keys = {key.lower(): key for key in extra}
    yield from _sizes(extra, keys, nodes)
    yield from _companions(extra, keys)
    yield from _memory(extra, keys)
    yield from _priority(extra, keys, release)


def queue_conflicts(queue: QueueSpec) -> Iterator[KeyProblem]:
    """Yield partition keys that contradict other fields of the queue, with the problem. Tested on 22.05."""
    for key, value in queue.extra.items():
        minutes = read_minutes(ConfSection.PARTITION, key, value) if key.lower() == "defaulttime" else None
        if minutes and queue.time_limit and minutes * 60 > queue.time_limit.total_seconds():
            limit = format_duration(queue.time_limit)
            what = f"{value} is longer than the queue's time_limit {limit}: Slurm ignores it"
            yield key, SpecProblem(what, f"use {limit} or less")
        shares = key.lower() in map(str.lower, SHARING)
        if shares and queue.exclusive:
            what = f"{value!r} conflicts with the queue's exclusive: true, which allocates whole nodes"
            yield key, SpecProblem(what, "keep one")
        elif shares and value.lower() in _WHOLE:
            yield key, SpecProblem(f"{value!r} has its own field", "set exclusive: true instead")


def _problem(rule: ValueRule, name: str, value: str) -> SpecProblem | None:
    match rule:
        case Numbers():
            return _number(rule, name, value)
        case Switch():
            wrong = SpecProblem(f"{value!r} is neither yes nor no", f"{name} takes YES or NO")
            return None if rule.takes(value) else wrong
        case Words():
            return _word(rule, value)
        case Times():
            return _time(rule, name, value)
        case Shape():
            stray = rule.stray(value)
            return SpecProblem(f"invalid value {stray!r}; {name} takes {rule.like}") if stray else None
        case Plugins():
            return _plugin(rule, value)
        case NamedNumber():
            number = rule.read(value)
            if number is None or number <= rule.maximum:
                return None
            return SpecProblem(f"{rule.name}={number} is too large", f"use {rule.maximum} or less")


def _number(rule: Numbers, name: str, value: str) -> SpecProblem | None:
    takes = f"{name} takes {rule.minimum} to {rule.maximum}"
    number = rule.read(value)
    if number is None:
        return SpecProblem(f"{value!r} is not a whole number", takes)
    if number < rule.minimum:
        return SpecProblem(f"{value} is too small", takes)
    return SpecProblem(f"{value} is too large", takes) if number > rule.maximum else None


def _word(rule: Words, value: str) -> SpecProblem | None:
    if stray := rule.stray(value):
        return SpecProblem(f"invalid value {stray!r}; {suggestion(stray, rule.words)}")
    if lone := rule.crowded(value):
        return SpecProblem(
            f"invalid value {value!r}; {lone} cannot be combined with others", f"use {lone}, or remove it"
        )
    if clash := rule.clash(value):
        return SpecProblem(f"invalid value {value!r}; {clash[0]} and {clash[1]} exclude each other", "keep one")
    return None


def _time(rule: Times, name: str, value: str) -> SpecProblem | None:
    if rule.is_endless(value):
        return None
    minutes = rule.read(value)
    if minutes is None:
        return SpecProblem(
            f"{value!r} is not a Slurm time", "write minutes, or days-hours:minutes:seconds as in 1-12:00:00"
        )
    if minutes < rule.minimum_minutes:
        return SpecProblem(f"{value} is too short", f"{name} takes a minute or more")
    if rule.maximum_minutes is not None and minutes > rule.maximum_minutes:
        return SpecProblem(f"{value} is too long", f"{name} takes {rule.maximum_minutes} minutes or less")
    return None


def _plugin(rule: Plugins, value: str) -> SpecProblem | None:
    stray = rule.stray(value)
    return SpecProblem(f"{stray!r} is not a Slurm plugin", suggestion(stray, rule.like(stray))) if stray else None


def _sizes(extra: Mapping[str, str], keys: Mapping[str, str], nodes: int) -> Iterator[KeyProblem]:
    first, last = _size(extra, keys, "FirstJobId", 1), _size(extra, keys, "MaxJobId", _LAST_JOB)
    if first > min(last, _LARGEST_JOB):
        key = keys.get("firstjobid", keys.get("maxjobid", ""))
        what = f"leaves no job ids, from {first} to {min(last, _LARGEST_JOB)}: slurmctld exits"
        yield key, SpecProblem(what, "use a smaller FirstJobId")
    if _size(extra, keys, "MaxNodeCount", nodes) < nodes:
        key = keys["maxnodecount"]
        what = f"{extra[key]} is too small: the queues have {nodes} nodes in total"
        yield key, SpecProblem(what, f"use {nodes} or more")
    if "slurmschedlogfile" not in keys and _size(extra, keys, "SlurmSchedLogLevel", 0) > 0:
        what = "requires SlurmSchedLogFile, without which slurmctld exits"
        yield keys["slurmschedloglevel"], SpecProblem(what, "set it too, such as /var/log/slurm/sched.log")


def _size(extra: Mapping[str, str], keys: Mapping[str, str], name: str, default: int) -> int:
    """Return the number of a key; the default if the key is missing, or if another rule rejects its value."""
    key = keys.get(name.lower())
    given = read_number(ConfSection.CONF, name, extra[key]) if key else None
    return default if given is None else given


def _companions(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[KeyProblem]:
    plugin, parameters = keys.get("mcsplugin"), keys.get("mcsparameters")
    if parameters and not plugin:
        what = "requires MCSPlugin, without which slurmctld exits"
        yield parameters, SpecProblem(what, "set it too, such as mcs/user")
    elif plugin and not parameters and extra[plugin] == "mcs/group":
        what = "'mcs/group' requires MCSParameters, without which slurmctld exits"
        yield plugin, SpecProblem(what, "set groups separated by |")
    decay = keys.get("prioritydecayhalflife")
    minutes = read_minutes(ConfSection.CONF, decay, extra[decay]) if decay else None
    if decay and minutes == 0 and "priorityusageresetperiod" not in keys:
        what = f"{extra[decay]} requires PriorityUsageResetPeriod, without which slurmctld exits"
        yield decay, SpecProblem(what, "set it too, such as MONTHLY")
    route = keys.get("routeplugin")
    if route and extra[route] == "route/topology":
        what = "'route/topology' requires TopologyPlugin=topology/tree, without which slurmctld exits"
        yield route, SpecProblem(what, "remove it")


def _memory(extra: Mapping[str, str], keys: Mapping[str, str]) -> Iterator[KeyProblem]:
    key = keys.get("jobacctgatherparams")
    given = extra[key].lower() if key else ""
    if key and "usepss" in given and "noshared" in given:
        yield key, SpecProblem(f"{extra[key]!r} combines UsePss and NoShared, on which slurmctld exits", "keep one")
    if key and "overmemorykill" in given.split(","):
        yield key, SpecProblem("OverMemoryKill conflicts with TaskPlugin=task/cgroup: slurmctld exits", "remove it")


def _priority(extra: Mapping[str, str], keys: Mapping[str, str], release: Release) -> Iterator[KeyProblem]:
    """Yield problems with priority/multifactor, which older releases use only if PriorityType sets it."""
    type_ = extra[keys["prioritytype"]] if "prioritytype" in keys else None
    key, flags = keys.get("priorityweighttres"), keys.get("priorityflags")
    if key and release < _MULTIFACTOR and type_ == "priority/multifactor":
        problem = value_problem(_MULTIFACTOR, ConfSection.CONF, key, extra[key])
        yield from [(key, problem)] if problem else []
    unfair = flags and any(flag in extra[flags].lower() for flag in ("depth_oblivious", "no_fair_tree"))
    if flags and unfair and release == _MULTIFACTOR and type_ != "priority/basic":
        yield flags, SpecProblem(f"{extra[flags]!r} crashes slurmctld 24.11 without slurmdbd", "remove it")
