"""Start MariaDB and slurmdbd on a head, with the job records of this cluster and of earlier ones of the same name.

Every step is idempotent, so an interrupted boot continues. The data is on the state volume, where a replaced head finds
it. A new volume is restored from the backup of an earlier cluster of the same name.
"""

import logging
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from corral.agent.accounting.backup import STATE_DIR, BackupStore
from corral.agent.accounting.slurm_accounts import SlurmAccounts
from corral.agent.accounting.waits import await_condition, await_slurmdbd, slurmdbd_listens
from corral.agent.config.file_placements import FIRST_JOB
from corral.agent.file_install import Placement, install
from corral.agent.host.base import Host, HostError, mariadb, slurmdbd
from corral.model.accounting_paths import DATABASE, DATABASE_DIR, DATABASE_SOCKET, DATABASE_USER
from corral.model.cluster import ClusterPlan

Run = Callable[[Sequence[str]], str]
# A second database, whose existence marks the first as complete: one statement creates it, in the same directory.
READY = "corral"
_MARIADB_IN_S = 300  # after a crash it first repairs its tables
_LARGEST_JOB = 0x03FF0000  # slurm.conf(5), MaxJobId: the default, and the largest
_CANCELLED = 4  # slurm.h, enum job_states
_RESTORE = 'file=$1; shift; gzip -dc "$file" | "$@"'
# --binary-mode: otherwise the client runs what a dump says after `\!` (MDEV-21778). --local-infile: it sends no files.
_CLOSED = ("--binary-mode", "--local-infile=0")
_OWNER = f"{DATABASE_USER}@localhost"

log = logging.getLogger("corral.agent")


class Database:
    """MariaDB on this machine, over its socket."""

    def __init__(self, run: Run, socket: Path = Path(DATABASE_SOCKET)) -> None:
        self._run = run
        self.socket = socket

    def execute(self, statement: str, as_owner: Sequence[str] = ()) -> str:
        """Execute the statements as root and return their output, one row a line. Raises HostError.

        `as_owner`: as for `load`. Whatever reads slurmdbd's tables needs it: a view may call a function, which has the
        rights of who reads.
        """
        return self._run((*self._client(as_owner), "--batch", "--skip-column-names", f"--execute={statement}"))

    def answers(self) -> bool:
        """True if MariaDB accepts statements."""
        try:
            self.execute("SELECT 1")
        except HostError:
            return False
        return True

    def is_complete(self) -> bool:
        """True if the database is complete, with the restored records of an earlier cluster if there were any."""
        return self.answers() and bool(self.execute(f"SHOW DATABASES LIKE '{READY}'").strip())

    def load(self, backup: Path, as_owner: Sequence[str]) -> None:
        """Load a backup into slurmdbd's database. Raises HostError.

        `as_owner`: the words that run the client as slurmdbd's user, who has rights on that database alone; empty to
        connect as root, on a machine with a single user.
        """
        client = (*self._client(as_owner), *_CLOSED, DATABASE)
        self._run(("bash", "-o", "pipefail", "-c", _RESTORE, "restore", str(backup), *client))

    def _client(self, as_owner: Sequence[str]) -> Sequence[str]:
        user = DATABASE_USER if as_owner else "root"
        return (*as_owner, "mariadb", "--no-defaults", f"--user={user}", f"--socket={self.socket}")


