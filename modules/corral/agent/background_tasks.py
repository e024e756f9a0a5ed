"""Periodic tasks of the agent's daemons.

Each runs in its own thread, so that an apply that hangs does not block the end of the cluster. A failure is logged,
and the task runs again at its next time.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corral.agent.errors import AgentError

log = logging.getLogger("corral.agent")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """`act` runs every `every_s` seconds, the first time after `first_s`."""

    name: str
    every_s: float
    act: Callable[[], object]
    first_s: float = 0.0


def start_tasks(tasks: Sequence[BackgroundTask]) -> None:
    """Start each task in its own thread, for the rest of the process."""
    for task in tasks:
        threading.Thread(target=_run_forever, args=(task,), name=task.name, daemon=True).start()


def _run_forever(task: BackgroundTask) -> None:
    time.sleep(task.first_s)
    while True:
        run_task(task)
        time.sleep(task.every_s)


def run_task(task: BackgroundTask) -> None:
    """Run a task once. A failure is logged."""
    try:
        task.act()
    except AgentError as error:
        log.error("%s: %s", task.name, error)
    except Exception:  # an unexpected error must not end the thread
        log.exception("%s failed", task.name)
