"""Run the checks: at boot, before a job (Slurm's Prolog), on idle nodes (its HealthCheckProgram), or by hand.

A check only drains its node, which harms no running job. The autoscaler replaces idle nodes that are drained as sick.
"""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from corral.agent import imds_client, slurm
from corral.agent.errors import AgentError
from corral.agent.health.drain_reason import reason_for
from corral.agent.health.evaluate import Expected, evaluate
from corral.agent.health.findings import HealthFinding
from corral.agent.health.probes import QUICK, Probe, Tool, read_all

MARK = Path("/run/corral/healthy")  # touched by each check without a sick finding; `prolog` reads its age
_UNKNOWN = "i-0"  # the id if the metadata service does not answer
_STATE = re.compile(r"\bState=(\S+)")
_RUNNING = frozenset({"ALLOCATED", "MIXED", "COMPLETING"})

log = logging.getLogger("corral.agent")


class HealthError(AgentError):
    """The machine is not fit for jobs; the text is the reason."""


def quick(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[HealthFinding, ...]:
    """Check devices, memory errors, interfaces, mounts and the clock, in at most five seconds."""
    return _check(expected, probe, expected.tools & QUICK, 1, mark)


def idle(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[HealthFinding, ...]:
    """Check within slurmd's 60 seconds, without loading a GPU: as quick, plus Xids, NVLinks and DCGM level 1."""
    return _check(expected, probe, expected.tools, 1, mark)


def deep(expected: Expected, probe: Probe, mark: Path = MARK) -> tuple[HealthFinding, ...]:
    """Check for minutes, with DCGM level 2, which loads the GPUs: for nodes without a job."""
    return _check(expected, probe, expected.tools, 2, mark)


def check_boot(expected: Expected, probe: Probe) -> None:
    """Raise HealthError if the machine must not join; it then powers off and is replaced."""
    found = quick(expected, probe)
    _log_findings(found)
    if sick := [one.text for one in found if one.is_sick]:
        raise HealthError(f"the machine is not fit for jobs: {'; '.join(sick)}")


def prolog(node: str, expected: Expected, probe: Probe, mark: Path = MARK) -> None:
    """Let a job start, or drain the node and raise HealthError, on which Slurm requeues the job."""
    found = quick(expected, probe, mark)
    _log_findings(found)
    if any(one.is_sick for one in found):
        raise HealthError(f"{node} accepts no job: {drain_sick_node(node, found)}")


def check_idle(node: str, expected: Expected, probe: Probe) -> None:
    """Drain the node if it is sick. Runs on idle nodes; a job that started meanwhile continues."""
    found = idle(expected, probe)
    _log_findings(found)
    if any(one.is_sick for one in found):
        drain_sick_node(node, found)


def drain_sick_node(node: str, found: Sequence[HealthFinding], instance_id: str | None = None) -> str:
    """Drain the node and return the reason. A node that is drained already keeps its reason."""
    reason = reason_for(instance_id or own_instance(), found)
    if "DRAIN" in states_of(node):
        log.warning("health %s: already drained; found: %s", node, reason)
        return reason
    log.warning("drain %s: %s", node, reason)
    slurm.scontrol("update", f"nodename={node}", "state=drain", f"reason={reason}")
    return reason


def check_without_job(node: str) -> None:
    """Raise HealthError if a job runs on the node: a deep check would disturb it."""
    if found := sorted(states_of(node) & _RUNNING):
        raise HealthError(
            f"{node} is {found[0]}, and a deep check loads the GPUs - drain the node and wait for its jobs"
        )


def states_of(node: str) -> frozenset[str]:
    """The node's base state and flags. Raises SlurmError."""
    found = _STATE.search(slurm.scontrol("--oneliner", "show", "node", node))
    return frozenset(found[1].split("+")) if found else frozenset()


def own_instance() -> str:
    """The id of this machine."""
    try:
        return imds_client.read("instance-id") or _UNKNOWN
    except imds_client.MetadataError:
        return _UNKNOWN  # a sick node must be drained even without metadata


def as_json(found: Sequence[HealthFinding]) -> str:
    """The findings as one document: {"healthy": ..., "findings": [{"kind", "severity", "message", "fix"}]}."""
    document = {"healthy": not any(one.is_sick for one in found), "findings": [asdict(one) for one in found]}
    return json.dumps(document, indent=2)


def as_text(found: Sequence[HealthFinding]) -> str:
    """The findings as lines."""
    return "\n".join(f"{one.severity}: {one.text}" for one in found) or "healthy"


def _check(
    expected: Expected, probe: Probe, tools: frozenset[Tool], level: int, mark: Path
) -> tuple[HealthFinding, ...]:
    found = evaluate(expected, read_all(probe, tools, level=level))
    if any(one.is_sick for one in found):
        mark.unlink(missing_ok=True)
    else:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return found


def _log_findings(found: Sequence[HealthFinding]) -> None:
    for one in found:
        log.info("health: %s: %s", one.severity, one.text)
