"""Coroutines of the agent in tests that share their thread with Pulumi's, which need the thread's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


def awaited(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What the coroutine returns. `asyncio.run` would leave the thread without an event loop."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()
