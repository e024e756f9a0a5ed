"""Preparing an account for corral, once: a place for Pulumi's states, a key for their secrets, roles of services,
policies for deployers.

What is there is left alone, so a second run makes nothing, an interrupted one is continued, and two at once end in the
same account. A step that AWS does not allow is noted with the permission that it lacks, and the others are still taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from corral.engine.bootstrap_steps import Blocked, Outdated, Step, Wanted
from corral.plan.deployer import permission

# How AWS says that something does not exist, by error code; HeadBucket has no code but its status.
NOT_THERE = frozenset(
    {
        "404",
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
ELSEWHERE = {"GetResources": "resourcegroupstaggingapi"}  # calls of another service than that of their step


class Outcome(StrEnum):
    """What became of a step; the values are shown."""

    MADE = "made"
    THERE = "was there"
    MISSING = "to make"
    REFUSED = "refused"
    FAILED = "failed"
    NOT_TRIED = "not tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A step and what became of it. `why`: the permission that is missing, what AWS said, how what is there differs."""

    step: Step
    outcome: Outcome
    why: str = ""

    @property
    def is_good(self) -> bool:
        """True if what the step is for exists."""
        return self.outcome in (Outcome.MADE, Outcome.THERE)


def identity(session: Any) -> str:
    """The number of the account that the session's credentials belong to. Raises ClientError where AWS refuses them."""
    return str(session.client("sts").get_caller_identity()["Account"])


def look(session: Any, wanted: Wanted, steps: Sequence[Step]) -> tuple[Done, ...]:
    """What is there already, in the order of the steps. Nothing is changed."""
    return tuple(_looked(session, wanted, step) for step in steps)


def make(
    session: Any, wanted: Wanted, looked: Sequence[Done], pause: Callable[[float], None] = time.sleep
) -> Iterator[Done]:
    """What became of each step, as it happens: what was missing is made, the rest stays as it was found."""
    failed: set[str | None] = set()
    for found in looked:
        done = found
        if found.outcome is Outcome.MISSING and found.step.needs in failed:
            done = replace(found, outcome=Outcome.NOT_TRIED, why=f"needs the {found.step.needs}")
        elif found.outcome is Outcome.MISSING:
            done = _made(session, wanted, found.step, pause)
        if not done.is_good:
            failed.add(done.step.key)
        yield done


def missing_permissions(done: Sequence[Done]) -> tuple[str, ...]:
    """The permissions that refused steps lack, each once, sorted."""
    return tuple(sorted({one.why for one in done if one.outcome is Outcome.REFUSED}))


def _looked(session: Any, wanted: Wanted, step: Step) -> Done:
    from botocore.exceptions import ClientError

    try:
        there = step.look(session.client, wanted)
    except ClientError as error:
        if _code(error) in NOT_THERE:
            return Done(step=step, outcome=Outcome.MISSING)
        return _not_done(step, error)
    except Outdated as error:
        return Done(step=step, outcome=Outcome.MISSING, why=str(error))
    except Blocked as error:
        return Done(step=step, outcome=Outcome.FAILED, why=str(error))
    return Done(step=step, outcome=Outcome.THERE if there else Outcome.MISSING)


def _made(session: Any, wanted: Wanted, step: Step, pause: Callable[[float], None]) -> Done:
    from botocore.exceptions import ClientError

    for attempt in range(1, TRIES + 1):
        try:
            made = step.make(session.client, wanted)
        except ClientError as error:
            if _code(error) == BUSY and attempt < TRIES:
                pause(PAUSE_S)
                continue
            return _not_done(step, error)
        return Done(step=step, outcome=Outcome.MADE if made else Outcome.THERE)
    raise AssertionError("the last attempt returns")


def _not_done(step: Step, error: Any) -> Done:
    if _code(error) in REFUSED:
        operation = str(error.operation_name)
        return Done(
            step=step, outcome=Outcome.REFUSED, why=permission(ELSEWHERE.get(operation, step.service), operation)
        )
    message = " ".join(str(error.response.get("Error", {}).get("Message", "")).split())
    return Done(step=step, outcome=Outcome.FAILED, why=f"{_code(error)}: {message}")


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
