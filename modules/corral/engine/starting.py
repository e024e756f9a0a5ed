"""Before anything is made: whether the account can start the environment, by the checks of `preflight`.

A wrong network would be found by machines that never answer, so it always stops an up. What else is in the way stops
the first one; who changes what runs already is only told, since a block that has ended must keep nobody from a change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from corral.engine.errors import CANNOT_START, EngineError
from corral.engine.stack import Stack
from corral.engine.workplace import account_of
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.preflight.findings import Finding, Verdict, Wanted

GROUND = "network"
# The box launches spot machines without a role of spot's (docs/fidelity.md); who wants to see it asks `corral check`.
NOT_IN_THE_BOX = frozenset({"service-roles"})
# A first up that was cut off has left groups without their rules, and this one makes them.
MADE_BY_THE_FIRST = frozenset({"groups"})


def require_start(
    stack: Stack, base: BasePlan, cluster: ClusterPlan, *, in_box: bool, is_up: bool, ground_alone: bool
) -> None:
    """Raises EngineError with everything that is in the way. What only may be is told.

    `ground_alone`: only an adopted network is looked at. `is_up`: the cluster is there already.
    """
    from corral.preflight.checks import CHECKS, run

    left_out = (NOT_IN_THE_BOX if in_box else frozenset()) | (frozenset() if is_up else MADE_BY_THE_FIRST)
    chosen = [one for one in CHECKS if (one.name == GROUND or not ground_alone) and one.name not in left_out]
    if ground_alone and base.adopted_vpc is None:
        return
    findings = run(chosen, account_of(stack), Wanted(base=base, cluster=cluster, now=datetime.now(UTC)))
    stopping = [one for one in findings if one.verdict is Verdict.FAIL and (one.check == GROUND or not is_up)]
    if stopping:
        raise _refusal(stack, base, cluster, stopping)
    for one in findings:
        if one.verdict in (Verdict.WARN, Verdict.FAIL):
            stack.printer.say(f"check {one.check}: {_line(one)}")


def _refusal(stack: Stack, base: BasePlan, cluster: ClusterPlan, found: Sequence[Finding]) -> EngineError:
    if all(one.check == GROUND for one in found):
        sentence = f"{stack.title}: {base.adopted_vpc} cannot be used as it is"
        return EngineError(sentence, [f"{one.text} - {one.fix}" for one in found], CANNOT_START)
    sentence = f"the account cannot start {cluster.name} as it is (`corral check {cluster.name}{stack.account_option}`)"
    lines = [f"{one.check}: {_line(one)}" for one in found]
    return EngineError(sentence, [*lines, "`--no-check` goes on without having looked"], CANNOT_START)


def _line(finding: Finding) -> str:
    return f"{finding.about}: {finding.text} - {finding.fix}"
