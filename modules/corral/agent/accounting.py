"""Accounting on a head: a MariaDB and a slurmdbd that have the records of this cluster's jobs, and of earlier ones.

Each step sees what is done already, so a boot that was killed anywhere goes on. The data are on the state volume: a
replaced head finds them. A new volume is filled from the dump that an earlier cluster of the same name left.
"""

import logging
import pwd
import shutil
import socket as sockets
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from corral.agent.dumps import NOTES, Dumps
from corral.agent.hosts import Host, HostError, mariadb, slurmdbd
from corral.agent.install import Placement, install
from corral.agent.places import FIRST_JOB
from corral.model.accounting import DATABASE, DATABASE_DIR, DATABASE_SOCKET, DATABASE_USER, SLURMDBD_PORT
from corral.model.cluster import ClusterPlan

Run = Callable[[Sequence[str]], str]
# A database that exists as soon as the other one is whole: one statement, in the same data.
READY = "corral"
EVERYBODY = "everybody"  # the account of those who have no other
_MARIADB_IN_S = 300  # after a crash it repairs itself first
_SLURMDBD_IN_S = 900  # a newer Slurm converts the tables of an older one first
_STEP_S = 0.05
_PEOPLE = range(1000, 60000)  # user ids of people (Debian's login.defs)
_LARGEST_JOB = 0x03FF0000  # slurm.conf(5), MaxJobId: the default, and the largest
_CANCELLED = 4  # slurm.h, enum job_states
_RESTORE = 'gzip -dc "$1" | mariadb --no-defaults --user=root "--socket=$2" "$3"'

log = logging.getLogger("corral.agent")


class Database:
    """MariaDB on this machine, asked as root by its socket."""

    def __init__(self, run: Run, socket: Path = Path(DATABASE_SOCKET)) -> None:
        self._run = run
        self.socket = socket

    def ask(self, statement: str) -> str:
        """What the statements print, one row a line. Raises HostError."""
        client = ("mariadb", "--no-defaults", "--user=root", f"--socket={self.socket}", "--batch")
        return self._run((*client, "--skip-column-names", f"--execute={statement}"))

    def answers(self) -> bool:
        """True if it takes statements."""
        try:
            self.ask("SELECT 1")
        except HostError:
            return False
        return True

    def is_whole(self) -> bool:
        """True if the records of an earlier cluster, if there were any, are all in it."""
        return self.answers() and bool(self.ask(f"SHOW DATABASES LIKE '{READY}'").strip())

    def load(self, dump: Path) -> None:
        """Reads a dump into slurmdbd's database."""
        self._run(("bash", "-o", "pipefail", "-c", _RESTORE, "restore", str(dump), str(self.socket), DATABASE))


