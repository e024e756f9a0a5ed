"""The life of this cluster, kept in the bucket beside the dump of its accounting: what `corral timeline` draws.

A life is one from up to down, whatever head it has: when it began stands on the state volume, which comes and goes with
the cluster.
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

from corral.agent import report
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, written
from corral.agent.slurm import SlurmError
from corral.model.head import History
from corral.model.lives import FORMAT, KeptLife, life_key, packed

NOTE = "life"  # the file's name, beside the events

log = logging.getLogger("corral.agent")


class LifeError(AgentError):
    """The life of the cluster cannot be written."""


class BucketLives:
    """The base's bucket. `client`: S3's, which may write this cluster's lives and no more."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client = client
        self._bucket = bucket

    def store(self, life: KeptLife) -> str:
        """Keeps it in the place of what was kept of the same life before. Where it is now. Raises LifeError."""
        from botocore.exceptions import BotoCoreError, ClientError

        key = life_key(life.cluster, life.began)
        where = f"s3://{self._bucket}/{key}"
        try:
            self._client.put_object(Bucket=self._bucket, Key=key, Body=packed(life))
        except (BotoCoreError, ClientError) as error:
            raise LifeError(f"{where} cannot be written: {error}") from error
        return where


def keep_life(
    lives: BucketLives,
    cluster: str,
    state: Path,
    head_since: Callable[[], int | None],
    clock: Callable[[], float] = time.time,
) -> None:
    """Keeps what has happened so far. `state`: where the events are. Raises LifeError.

    `head_since`: when this head was launched. What cannot be asked now is missing in what is kept.
    """
    now = int(clock())
    since = began(state, now)
    past = _history(since, now)
    life = KeptLife(
        format=FORMAT,
        cluster=cluster,
        began=since,
        kept=now,
        head_since=_asked(head_since),
        events=tuple(written(state / EVENTS.name)),
        runs=past.runs,
        problem=past.problem,
    )
    log.info("life: %s, %s events, %s runs of jobs", lives.store(life), len(life.events), len(life.runs))


def began(state: Path, now: float) -> int:
    """When this life of the cluster began, in seconds since 1970: the first event, or now where there is none.

    It is written down at the first time, since old events are forgotten.
    """
    note = state / NOTE
    with suppress(FileNotFoundError, ValueError):
        return int(note.read_text(encoding="utf-8"))
    found = _first(written(state / EVENTS.name), int(now))
    with suppress(OSError):  # a disk that is full is asked again the next time
        new = note.with_suffix(".new")
        new.write_text(f"{found}\n", encoding="utf-8")
        new.replace(note)
    return found


def _first(lines: Iterable[str], otherwise: int) -> int:
    """The time of the first line that has one."""
    for line in lines:
        with suppress(ValueError, KeyError, TypeError):
            return int(datetime.fromisoformat(json.loads(line)["at"]).timestamp())
    return otherwise


def _history(since: int, now: int) -> History:
    try:
        return report.history(since, now, most=sys.maxsize)
    except SlurmError as error:
        return History(runs=(), next=None, problem=f"jobs are missing: {error}")


def _asked(head_since: Callable[[], int | None]) -> int | None:
    try:
        return head_since()
    except AgentError as error:
        log.error("when this head was launched cannot be asked: %s", error)
        return None
