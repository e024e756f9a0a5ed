"""A machine in namespaces of its own with Debian's slapd, sssd and sshd, which the agent sets up for a directory.

It has the test machine's programs, and files, accounts, network and processes' view of /etc, /home and /var/lib/sss of
its own. Its people: ada, bob, carl and dora may log in; olga is outside of the filter, eve and `games` have ids or
names of a system. Each has one key, `key`.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.directory_server import LETS_IN, PASSWORD, SUFFIX, entries, make_certificates, slapd_conf

from agent.waiting import until
from corral.agent.directory import sssd
from corral.model.cluster import ClusterPlan
from corral.model.serialization import to_json
from corral.model.users import AccessPlan, DirectoryPlan, DirectorySchema
from corral.render.access import access_files
from render.plans import dev
from secret_search import secrets_in

HOST = "ldap.example.org"
_NAMESPACES = """set -e
mount -t tmpfs tmpfs "$1"
for directory in /etc /var/lib/pam /var/lib/sss; do
    mkdir -p "$1$directory" "$1/work$directory"
    mount -t overlay overlay -o "lowerdir=$directory,upperdir=$1$directory,workdir=$1/work$directory" $directory
done
for directory in /home /opt /run /var/log/sssd /var/lib/ldap; do mount -t tmpfs -o mode=755 tmpfs $directory; done
mkdir -m 755 /run/sshd
ip link set lo up
echo "127.0.0.1 localhost $2" >/etc/hosts
ssh-keygen -q -A
pam-auth-update --force --enable sss  # as the package libpam-sss does where nobody has changed the files
echo ready
exec sleep infinity
"""
# What an agent does at a boot, with its own code.
_BOOT = """
import json, sys
from types import SimpleNamespace
from corral.agent.config.file_placements import placements_for
from corral.agent.directory import start_directory
from corral.agent.file_install import install
from corral.model.cluster import ClusterPlan
from corral.model.enums import Role
from corral.model.serialization import from_json

given = json.load(sys.stdin)
files = {name: text.encode() for name, text in given["files"].items()}
plan = from_json(ClusterPlan, given["plan"])
install(placements_for(files, Role.LOGIN, None))
secrets = SimpleNamespace(get_secret_value=lambda SecretId: {"SecretString": given["secrets"][SecretId]})
start_directory(plan, SimpleNamespace(start=lambda daemon: None), secrets, lists_everybody=True)
"""
# What the autoscaler of a head does every minute.
_PEOPLE_OF_HEAD = """
import sys
from corral.agent.events import EventLog
from corral.agent.host.base import run
from corral.agent.users.directory_people import DirectoryPeopleTask
from corral.agent.users.homes import make_home
from corral.model.cluster import ClusterPlan
from corral.model.serialization import from_json

plan = from_json(ClusterPlan, sys.stdin.read())
DirectoryPeopleTask(
    plan=lambda: plan,
    run=run,
    make_home=lambda user: make_home(user, run),
    add_accounts=lambda plan: None,
    journal=EventLog(None),
)()
"""
# What the daemon of a login node does every minute, twice. Prints whose processes it would end.
_SESSIONS = """
import sys
from corral.agent.events import EventLog
from corral.agent.users.directory_sessions import DirectorySessionsTask
from corral.model.cluster import ClusterPlan
from corral.model.serialization import from_json

plan = from_json(ClusterPlan, sys.stdin.read())
task = DirectorySessionsTask(plan=lambda: plan, journal=EventLog(None), end=lambda uid: bool(print(uid)))
task()
task()
"""
# The files that a machine with a directory writes, and what root finds in them.
_SEARCH = """
import json, sys
from pathlib import Path
from secret_search import secrets_in

secrets = {name: bytes.fromhex(text) for name, text in json.load(sys.stdin).items()}
for top in ("/etc", "/home", "/opt", "/run", "/var/lib/sss", "/var/log/sssd"):
    for path in sorted(Path(top).rglob("*")):
        if path.is_file() and not path.is_symlink():
            for name in secrets_in(path.read_bytes(), secrets):
                print(f"{name}: {path}")
