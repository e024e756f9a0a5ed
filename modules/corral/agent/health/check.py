"""The checks as they happen: at boot, before a job (Slurm's Prolog), on idle nodes (its HealthCheckProgram), by hand.

A check drains and does no more: a drain harms no job that runs, and the keeper replaces what is idle, drained and sick.
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from corral.agent import metadata, slurm
from corral.agent.errors import AgentError
from corral.agent.health.findings import Finding
from corral.agent.health.judge import Expected, judge
from corral.agent.health.readings import QUICK, Probe, Tool, read_all
from corral.agent.health_reason import reason_for

MARK = Path("/run/corral/healthy")  # as old as the last check that found nothing; the program `prolog` looks at it
_UNKNOWN = "i-0"  # where the metadata service does not answer
_STATE = re.compile(r"\bState=(\S+)")
_RUNNING = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})

log = logging.getLogger("corral.agent")


class HealthError(AgentError):
    """A machine that is not fit for jobs; the text says why."""


def quick(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[Finding, ...]:
    """What a check of at most five seconds finds: devices, memory errors, interfaces, mounts, clock."""
    return _check(expected, probe, expected.tools & QUICK, 1, mark)


def idle(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[Finding, ...]:
    """What can be found within slurmd's 60 seconds without loading a GPU: quick's, Xids, NVLinks, DCGM at level 1."""
    return _check(expected, probe, expected.tools, 1, mark)


def deep(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[Finding, ...]:
    """What is found in minutes, with DCGM at level 2, which loads the GPUs: for nodes without a job."""
    return _check(expected, probe, expected.tools, 2, mark)


def check_boot(expected: Expected, probe: Probe) -> None:
    """Raises HealthError where the machine must not join; it powers off then, and another is launched."""
    found = quick(expected, probe)
    _tell(found)
    if sick := [one.text for one in found if one.is_sick]:
        raise HealthError(f"the machine is not fit for jobs: {'; '.join(sick)}")


def prolog(node: str, expected: Expected, probe: Probe, mark: Path = MARK) -> None:
    """Lets a job begin, or drains the node and raises HealthError: Slurm then requeues the job."""
    found = quick(expected, probe, mark)
    _tell(found)
    if any(one.is_sick for one in found):
        raise HealthError(f"{node} takes no job: {drain(node, found)}")


def check_idle(node: str, expected: Expected, probe: Probe) -> None:
    """Drains the node if it is sick. It is asked of idle nodes; where a job began meanwhile it goes on."""
    found = idle(expected, probe)
    _tell(found)
    if any(one.is_sick for one in found):
        drain(node, found)


def drain(node: str, found: Sequence[Finding], instance_id: str | None = None) -> str:
    """The reason that the node is drained with. One that is drained already keeps the reason it has."""
    reason = reason_for(instance_id or own_instance(), found)
    if "DRAIN" in states_of(node):
        log.warning("health %s: drained already; found: %s", node, reason)
        return reason
    log.warning("drain %s: %s", node, reason)
    slurm.scontrol("update", f"nodename={node}", "state=drain", f"reason={reason}")
    return reason


def check_without_job(node: str) -> None:
    """Raises HealthError where a job has the node: a deep check would disturb it."""
    if found := sorted(states_of(node) & _RUNNING):
        raise HealthError(f"{node} is {found[0]}: a deep check loads the GPUs - drain the node, and wait for its jobs")


def states_of(node: str) -> frozenset[str]:
    """The node's base state and flags. Raises SlurmError."""
    found = _STATE.search(slurm.scontrol("--oneliner", "show", "node", node))
    return frozenset(found[1].split("+")) if found else frozenset()


def own_instance() -> str:
    """The id of this machine."""
    try:
        return metadata.read("instance-id") or _UNKNOWN
    except metadata.MetadataError:
        return _UNKNOWN  # a machine without metadata is still to be drained


def as_json(found: Sequence[Finding]) -> str:
    """The findings as one document: {"healthy": ..., "findings": [{"kind", "severity", "text"}]}."""
    document = {"healthy": not any(one.is_sick for one in found), "findings": [asdict(one) for one in found]}
    return json.dumps(document, indent=2)


def as_text(found: Sequence[Finding]) -> str:
    """The findings as lines."""
    return "\n".join(f"{one.severity}: {one.text}" for one in found) or "healthy"


def _check(expected: Expected, probe: Probe, tools: frozenset[Tool], level: int, mark: Path) -> tuple[Finding, ...]:
    found = judge(expected, read_all(probe, tools, level=level))
    if any(one.is_sick for one in found):
        mark.unlink(missing_ok=True)
    else:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return found


def _tell(found: Sequence[Finding]) -> None:
    for one in found:
        log.info("health: %s: %s", one.severity, one.text)
