"""Coroutines of the agent in tests that share their thread with Pulumi's, which need the thread's own event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any, TypeVar

from corral.agent.local_http import LocalServer

Result = TypeVar("Result")


def awaited(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What the coroutine returns. `asyncio.run` would leave the thread without an event loop."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


def apart(function: Callable[..., Result], *arguments: object) -> Result:
    """What the function returns in a thread of its own: it may use `asyncio.run`."""
    with ThreadPoolExecutor(max_workers=1) as threads:
        return threads.submit(function, *arguments).result()


@contextmanager
def serving(server: LocalServer) -> Iterator[None]:
    """A block during which the server answers, in a thread of its own."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(server.serve_forever())

    def run() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)

    thread = Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        for rest in asyncio.all_tasks(loop):
            rest.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(rest)
        loop.close()
