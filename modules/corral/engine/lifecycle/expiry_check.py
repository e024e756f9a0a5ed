"""Refuses to deploy an expired cluster: its head would terminate itself after minutes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from corral.engine.lifecycle.session import stack_account
from corral.engine.pulumi.stack import Stack, resources
from corral.inventory.scan import read_expiry
from corral.model.timeouts import EXPIRY_WARNING_S
from corral.spec.models.cluster import ClusterSpec
from corral.spec.models.durations import format_duration
from corral.stacks import admission

_SOON = timedelta(seconds=EXPIRY_WARNING_S)


def check_expiry(cluster: Stack, state: Mapping[str, Any] | None, spec: ClusterSpec) -> None:
    """Raises Refused if the cluster has expired; prints a warning if it is about to.

    A spec without lifetime.ttl removes the end with this deployment.
    """
    if spec.lifetime.ttl is None or not resources(state):
        return
    end, now = read_expiry(stack_account(cluster), cluster.name), datetime.now(UTC)
    admission.refuse_expired(cluster.name, end, now, cluster.account_option)
    if end is not None and end <= now + _SOON:
        later = f"corral extend {cluster.name} 4h{cluster.account_option}"
        cluster.display.write(f"{cluster.title} ends in {format_duration(end - now)}; to extend it: {later}")
