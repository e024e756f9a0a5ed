"""Accounting on a head: a real MariaDB that is created, found again and restored, its backups, and the next job ids."""

from __future__ import annotations

import gzip
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from corral.agent.accounting.backup import BackupError, back_up
from corral.agent.accounting.database import Accounting, Database, first_job
from corral.agent.host.base import Daemon, HostError, as_system_user, run
from corral.model.accounts import AccountPlan, AccountsPlan, QosPlan
from corral.render import cluster_files
from render.plans import cpu, dev, train

JOBS = """USE slurm_acct_db;
CREATE TABLE dev_job_table (id_job INT, state INT, time_start BIGINT, time_end BIGINT);
INSERT INTO dev_job_table VALUES (40, 3, 100, 200), (41, 1, 300, 0), (42, 0, 0, 0)"""
MADE = 1000.0  # when the dump was made


@dataclass(kw_only=True)
class Shelf:
    """Keeps a dump in a directory. `mode`: that of the file that it wrote last."""

    file: Path
    mode: int = 0

    def fetch(self, file: Path) -> float | None:
        if not self.file.exists():
            return None
        with file.open("wb") as stream:  # as the bucket's does
            stream.write(self.file.read_bytes())
        self.mode = file.stat().st_mode & 0o777
        return MADE

    def store(self, file: Path) -> str:
        shutil.copy(file, self.file)
        return str(self.file)