class Accounting:
    """The steps of a head's boot before slurmctld starts.

    `root`: the root of written files. `data`, `state_dir`: directories on the state volume. `listens`: returns whether
    slurmdbd accepts connections.
    """

    def __init__(
        self,
        run: Run,
        backups: BackupStore,
        *,
        database: Database | None = None,
        data: Path = Path(DATABASE_DIR),
        state_dir: Path = STATE_DIR,
        root: Path = Path("/"),
        listens: Callable[[], bool] | None = None,
    ) -> None:
        self._run = run
        self._backups = backups
        self._database = database or Database(run)
        self._data = data
        self._state_dir = state_dir
        self._root = root
        self._listens = listens or slurmdbd_listens
        self._as_owner: Sequence[str] = ()

    def start(self, plan: ClusterPlan, host: Host, state_dir: Path) -> None:
        """Start MariaDB and slurmdbd. `state_dir`: slurmctld's StateSaveLocation. Raises AgentError."""
        self._make_data()
        host.start(mariadb())
        await_condition(self._database.answers, _MARIADB_IN_S, "MariaDB does not answer - see its log")
        self._as_owner = host.as_user(DATABASE_USER)
        self._fill(plan.name)
        self._write_first_job(plan, state_dir)
        host.start(slurmdbd(plan.image.slurm_sbin))
        await_slurmdbd(self._listens)
        # QOS count devices, of which slurmdbd hears from slurmctld.
        SlurmAccounts(self._run, state_dir=self._state_dir, listens=self._listens).sync(plan, qos=False)

    def _make_data(self) -> None:
        """Create an empty data directory, renamed when complete."""
        if self._data.is_dir() and any(self._data.iterdir()):
            return
        new = self._data.with_name(f"{self._data.name}.new")
        shutil.rmtree(new, ignore_errors=True)
        options = ("--skip-test-db", "--auth-root-authentication-method=socket")
        self._run(("mariadb-install-db", "--user=mysql", f"--datadir={new}", *options))
        if self._data.is_dir():
            self._data.rmdir()
        new.rename(self._data)

    def _fill(self, cluster: str) -> None:
        """Create slurmdbd's database and its user. Start again if an interrupted boot left it incomplete."""
        if self._database.is_complete():
            return
        self._database.execute(
            f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE};"
            f" CREATE USER IF NOT EXISTS {_OWNER} IDENTIFIED VIA unix_socket; GRANT ALL ON {DATABASE}.* TO {_OWNER}"
        )
        backup = self._state_dir / "restore.sql.gz"
        backup.unlink(missing_ok=True)
        backup.touch(mode=0o600)  # it has everybody's jobs
        try:
            if (made := self._backups.fetch(backup)) is not None:
                self._database.load(backup, self._as_owner)
                self._close_open_jobs(cluster, int(made))
                log.info("accounting: restored the records of an earlier cluster %s", cluster)
        finally:
            backup.unlink()
        self._database.execute(f"CREATE DATABASE {READY}")
        (self._state_dir / "dump.done").touch()  # its own first backup is due in a day

    def _close_open_jobs(self, cluster: str, at: int) -> None:
        """Mark jobs that were open at the time of the backup as cancelled: they ended with their cluster."""
        for kind in ("step", "job"):
            if self._has_table(f"{cluster}_{kind}_table"):
                self._database.execute(
                    f"UPDATE {DATABASE}.`{cluster}_{kind}_table` SET state = {_CANCELLED},"
                    f" time_end = GREATEST(time_start, {at}) WHERE time_end = 0",
                    self._as_owner,
                )

    def _write_first_job(self, plan: ClusterPlan, state_dir: Path) -> None:
        """Set FirstJobId after the newest record if slurmctld has no state; otherwise job ids would repeat.

        The file is written once, because slurmctld compares the nodes' files with its own.
        """
        file = self._state_dir / "first-job.conf"
        if not file.exists():
            fresh = not (state_dir / "job_state").exists()
            number = first_job(self._newest_job(plan.name) if fresh else 0, plan.extra_slurm)
            install((Placement(path=str(file), content=_first_job_text(number)),))
        install((Placement(path=FIRST_JOB, content=file.read_bytes()),), self._root)

    def _newest_job(self, cluster: str) -> int:
        table = f"{cluster}_job_table"
        if not self._has_table(table):
            return 0
        newest = f"SELECT COALESCE(MAX(id_job), 0) FROM {DATABASE}.`{table}`"
        return int(self._database.execute(newest, self._as_owner))

    def _has_table(self, name: str) -> bool:
        where = f"table_schema = '{DATABASE}' AND table_name = '{name}'"
        return self._database.execute(f"SELECT COUNT(*) FROM information_schema.tables WHERE {where}").strip() == "1"


def first_job(newest: int, own: Iterable[str]) -> int | None:
    """The id after the newest job; None to keep Slurm's default or the user's own setting."""
    if newest < 1 or newest >= _LARGEST_JOB or {"firstjobid", "maxjobid"} & {key.lower() for key in own}:
        return None
    return newest + 1


def _first_job_text(number: int | None) -> bytes:
    text = "# Managed by corral: do not edit. The first job id (default: 1).\n"
    return f"{text}{f'FirstJobId={number}' if number else ''}\n".replace("\n\n", "\n").encode()
