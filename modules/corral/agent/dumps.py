"""Dumps of the accounting database: when one is due, how it is made, and the object in the bucket that it goes to.

The object outlives the cluster; a later cluster of the same name begins with its records (`accounting`).
"""

import logging
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from corral.agent.alone import alone
from corral.agent.errors import AgentError
from corral.model.accounting import DATABASE, DATABASE_SOCKET, dump_key

DAY_S = 24 * 3600
RETRY_S = 3600  # after one that failed
NOTES = Path("/var/lib/corral")  # on the state volume
COMMAND = ("/opt/corral/bin/corral-agent", "dump")
# One transaction, so that slurmdbd goes on writing; --quick, so that no table need fit into memory.
_DUMP = 'mariadb-dump --no-defaults --user=root "--socket=$1" --single-transaction --quick "$2" | gzip >"$3"'

log = logging.getLogger("corral.agent")


class DumpError(AgentError):
    """A dump that cannot be made, written or read."""


class Dumps(Protocol):
    """Where the cluster's dump is kept: one, the newest."""

    def fetch(self, file: Path) -> float | None:
        """Writes the dump to the file. When it was made, in seconds since 1970; None where there is none yet."""
        ...

    def store(self, file: Path) -> str:
        """Keeps this file in the place of the dump before, whole or not at all. Where it is now, for people."""
        ...


class BucketDumps:
    """In the base's bucket. `client`: S3's."""

    def __init__(self, client: Any, bucket: str, cluster: str) -> None:
        self._client = client
        self._bucket = bucket
        self._key = dump_key(cluster)

    def fetch(self, file: Path) -> float | None:
        """As Dumps says. It is listed first: S3 denies an object that is not there to who may not list the bucket."""
        with self._explained("read"):
            found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._key).get("Contents", ())
            made = [one["LastModified"].timestamp() for one in found if one["Key"] == self._key]
            if not made:
                return None
            with file.open("wb") as stream:
                self._client.download_fileobj(self._bucket, self._key, stream)
        return float(made[0])

    def store(self, file: Path) -> str:
        """As Dumps says. An object of S3 is there whole or not at all; one of 5 GiB and more would need parts."""
        with self._explained("written"), file.open("rb") as body:
            self._client.put_object(Bucket=self._bucket, Key=self._key, Body=body)
        return self._url

    @property
    def _url(self) -> str:
        return f"s3://{self._bucket}/{self._key}"

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (Boto3Error, BotoCoreError, ClientError) as error:
            raise DumpError(f"{self._url} cannot be {done}: {error}") from error


def dump(
    dumps: Dumps,
    run: Callable[[Sequence[str]], str],
    is_whole: Callable[[], bool],
    *,
    notes: Path = NOTES,
    socket: Path = Path(DATABASE_SOCKET),
) -> None:
    """Dumps the database. `is_whole`: a database that is still being filled must not replace a good dump.

    Does nothing where another one is at it. Raises AgentError.
    """
    with alone(notes / "dump.lock") as first:
        if not first:
            log.info("dump: another one is being made")
            return
        if not is_whole():
            raise DumpError("the accounting database is not there, or not filled yet - `corral-agent boot` fills it")
        (notes / "dump.tried").touch()
        file = notes / "dump.sql.gz"
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        run(("bash", "-o", "pipefail", "-c", _DUMP, "dump", str(socket), DATABASE, str(file)))
        log.info("dump: %s, %s bytes", dumps.store(file), file.stat().st_size)
        file.unlink()
        (notes / "dump.done").touch()


def is_due(done: float | None, tried: float | None, now: float) -> bool:
    """True if a dump is to be made: a day after the last good one, an hour after one that failed.

    All in seconds since 1970; None: there was none yet.
    """
    if tried is not None and now - tried < RETRY_S:
        return False
    return done is None or now - done >= DAY_S


def dump_if_due(notes: Path = NOTES, command: Sequence[str] = COMMAND) -> bool:
    """True if a dump was due: it is made by a process of its own, since it can take minutes. For the keeper's turns.

    The start is noted here, so that the next turn does not start another one.
    """
    if not is_due(_when(notes / "dump.done"), _when(notes / "dump.tried"), time.time()):
        return False
    (notes / "dump.tried").touch()
    subprocess.run(("setsid", "--fork", *command), stdin=subprocess.DEVNULL, check=False)
    return True


def _when(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None
