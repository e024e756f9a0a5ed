"""Waiting for what another process does."""

import time
from collections.abc import Callable

SOON_S = 60  # a loaded machine starts a Python with boto3 in some seconds


def until(true: Callable[[], object], within_s: float = SOON_S) -> None:
    """Waits until it is true; that it comes true in time is the claim."""
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
