"""Back up the accounting database to the bucket once a day.

The object outlives the cluster: a later cluster of the same name starts with its records (`accounting.database`).
"""

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from corral.agent.aws_errors import aws_errors_as
from corral.agent.errors import AgentError
from corral.agent.process_lock import exclusive
from corral.model.accounting_paths import DATABASE, DATABASE_SOCKET, accounting_backup_key

DAY_S = 24 * 3600
RETRY_S = 3600  # after a failed backup
STATE_DIR = Path("/var/lib/corral")  # on the state volume
COMMAND = ("/opt/corral/bin/corral-agent", "backup")
# One transaction, so that slurmdbd can continue to write; --quick, so that no table has to fit into memory.
_DUMP = 'mariadb-dump --no-defaults --user=root "--socket=$1" --single-transaction --quick "$2" | gzip >"$3"'

log = logging.getLogger("corral.agent")


class BackupError(AgentError):
    """A backup cannot be made, written or read."""


class BackupStore(Protocol):
    """The store of the cluster's newest backup."""

    def fetch(self, file: Path) -> float | None:
        """Write the backup to the file. Return its time in seconds since 1970, or None if there is no backup."""
        ...

    def store(self, file: Path) -> str:
        """Replace the backup with this file atomically. Return its location, for people."""
        ...


class BucketBackupStore:
    """The backup in the base's bucket. `client`: an S3 client."""

    def __init__(self, client: Any, bucket: str, cluster: str) -> None:
        self._client = client
        self._bucket = bucket
        self._key = accounting_backup_key(cluster)

    def fetch(self, file: Path) -> float | None:
        """As BackupStore.fetch. Lists first: without permission to list, S3 answers 403 for a missing object."""
        with aws_errors_as(BackupError, f"read {self._url}"):
            found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._key).get("Contents", ())
            made = [one["LastModified"].timestamp() for one in found if one["Key"] == self._key]
            if not made:
                return None
            with file.open("wb") as stream:
                self._client.download_fileobj(self._bucket, self._key, stream)
        return float(made[0])

    def store(self, file: Path) -> str:
        """As BackupStore.store. S3 writes an object atomically; 5 GiB and more would need several parts."""
        with aws_errors_as(BackupError, f"write {self._url}"), file.open("rb") as body:
            self._client.put_object(Bucket=self._bucket, Key=self._key, Body=body)
        return self._url

    @property
    def _url(self) -> str:
        return f"s3://{self._bucket}/{self._key}"


def back_up(
    store: BackupStore,
    run: Callable[[Sequence[str]], str],
    is_complete: Callable[[], bool],
    *,
    state_dir: Path = STATE_DIR,
    socket: Path = Path(DATABASE_SOCKET),
) -> None:
    """Back up the database. Do nothing while another backup runs. Raises AgentError.

    `is_complete`: returns whether the database is complete; one still being restored must not replace a good backup.
    """
    with exclusive(state_dir / "dump.lock") as first:
        if not first:
            log.info("backup: another one is already running")
            return
        if not is_complete():
            raise BackupError(
                "the accounting database does not run or is incomplete - run `corral-agent boot`, which completes it"
            )
        (state_dir / "dump.tried").touch()
        file = state_dir / "dump.sql.gz"
        file.unlink(missing_ok=True)
        file.touch(mode=0o600)
        run(("bash", "-o", "pipefail", "-c", _DUMP, "dump", str(socket), DATABASE, str(file)))
        log.info("backup: %s, %s bytes", store.store(file), file.stat().st_size)
        file.unlink()
        (state_dir / "dump.done").touch()


def is_due(done: float | None, tried: float | None, now: float) -> bool:
    """True if a backup is due: a day after the last good one, an hour after a failed one.

    Times are in seconds since 1970; None if there was none yet.
    """
    if tried is not None and now - tried < RETRY_S:
        return False
    return done is None or now - done >= DAY_S


def back_up_if_due(state_dir: Path = STATE_DIR, command: Sequence[str] = COMMAND) -> bool:
    """Start a backup if one is due; return whether it was. A background task of the autoscaler.

    A backup can take minutes, so a separate process makes it. The attempt is recorded first: the next call starts none.
    """
    if not is_due(_modified(state_dir / "dump.done"), _modified(state_dir / "dump.tried"), time.time()):
        return False
    (state_dir / "dump.tried").touch()
    subprocess.run(("setsid", "--fork", *command), stdin=subprocess.DEVNULL, check=False)
    return True


def _modified(file: Path) -> float | None:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return None
