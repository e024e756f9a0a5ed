"""A head that is shutting down. The provider takes it for a head until it is terminated, so a deployment waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from corral.engine.engine_errors import EngineError
from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack, resources

INSTANCE = "aws:ec2/instance:Instance"


def await_ended_head(stack: Stack, state: Mapping[str, Any] | None) -> None:
    """Wait until the head of this cluster is terminated if it is shutting down.

    Otherwise the deployment would leave the cluster without a head. Raises EngineError after 15 minutes.
    """
    from corral.inventory.ending_instances import await_termination

    if not (ending := _ending_heads(stack, state)):
        return
    stack.display.write(f"{stack.title}: waiting until the former head {', '.join(ending)} is terminated")
    try:
        await_termination(lambda: _ending_heads(stack, state))
    except TimeoutError as error:
        raise EngineError(f"{stack.title}: {error}", ("try again in some minutes",)) from None


def report_ending_head(stack: Stack, state: Mapping[str, Any] | None) -> None:
    """Say that a preview does not show the next head, if the head of this cluster is shutting down."""
    if ending := _ending_heads(stack, state):
        stack.display.write(
            f"{stack.title}: the head {', '.join(ending)} is shutting down: corral up waits until it is terminated,"
            " and creates another"
        )


def _ending_heads(stack: Stack, state: Mapping[str, Any] | None) -> tuple[str, ...]:
    from corral.inventory.ending_instances import list_ending_instances

    heads = [str(one["id"]) for one in resources(state) if one["type"] == INSTANCE and one.get("id")]
    return list_ending_instances(stack_account(stack), heads)
