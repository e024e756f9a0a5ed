"""Runs the checks of `preflight` before a deployment.

A failing check stops the first deployment. Later ones only print it, since an expired capacity block, for example, must
not prevent a change. A wrong network always stops the deployment: machines in it would never answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from corral.engine.engine_errors import CANNOT_START, EngineError
from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack
from corral.model.base import BasePlan
from corral.model.cluster import ClusterPlan
from corral.preflight.preflight_findings import PreflightFinding, PreflightRequest, PreflightVerdict

NETWORK, IMAGES = "network", "images"
# An interrupted first deployment leaves groups without rules; the next one creates them.
CREATED_BY_FIRST_UP = frozenset({"groups"})


def require_startable(stack: Stack, base: BasePlan, cluster: ClusterPlan, *, is_up: bool, network_only: bool) -> None:
    """Raises EngineError with all failing checks; prints warnings.

    `network_only`: check only an existing VPC. `is_up`: the cluster is already deployed.
    """
    left_out = frozenset() if is_up else CREATED_BY_FIRST_UP
    if network_only and base.adopted_vpc is None:
        return
    findings = _run(lambda name: (name == NETWORK or not network_only) and name not in left_out, stack, base, cluster)
    stopping = [one for one in findings if one.verdict is PreflightVerdict.FAIL and (one.check == NETWORK or not is_up)]
    if stopping:
        raise _refusal(stack, base, cluster, stopping)
    for one in findings:
        if one.verdict in (PreflightVerdict.WARN, PreflightVerdict.FAIL):
            stack.display.write(f"check {one.check}: {_line(one)}")


def require_usable_images(stack: Stack, base: BasePlan, cluster: ClusterPlan) -> None:
    """Raises EngineError if a machine of the cluster cannot boot its image: its own, or the newest of its profile."""
    findings = _run(lambda name: name == IMAGES, stack, base, cluster)
    wrong = [_line(one) for one in findings if one.verdict is PreflightVerdict.FAIL]
    if wrong:
        raise EngineError(f"{stack.title}: its machines cannot boot these images", wrong, CANNOT_START)


def _run(
    chosen: Callable[[str], bool], stack: Stack, base: BasePlan, cluster: ClusterPlan
) -> Sequence[PreflightFinding]:
    """The findings of the checks with these names, now."""
    from corral.preflight.checks import CHECKS, run

    request = PreflightRequest(base=base, cluster=cluster, now=datetime.now(UTC))
    return run([one for one in CHECKS if chosen(one.name)], stack_account(stack), request)


def _refusal(stack: Stack, base: BasePlan, cluster: ClusterPlan, found: Sequence[PreflightFinding]) -> EngineError:
    if all(one.check == NETWORK for one in found):
        sentence = f"{stack.title}: {base.adopted_vpc} cannot be used"
        return EngineError(sentence, [_line(one) for one in found], CANNOT_START)
    sentence = f"the account cannot start {cluster.name} (`corral check {cluster.name}{stack.account_option}`)"
    lines = [f"{one.check}: {_line(one)}" for one in found]
    return EngineError(sentence, [*lines, "add --no-check to skip the checks"], CANNOT_START)


def _line(finding: PreflightFinding) -> str:
    return f"{finding.about}: {finding.message} - {finding.fix}"
