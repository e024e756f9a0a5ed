"""Instances that are shutting down. They cannot run again, but hold their volumes and interfaces until they end."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any

_PATIENCE_S = 900  # a p5 takes minutes to shut down, and its interfaces hold the security group until then
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0  # an instance of the box terminates at once


def list_ending_instances(session: Any, ids: Collection[str]) -> tuple[str, ...]:
    """Those of these instances that are shutting down, sorted."""
    if not ids:
        return ()
    filters = [
        {"Name": "instance-id", "Values": sorted(ids)},
        {"Name": "instance-state-name", "Values": ["shutting-down"]},
    ]
    pages = session.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return tuple(
        sorted(one["InstanceId"] for page in pages for held in page["Reservations"] for one in held["Instances"])
    )


def await_termination(find: Callable[[], Collection[str]]) -> None:
    """Return once `find` finds no instance.

    Raises TimeoutError, with the ids of those that are left after 15 minutes.
    """
    deadline, pause_s = time.monotonic() + _PATIENCE_S, _FIRST_PAUSE_S
    while left := find():
        if time.monotonic() > deadline:
            raise TimeoutError(f"instances did not terminate: {', '.join(sorted(left))}")
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