class Accounting:
    """What a head's boot does before slurmctld. `root`: where files are written. `data`, `notes`: on the state volume.

    `listens`: whether slurmdbd takes connections.
    """

    def __init__(
        self,
        run: Run,
        dumps: Dumps,
        *,
        database: Database | None = None,
        data: Path = Path(DATABASE_DIR),
        notes: Path = NOTES,
        root: Path = Path("/"),
        listens: Callable[[], bool] | None = None,
    ) -> None:
        self._run = run
        self._dumps = dumps
        self._database = database or Database(run)
        self._data = data
        self._notes = notes
        self._root = root
        self._listens = listens or _slurmdbd_listens

    def start(self, plan: ClusterPlan, host: Host, state_dir: Path) -> None:
        """Starts both daemons; slurmctld, whose StateSaveLocation is `state_dir`, can follow. Raises AgentError."""
        self._make_data()
        host.start(mariadb())
        _await(self._database.answers, _MARIADB_IN_S, "MariaDB does not answer - see its log")
        self._fill(plan.name)
        self._place_first_job(plan, state_dir)
        host.start(slurmdbd(plan.image.slurm_sbin))
        _await(self._listens, _SLURMDBD_IN_S, "slurmdbd does not listen - see /var/log/slurm/slurmdbd.log")
        self._make_accounts(plan)

    def _make_data(self) -> None:
        """Empty data, under their name only when they are complete."""
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
        """slurmdbd's database and its user. What a boot that was killed had filled in part is begun anew."""
        if self._database.is_whole():
            return
        self._database.ask(f"DROP DATABASE IF EXISTS {DATABASE}; CREATE DATABASE {DATABASE}")
        dump = self._notes / "restore.sql.gz"
        if (made := self._dumps.fetch(dump)) is not None:
            self._database.load(dump)
            self._end_jobs(cluster, int(made))
            log.info("accounting: the records of an earlier cluster %s are restored", cluster)
            dump.unlink()
        owner = f"{DATABASE_USER}@localhost"
        self._database.ask(
            f"CREATE USER IF NOT EXISTS {owner} IDENTIFIED VIA unix_socket;"
            f" GRANT ALL ON {DATABASE}.* TO {owner}; CREATE DATABASE {READY}"
        )
        (self._notes / "dump.done").touch()  # the first dump of its own is due in a day

    def _end_jobs(self, cluster: str, at: int) -> None:
        """Jobs that ran or waited when the dump was made ended with their cluster; nobody else will say so."""
        for kind in ("step", "job"):
            if self._has_table(f"{cluster}_{kind}_table"):
                self._database.ask(
                    f"UPDATE {DATABASE}.`{cluster}_{kind}_table` SET state = {_CANCELLED},"
                    f" time_end = GREATEST(time_start, {at}) WHERE time_end = 0"
                )

    def _place_first_job(self, plan: ClusterPlan, state_dir: Path) -> None:
        """A slurmctld that begins without state counts on from the records, or a number would mean two jobs.

        Written once, since slurmctld compares the files of nodes with its own.
        """
        note = self._notes / "first-job.conf"
        if not note.exists():
            fresh = not (state_dir / "job_state").exists()
            number = first_job(self._newest_job(plan.name) if fresh else 0, plan.extra_slurm)
            install((Placement(path=str(note), content=_first_job_text(number)),))
        install((Placement(path=FIRST_JOB, content=note.read_bytes()),), self._root)

    def _newest_job(self, cluster: str) -> int:
        table = f"{cluster}_job_table"
        if not self._has_table(table):
            return 0
        return int(self._database.ask(f"SELECT COALESCE(MAX(id_job), 0) FROM {DATABASE}.`{table}`"))

    def _has_table(self, name: str) -> bool:
        where = f"table_schema = '{DATABASE}' AND table_name = '{name}'"
        return self._database.ask(f"SELECT COUNT(*) FROM information_schema.tables WHERE {where}").strip() == "1"

    def _make_accounts(self, plan: ClusterPlan) -> None:
        """The accounts that queues name. Slurm then lets nobody run a job without one, so all users get an account."""
        wanted = sorted({account.lower() for queue in plan.queues for account in queue.accounts})  # as Slurm keeps them
        if not wanted:
            return
        if plan.name not in self._listed("cluster", "cluster"):
            self._sacctmgr("add", "cluster", plan.name)
        accounts = self._listed("account", "account")
        if new := [name for name in (EVERYBODY, *wanted) if name not in accounts]:
            self._sacctmgr("add", "account", ",".join(new), f"cluster={plan.name}")
        users = self._listed("user", "user")
        if strange := [name for name in people(pwd.getpwall()) if name not in users]:
            self._sacctmgr("add", "user", ",".join(strange), f"account={EVERYBODY}", f"cluster={plan.name}")
        log.info("accounting: accounts %s; new: %s", ", ".join(wanted), ", ".join((*new, *strange)) or "nothing")

    def _listed(self, kind: str, field: str) -> Sequence[str]:
        return self._run(("sacctmgr", "--noheader", "--parsable2", "show", kind, f"format={field}")).split()

    def _sacctmgr(self, *words: str) -> None:
        self._run(("sacctmgr", "--immediate", *words))


def first_job(newest: int, own: Iterable[str]) -> int | None:
    """The number of the next job after the newest; None where Slurm begins as it would, or own keys of the user say."""
    if newest < 1 or newest >= _LARGEST_JOB or {"firstjobid", "maxjobid"} & {key.lower() for key in own}:
        return None
    return newest + 1


def people(users: Iterable[pwd.struct_passwd]) -> Sequence[str]:
    """The names of those of the users that are people, sorted."""
    return sorted(user.pw_name for user in users if user.pw_uid in _PEOPLE)


def _first_job_text(number: int | None) -> bytes:
    text = "# Managed by corral: do not edit. Where the numbers of jobs begin; nothing here is Slurm's default, 1.\n"
    return f"{text}{f'FirstJobId={number}' if number else ''}\n".replace("\n\n", "\n").encode()


def _await(met: Callable[[], bool], within_s: float, problem: str) -> None:
    until = time.monotonic() + within_s
    while not met():
        if time.monotonic() > until:
            raise HostError(f"{problem} (waited {within_s} s)")
        time.sleep(_STEP_S)


def _slurmdbd_listens() -> bool:
    try:
        sockets.create_connection(("127.0.0.1", SLURMDBD_PORT), timeout=1).close()
    except OSError:
        return False
    return True
