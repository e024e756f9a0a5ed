"""Upload the cluster's history (events and job runs) to the bucket, next to the accounting backup.

`corral timeline` draws it. One history spans a deployment until its teardown, across replaced heads. Its start is
recorded on the state volume, which is created and deleted with the cluster.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from corral.agent import head_status
from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, read_lines
from corral.agent.slurm import SlurmError
from corral.model.head_report import JobRunPage
from corral.model.history import FORMAT, StoredHistory, history_key, pack

BEGAN_FILE = "life"  # next to the events; paths on the state volume are fixed

log = logging.getLogger("corral.agent")


class HistoryError(AgentError):
    """The cluster's history cannot be written."""


class BucketHistoryStore:
    """The histories in the base's bucket. `client`: an S3 client that may write this cluster's histories only."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def store(self, history: StoredHistory) -> str:
        """Write the history over its earlier version. Return its URL. Raises HistoryError."""
        key = history_key(history.cluster, history.began)
        where = f"s3://{self._bucket}/{key}"
        with aws_errors_as(HistoryError, f"write {where}"):
            self._client.put_object(Bucket=self._bucket, Key=key, Body=pack(history))
        return where


def upload_history(
    store: BucketHistoryStore,
    cluster: str,
    state: Path,
    head_since: Callable[[], int | None],
    clock: Callable[[], float] = time.time,
) -> None:
    """Upload the history so far. `state`: the directory of the events. Raises HistoryError.

    `head_since`: returns the launch time of this head. The upload lacks what cannot be read now.
    """
    now = int(clock())
    since = began(state, now)
    past = _history(since, now)
    history = StoredHistory(
        format=FORMAT,
        cluster=cluster,
        began=since,
        stored_at=now,
        head_since=_launched_at(head_since),
        events=tuple(read_lines(state / EVENTS.name)),
        runs=past.runs,
        problem=past.problem,
    )
    log.info("history: %s, %s events, %s runs of jobs", store.store(history), len(history.events), len(history.runs))


def began(state: Path, now: float) -> int:
    """When this history began, in seconds since 1970: the first event, or now without events.

    Recorded at the first call, because old events are rotated away.
    """
    file = state / BEGAN_FILE
    with suppress(FileNotFoundError, ValueError):
        return int(file.read_text(encoding="utf-8"))
    found = _first(read_lines(state / EVENTS.name), int(now))
    with suppress(OSError):  # a full disk: retry at the next call
        new = file.with_suffix(".new")
        new.write_text(f"{found}\n", encoding="utf-8")
        new.replace(file)
    return found


def _first(lines: Iterable[str], otherwise: int) -> int:
    """The time of the first line that has one."""
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            return int(datetime.fromisoformat(json.loads(line)["at"]).timestamp())
    return otherwise


def _history(since: int, now: int) -> JobRunPage:
    try:
        return head_status.job_run_page(since, now, limit=sys.maxsize)
    except SlurmError as error:
        return JobRunPage(runs=(), next=None, problem=f"jobs are missing: {error}")


def _launched_at(head_since: Callable[[], int | None]) -> int | None:
    try:
        return head_since()
    except AgentError as error:
        log.error("cannot read the launch time of this head: %s", error)
        return None
