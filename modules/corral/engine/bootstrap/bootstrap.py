"""Runs the steps that prepare an AWS account: state bucket, key, service-linked roles, policies, documents.

Existing resources stay unchanged: a second run creates nothing, a run continues an interrupted one, and two concurrent
runs produce the same account. A denied step is recorded with its missing permission; the other steps still run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from corral.engine.bootstrap.bucket_steps import BUCKET_STEPS
from corral.engine.bootstrap.document_steps import DOCUMENT_STEPS
from corral.engine.bootstrap.iam_steps import iam_steps
from corral.engine.bootstrap.key_steps import KEY_STEPS
from corral.engine.bootstrap.step import Blocked, BootstrapTarget, Outdated, Step
from corral.plan.iam.deployer_policy import permission

# Error codes for something that does not exist; HeadBucket has only its status.
NOT_THERE = frozenset(
    {
        "404",
        "InvalidDocument",
        "NoSuchBucket",
        "NoSuchBucketPolicy",
        "NoSuchEntity",
        "NoSuchLifecycleConfiguration",
        "NoSuchPublicAccessBlockConfiguration",
        "NotFoundException",
        "ServerSideEncryptionConfigurationNotFoundError",
    }
)
REFUSED = frozenset({"403", "AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
BUSY = "OperationAborted"  # S3 while another change of the same bucket is under way. Source: S3 API, error responses
TRIES, PAUSE_S = 10, 1.0
ELSEWHERE = {"GetResources": "resourcegroupstaggingapi"}  # calls to another service than the step's


class StepOutcome(StrEnum):
    """The outcome of a step; the values are displayed."""

    CREATED = "created"
    EXISTS = "exists"
    MISSING = "to create"
    DENIED = "denied"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """A step and its outcome. `reason`: the missing permission, AWS's error, or how the existing resource differs."""

    step: Step
    outcome: StepOutcome
    reason: str = ""

    @property
    def exists(self) -> bool:
        """True if the step's resource exists."""
        return self.outcome in (StepOutcome.CREATED, StepOutcome.EXISTS)


def bootstrap_steps() -> tuple[Step, ...]:
    """All steps, each after those that it needs."""
    return (*BUCKET_STEPS, *KEY_STEPS, *iam_steps(), *DOCUMENT_STEPS)


def inspect_steps(session: Any, target: BootstrapTarget, steps: Sequence[Step]) -> tuple[StepResult, ...]:
    """The result of looking for each step's resource, in order. Changes nothing.

    Skips what needs a resource that cannot be used: each would be another denied call about the same cause.
    """
    found: list[StepResult] = []
    unusable: set[str | None] = set()
    for step in steps:
        one = _skipped(step) if step.needs in unusable else _inspect(session, target, step)
        if one.outcome is StepOutcome.FAILED:
            unusable.add(step.key)
        found.append(one)
    return tuple(found)


def create_missing(
    session: Any, target: BootstrapTarget, inspected: Sequence[StepResult], pause: Callable[[float], None] = time.sleep
) -> Iterator[StepResult]:
    """Creates the missing resources. Yields the result of each step as it happens."""
    failed: set[str | None] = set()
    for found in inspected:
        done = found
        if found.outcome is StepOutcome.MISSING and found.step.needs in failed:
            done = _skipped(found.step)
        elif found.outcome is StepOutcome.MISSING:
            done = _create(session, target, found.step, pause)
        if not done.exists:
            failed.add(done.step.key)
        yield done


def missing_permissions(results: Sequence[StepResult]) -> tuple[str, ...]:
    """The permissions that denied steps lack, unique and sorted."""
    return tuple(sorted({one.reason for one in results if one.outcome is StepOutcome.DENIED}))


def _skipped(step: Step) -> StepResult:
    return StepResult(step=step, outcome=StepOutcome.SKIPPED, reason=f"needs the {step.needs}")


def _inspect(session: Any, target: BootstrapTarget, step: Step) -> StepResult:
    from botocore.exceptions import ClientError

    try:
        there = step.exists(session.client, target)
    except ClientError as error:
        if _code(error) in NOT_THERE:
            return StepResult(step=step, outcome=StepOutcome.MISSING)
        return _failure(step, error)
    except Outdated as error:
        return StepResult(step=step, outcome=StepOutcome.MISSING, reason=str(error))
    except Blocked as error:
        return StepResult(step=step, outcome=StepOutcome.FAILED, reason=str(error))
    return StepResult(step=step, outcome=StepOutcome.EXISTS if there else StepOutcome.MISSING)


def _create(session: Any, target: BootstrapTarget, step: Step, pause: Callable[[float], None]) -> StepResult:
    from botocore.exceptions import ClientError

    for attempt in range(1, TRIES + 1):
        try:
            made = step.create(session.client, target)
        except ClientError as error:
            if _code(error) == BUSY and attempt < TRIES:
                pause(PAUSE_S)
                continue
            return _failure(step, error)
        return StepResult(step=step, outcome=StepOutcome.CREATED if made else StepOutcome.EXISTS)
    raise AssertionError("the last attempt returns")


def _failure(step: Step, error: Any) -> StepResult:
    if _code(error) in REFUSED:
        operation = str(error.operation_name)
        return StepResult(
            step=step, outcome=StepOutcome.DENIED, reason=permission(ELSEWHERE.get(operation, step.service), operation)
        )
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    return StepResult(step=step, outcome=StepOutcome.FAILED, reason=f"{_code(error)}: {message}")


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