@dataclass(kw_only=True)
class Head:
    """A directory with a MariaDB of its own, and what was started on it."""

    work_dir: Path
    shelf: Shelf
    commands: list[Sequence[str]] = field(default_factory=list)
    answers: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def database(self) -> Database:
        return Database(run, self.work_dir / "sock")

    def run(self, command: Sequence[str]) -> str:
        """sacctmgr is only written down: there is no slurmdbd here."""
        if command[0] != "sacctmgr":
            return run(command)
        self.commands.append(command)
        return self.answers.get(command[4], "") if "show" in command else ""

    def as_user(self, user: str) -> Sequence[str]:
        return as_system_user(user)

    def start(self, daemon: Daemon, options: Sequence[str] = ()) -> None:
        if daemon.unit == "mariadb" and self.process is None:
            where = (f"--datadir={self.work_dir / 'data'}", f"--socket={self.work_dir / 'sock'}")
            command = ["mariadbd", "--no-defaults", "--user=mysql", "--skip-networking", *where]
            self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def boot(self, **own: Any) -> None:
        """What a head's boot does."""
        plan = replace(dev(train(), cpu()), **own)
        accounting = Accounting(
            self.run,
            self.shelf,
            database=self.database,
            data=self.work_dir / "data",
            state_dir=self.work_dir,
            root=self.work_dir / "root",
            listens=lambda: True,
        )
        accounting.start(plan, self, self.work_dir / "slurmctld")  # type: ignore[arg-type]

    def dump(self) -> None:
        back_up(self.shelf, run, self.database.is_complete, state_dir=self.work_dir, socket=self.work_dir / "sock")

    def lose(self) -> None:
        """The machine ends in an instant."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def first_job(self) -> list[str]:
        lines = (self.work_dir / "root/etc/slurm/first-job.conf").read_text().splitlines()
        return [line for line in lines if not line.startswith("#")]


@pytest.fixture
def work_dir() -> Iterator[Path]:
    """A directory that MariaDB's user may pass through."""
    with tempfile.TemporaryDirectory(prefix="corral-db-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def head(work_dir: Path, tmp_path: Path) -> Iterator[Head]:
    head = Head(work_dir=work_dir, shelf=Shelf(file=tmp_path / "shelf.sql.gz"))
    yield head
    head.lose()


@pytest.fixture
def later(tmp_path: Path) -> Iterator[Head]:
    """The head of a later cluster of the same name."""
    with tempfile.TemporaryDirectory(prefix="corral-db-") as name:
        Path(name).chmod(0o777)
        head = Head(work_dir=Path(name), shelf=Shelf(file=tmp_path / "shelf.sql.gz"))
        yield head
        head.lose()


@pytest.mark.slurm
def test_a_new_head_has_an_empty_database_for_slurm_alone(head: Head) -> None:
    head.boot()
    grants = head.database.execute("SHOW GRANTS FOR slurm@localhost").splitlines()
    assert (head.database.is_complete(), grants) == (
        True,
        [
            "GRANT USAGE ON *.* TO `slurm`@`localhost` IDENTIFIED VIA unix_socket",
            "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO `slurm`@`localhost`",
        ],
    )


@pytest.mark.slurm
def test_a_head_that_was_lost_finds_its_records_again(head: Head) -> None:
    head.boot()
    head.database.execute(JOBS)
    head.lose()
    head.boot()
    assert head.database.execute("SELECT id_job, state FROM slurm_acct_db.dev_job_table") == "40\t3\n41\t1\n42\t0\n"


@pytest.mark.slurm
def test_an_incomplete_data_directory_is_created_again(head: Head) -> None:
    (head.work_dir / "data.new").mkdir()
    (head.work_dir / "data.new/ibdata1").write_text("half")
    head.boot()
    assert head.database.is_complete()


@pytest.mark.slurm
def test_an_incomplete_database_is_filled_again(head: Head) -> None:
    head.boot()
    head.database.execute(f"DROP DATABASE corral; {JOBS}")
    head.boot()
    assert head.database.execute("SHOW TABLES IN slurm_acct_db") == ""


@pytest.mark.slurm
def test_a_later_cluster_has_the_records_and_open_jobs_are_cancelled_at_the_backup(head: Head, later: Head) -> None:
    head.boot()
    head.database.execute(JOBS)
    head.dump()
    later.boot()
    found = later.database.execute("SELECT * FROM slurm_acct_db.dev_job_table ORDER BY id_job")
    assert found == "40\t3\t100\t200\n41\t4\t300\t1000\n42\t4\t0\t1000\n"


@pytest.mark.slurm
def test_a_later_cluster_continues_the_job_ids(head: Head, later: Head) -> None:
    head.boot()
    head.database.execute(JOBS)
    head.dump()
    later.boot()
    assert (head.first_job(), later.first_job()) == ([], ["FirstJobId=43"])


@pytest.mark.slurm
def test_the_first_number_is_written_once(head: Head) -> None:
    head.boot()
    head.database.execute(JOBS)
    head.boot()
    assert head.first_job() == []


@pytest.mark.slurm
def test_an_incomplete_database_does_not_replace_a_backup(head: Head) -> None:
    head.boot()
    head.dump()
    before = head.shelf.file.read_bytes()
    head.database.execute("DROP DATABASE corral")
    with pytest.raises(BackupError, match=r"^the accounting database does not run or is incomplete"):
        head.dump()
    assert head.shelf.file.read_bytes() == before


@pytest.mark.slurm
def test_an_interrupted_backup_does_not_replace_one(head: Head) -> None:
    head.shelf.file.write_bytes(b"good")
    with pytest.raises(HostError, match="failed with"):  # there is no database
        back_up(head.shelf, run, lambda: True, state_dir=head.work_dir, socket=head.work_dir / "sock")
    assert head.shelf.file.read_bytes() == b"good"


@pytest.mark.slurm
def test_a_damaged_backup_fails_the_boot_and_the_database_stays_incomplete(head: Head) -> None:
    head.shelf.file.write_bytes(b"no gzip")
    with pytest.raises(HostError, match="not in gzip format"):
        head.boot()
    assert not head.database.is_complete()


@pytest.mark.slurm
@pytest.mark.parametrize("command", [r"\! touch {file}", "system touch {file}", r"SELECT 1; \! touch {file}"])
def test_a_backup_runs_no_command_on_the_head(head: Head, tmp_path: Path, command: str) -> None:
    file = tmp_path / "touched"
    head.shelf.file.write_bytes(gzip.compress(f"SELECT 1;\n{command.format(file=file)}\n".encode()))
    with pytest.raises(HostError, match=r"ERROR .*at line 2"):
        head.boot()
    assert not file.exists()


# What a backup may contain, and what MariaDB answers to slurmdbd's user.
HOSTILE = {
    "a file that its reader may read": ("CREATE TABLE t (a TEXT); LOAD DATA LOCAL INFILE '{file}' INTO TABLE t", 4166),
    "a file that MariaDB may read": ("CREATE TABLE t (a TEXT); LOAD DATA INFILE '{file}' INTO TABLE t", 1698),
    "a file that MariaDB writes": ("SELECT 1 INTO OUTFILE '{file}.new'", 1227),
    "a user": ("CREATE USER eve@localhost", 1227),
    "rights": ("GRANT ALL ON *.* TO slurm@localhost", 1698),
    "a password": ("SET PASSWORD = PASSWORD('secret')", 1699),
    "the mark of a complete database": ("CREATE DATABASE corral", 1044),
    "the tables of users": ("DELETE FROM mysql.global_priv", 1142),
    "a setting": ("SET GLOBAL local_infile = ON", 1227),
}


@pytest.mark.slurm
def test_a_backup_has_the_rights_of_slurmdbd_and_nothing_more(head: Head) -> None:
    head.boot()
    file = head.work_dir / "readable"
    file.write_text("text")
    found = {}
    for name, (statement, _) in HOSTILE.items():
        head.database.execute("DROP TABLE IF EXISTS slurm_acct_db.t; SET GLOBAL local_infile = ON")
        backup = head.work_dir / "hostile.sql.gz"
        backup.write_bytes(gzip.compress(statement.format(file=file).encode()))
        with pytest.raises(HostError) as refused:
            head.database.load(backup, as_system_user("slurm"))
        found[name] = re.findall(r"ERROR (\d+)", str(refused.value))
    assert found == {name: [str(number)] for name, (_, number) in HOSTILE.items()}


@pytest.mark.slurm
def test_a_view_in_a_backup_does_not_act_as_root_when_the_boot_reads_it(head: Head) -> None:
    """A function has the rights of who reads the view that calls it, if it is declared so."""
    call = "CREATE FUNCTION act() RETURNS INT SQL SECURITY INVOKER BEGIN INSERT INTO seen VALUES (CURRENT_USER());"
    view = "CREATE SQL SECURITY INVOKER VIEW dev_job_table AS SELECT act() AS id_job, state, time_start, time_end"
    lines = (
        "CREATE TABLE seen (who TEXT); CREATE TABLE one (state INT, time_start INT, time_end INT);",
        "INSERT INTO one VALUES (3, 100, 200);",
        f"DELIMITER //\n{call} RETURN 7; END//\nDELIMITER ;",
        f"{view} FROM one;",
    )
    head.shelf.file.write_bytes(gzip.compress("\n".join(lines).encode()))
    head.boot()
    who = head.database.execute("SELECT DISTINCT who FROM slurm_acct_db.seen")
    assert (head.first_job(), who) == (["FirstJobId=8"], "slurm@localhost\n")


@pytest.mark.slurm
def test_nobody_but_root_reads_a_backup_and_none_is_left(head: Head) -> None:
    head.shelf.file.write_bytes(b"no gzip")
    with pytest.raises(HostError):
        head.boot()
    assert (head.shelf.mode, list(head.work_dir.glob("restore*"))) == (0o600, [])


def test_mariadb_reads_and_writes_no_files_of_others(tmp_path: Path) -> None:
    """MariaDB itself reads its rendered settings."""
    (tmp_path / "cnf").write_text(cluster_files(dev(train(), cpu()))["accounting/mariadb.cnf"])
    command = ("mariadbd", f"--defaults-file={tmp_path / 'cnf'}", "--user=mysql", "--verbose", "--help")
    settings = dict(line.split(maxsplit=1) for line in run(command).splitlines() if len(line.split(maxsplit=1)) == 2)
    found = {name: settings[name].strip() for name in ("local-infile", "secure-file-priv")}
    assert found == {"local-infile": "FALSE", "secure-file-priv": "/root/"}


@pytest.mark.slurm
def test_accounts_are_made_before_slurmctld_starts_and_qos_are_not(head: Head) -> None:
    people = [f"everybody|{user.pw_name}||1|normal|" for user in pwd.getpwall()]
    head.answers = {"assoc": "\n".join(people)}
    accounts = (AccountPlan(name="everybody"), AccountPlan(name="ml", qos=("urgent",)))
    head.boot(accounts=AccountsPlan(accounts=accounts, qos=(QosPlan(name="urgent"),)))
    added = [" ".join(command) for command in head.commands if "show" not in command]
    assert added == [
        "sacctmgr --immediate add cluster dev",
        "sacctmgr --immediate add account everybody cluster=dev parent=root organization=corral fairshare=1",
        "sacctmgr --immediate add account ml cluster=dev parent=root organization=corral fairshare=1",
    ]


@pytest.mark.slurm
def test_without_accounts_slurmdbd_is_not_queried(head: Head) -> None:
    head.boot()
    assert head.commands == []


@pytest.mark.parametrize(
    ("newest", "own", "number"),
    [(0, (), None), (41, (), 42), (41, ("firstjobid",), None), (41, ("MaxJobId",), None), (0x03FF0000, (), None)],
)
def test_the_next_job_follows_the_newest_by_default(newest: int, own: Sequence[str], number: int | None) -> None:
    assert first_job(newest, own) == number