"""
# So that a test sees in seconds what people see in minutes.
_SHORT = """[nss]
memcache_timeout = 0
entry_negative_timeout = 1
enum_cache_timeout = 1
[domain/directory]
entry_cache_timeout = 2
ldap_enumeration_refresh_timeout = 2
"""


@dataclass
class DirectoryMachine:
    """The machine. `files`: a directory for certificates and keys. `is_patient`: it keeps the times of our file."""

    files: Path
    scheme: str = "ldaps"
    ca: str = "ca"
    is_patient: bool = False
    _own: subprocess.Popen[str] | None = None
    _daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self) -> None:
        """Set the machine up as the agent does, with a running directory."""
        make_certificates(self.files, HOST, ("ca", "other"))
        subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.files / "key"), check=True)
        script = ("sh", "-c", _NAMESPACES, "sh", str(self.files / "disk"), HOST)
        (self.files / "disk").mkdir()
        self._own = subprocess.Popen(("unshare", "--mount", "--net", *script), stdout=subprocess.PIPE, text=True)
        assert self._own.stdout and self._own.stdout.readline() == "ready\n"
        (self.files / "slapd.conf").write_text(slapd_conf(self.files))
        self.start_slapd()
        self.ldap("ldapadd", entries((self.files / "key.pub").read_text()))
        self._boot()
        self.daemon("sssd", *sssd().command, *sssd().foreground, "--logger=stderr")
        self.daemon("sshd", "/usr/sbin/sshd", "-D", "-e", "-o", "ListenAddress=127.0.0.1")
        until(lambda: self.run("sh", "-c", "test -S /var/lib/sss/pipes/ssh && ss -ltn | grep -q :22").returncode == 0)

    def start_slapd(self) -> None:
        """Start the directory, and wait until it answers."""
        config = str(self.files / "slapd.conf")
        self.daemon("slapd", "/usr/sbin/slapd", "-f", config, "-h", f"{self.scheme}://{HOST}/", "-d", "0")
        until(lambda: self.run(*self._client("ldapsearch"), "-b", "", "-s", "base").returncode == 0)

    def stop(self) -> None:
        """End all that was started."""
        for name in ("sshd", "sssd", "slapd"):
            self.stop_daemon(name)
        if self._own:
            self._own.kill()
            self._own.communicate()

    def daemon(self, name: str, *command: str) -> None:
        """Start a daemon on the machine."""
        with (self.files / f"{name}.log").open("ab") as log:
            self._daemons[name] = subprocess.Popen(self._inside(command), stdout=log, stderr=log)

    def stop_daemon(self, name: str) -> None:
        """End a daemon, if it runs."""
        if daemon := self._daemons.pop(name, None):
            daemon.terminate()
            daemon.wait()

    def look_again(self) -> None:
        """Let SSSD connect to a directory that was away, instead of within minutes (sssd(8), "SIGNALS")."""
        self._daemons["sssd"].send_signal(signal.SIGUSR2)

    def run(self, *command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command on the machine as root."""
        return subprocess.run(self._inside(command), input=given, capture_output=True, text=True, check=False)

    def ssh(self, user: str, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command by a login over ssh with the people's key."""
        return self.run(*self._ssh(user, *command))

    def people_of_head(self) -> None:
        """Look once for people of the directory, as a head does."""
        done = self._python(_PEOPLE_OF_HEAD, to_json(self._plan()))
        assert done.returncode == 0, done.stderr

    def ended_sessions(self) -> str:
        """The ids of those whose processes a login node ends."""
        done = self._python(_SESSIONS, to_json(self._plan()))
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def session(self, name: str) -> Iterator[None]:
        """Somebody who is logged in meanwhile."""
        words = self._inside(self._ssh(name, "echo here; exec cat"))
        with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as login:
            assert login.stdin and login.stdout
            try:
                assert login.stdout.readline() == b"here\n"
                yield
            finally:
                login.stdin.close()  # ends cat

    def passwd(self, name: str) -> str:
        """The machine's entry of a user; empty without one."""
        return self.run("getent", "passwd", name).stdout.strip()

    def locations(self, secret: str) -> list[str]:
        """The files of the machine with this secret, and the outputs and command lines of what the agent starts."""
        done = self._python(_SEARCH, json.dumps({"secret": secret.encode().hex()}))
        assert done.returncode == 0, done.stderr
        started = {name: one for name, one in self._daemons.items() if name != "slapd"}
        written = {f"output of {name}": (self.files / f"{name}.log").read_bytes() for name in started}
        called = {
            f"command line of {name}": Path(f"/proc/{one.pid}/cmdline").read_bytes() for name, one in started.items()
        }
        others = [origin for origin, text in (written | called).items() if secrets_in(text, {"": secret.encode()})]
        return [*(line.removeprefix("secret: ") for line in done.stdout.splitlines()), *others]

    def ldap(self, program: str, changes: str) -> None:
        """Change the directory."""
        done = self.run(*self._client(program), given=changes)
        assert done.returncode == 0, done.stderr

    def take_out(self, name: str) -> None:
        """Take somebody out of the group that lets in."""
        self.ldap("ldapmodify", f"dn: {LETS_IN}\nchangetype: modify\ndelete: member\nmember: uid={name},{SUFFIX}\n")

    def _inside(self, command: Sequence[str]) -> Sequence[str]:
        assert self._own
        return ("nsenter", f"--target={self._own.pid}", "--mount", "--net", "--", *command)

    def _ssh(self, user: str, *command: str) -> Sequence[str]:
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "BatchMode=yes", "LogLevel=ERROR")
        words = [word for option in options for word in ("-o", option)]
        return ("ssh", "-F", "none", *words, "-i", str(self.files / "key"), f"{user}@127.0.0.1", *command)

    def _client(self, program: str) -> Sequence[str]:
        starts_tls = ("-ZZ",) if self.scheme == "ldap" else ()
        who = ("-x", "-H", f"{self.scheme}://{HOST}", *starts_tls, "-D", f"cn=reader,{SUFFIX}", "-w", PASSWORD)
        return ("env", f"LDAPTLS_CACERT={self.files}/ca.pem", program, *who)

    def _python(self, program: str, given: str) -> subprocess.CompletedProcess[str]:
        return self.run("env", f"PYTHONPATH={':'.join(sys.path)}", sys.executable, "-c", program, given=given)

    def _plan(self) -> ClusterPlan:
        directory = DirectoryPlan(
            servers=(f"{self.scheme}://{HOST}",),
            base=SUFFIX,
            filter=f"(memberOf={LETS_IN})",
            schema=DirectorySchema.RFC2307,
            bind_dn=f"cn=reader,{SUFFIX}",
            bind_secret="people/reader",
            admin_group="operators",
            ca=(self.files / f"{self.ca}.pem").read_text(),
        )
        return replace(dev(), access=AccessPlan(directory=directory))

    def _boot(self) -> None:
        plan = self._plan()
        given = {"plan": to_json(plan), "files": access_files(plan), "secrets": {"people/reader": PASSWORD}}
        done = self._python(_BOOT, json.dumps(given))
        assert done.returncode == 0, done.stderr
        short = ("sh", "-c", "umask 077; cat >/etc/sssd/conf.d/70-short.conf")
        if not self.is_patient:
            self.run(*short, given=_SHORT)


def within(seconds: float, true: Callable[[], object]) -> bool:
    """Whether it comes true in this time."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True
