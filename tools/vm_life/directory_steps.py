"""The steps of people who come from a directory: a real slapd on the head, and SSSD on each machine by `corral up`.

bob works, carl leaves, dora is an administrator. The people of the cluster's file are gone by then.
"""

from __future__ import annotations

import subprocess
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from tools.directory_server import LETS_IN, PASSWORD, SUFFIX, entries, make_certificates, slapd_conf
from tools.vm_life.cluster import VirtualCluster, expect

from corral.model.users import ADMIN_HOMES

_HOST = "vm-head.vm.corral.internal"
_SECRET = "people/reader"
_FILES = Path("/etc/ldap/directory")  # where AppArmor lets slapd read
_UNIT = "directory"
_CARL = "20003"  # a name would be unknown once he has left
_PACKAGES = ("slapd", "ldap-utils")
_LOGIN, _NEW_NODE = (
    "login-1",
    "cpu-4",
)  # a node that boots now: those of before follow a directory from their next boot on
_ACCESS = f"""    access:
      directory:
        servers: [ldaps://{_HOST}]
        base: {SUFFIX}
        filter: (memberOf={LETS_IN})
        schema: rfc2307
        bind_dn: cn=reader,{SUFFIX}
        bind_secret: {_SECRET}
        admin_group: operators
        ca: |
"""


def people_of_a_directory(cluster: VirtualCluster) -> str:
    """Come, work while the directory is away, and leave."""
    head = cluster.instance("head")
    _start_directory(cluster, head)
    _declare(cluster)
    bob, carl = (cluster.person(name, key="directory") for name in ("bob", "carl"))
    for machine in ("head", _LOGIN):
        knows = partial(_knows_bob, cluster, cluster.instance(machine))
        cluster.wait_until(knows, f"{machine} knows bob by his id of the directory")
    homes = ("sh", "-c", "stat --format=%U:%a /home/bob /home/carl")
    cluster.wait_until(
        lambda: cluster.as_root(head, *homes).stdout.split() == ["bob:700", "carl:700"], "the head has made homes"
    )
    came = [person.output("id -un; pwd").split() for person in (bob, carl)]
    expect(came == [["bob", "/home/bob"], ["carl", "/home/carl"]], f"people come to the login node: {came}")
    refused = cluster.person("bob", "head", key="directory").run("id -un").returncode
    expect(refused == 255, "the head refuses bob")
    admitted = cluster.person("dora", "head", key="directory").output("pwd; sudo -n id -un").split()
    expect(admitted == [f"{ADMIN_HOMES}/dora", "root"], f"dora is an administrator there: {admitted}")
    denied = bob.run("sudo -n id -un").returncode
    expect(denied != 0, "bob has no sudo")
    hidden = cluster.as_root(
        cluster.instance(_LOGIN), "runuser", "-u", "bob", "--", "cat", "/etc/sssd/conf.d/60-corral.conf"
    )
    expect(hidden.returncode != 0, "bob does not read the password for the directory")
    batch = f"sbatch --parsable --nodelist={_NEW_NODE}"
    first = bob.output(f"{batch} --output=ran --wrap='id -un; id -u; pwd'")
    expect(cluster.job_end(first)["JobState"] == "COMPLETED", "his job ends on a node that boots for it")
    ran = bob.output("cat ran").split()
    expect(ran == ["bob", "20002", "/home/bob"], f"it ran as him: {ran}")
    job = bob.output(f"{batch} --output=/dev/null --wrap='sleep 60'")
    cluster.root_output(head, "systemctl", "stop", _UNIT)
    away = bob.output("id -un; sbatch --hold --wrap=true >&2; squeue --me --noheader --format=%i")
    expect(
        away.split()[:1] == ["bob"] and job in away, f"he logs in and sees his job while the directory is away: {away}"
    )
    ended = cluster.job_end(job)
    expect(ended["JobState"] == "COMPLETED", f"his job runs on: {ended}")
    _serve(cluster, head)
    _change_carl(cluster, head, "delete")
    _look_again(cluster)
    left = carl.run("id -un")
    expect((left.returncode, left.stdout) == (255, ""), f"carl is refused at his next login: {left}")
    expect(bob.output("id -un") == "bob", "bob is not")
    return (
        "people log in by its keys, bob also while it is away; his job on a new node ends; carl leaves, and is refused"
    )


def who_leaves_loses_processes(cluster: VirtualCluster) -> str:
    """Carl, who is in the directory again, leaves it while something of his runs on the login node."""
    head, login = cluster.instance("head"), cluster.booted_login_node()
    _serve(cluster, head)  # the machines may have booted since
    _change_carl(cluster, head, "add")
    _look_again(cluster)
    carl, bob = (cluster.person(name, key="directory") for name in ("carl", "bob"))
    cluster.wait_until(lambda: carl.run("true").returncode == 0, "carl logs in again")
    for person in (carl, bob):
        person.output("setsid --fork sleep 3600 >/dev/null 2>&1 </dev/null")
    _change_carl(cluster, head, "delete")
    left = monotonic()
    expect(_processes(cluster, login, _CARL) > 0, "what carl runs on the login node does not need his login")
    cluster.wait_until(lambda: _processes(cluster, login, _CARL) == 0, "his processes on the login node have ended")
    seconds = monotonic() - left
    expect(_processes(cluster, login, "bob") > 0, "bob's have not")
    return f"what carl ran on the login node ended {seconds:.0f} s after he left the directory; what bob runs did not"


def _processes(cluster: VirtualCluster, machine: str, user: str) -> int:
    """How many processes somebody has, by name or id."""
    return len(cluster.as_root(machine, "pgrep", "--uid", user).stdout.split())


def _change_carl(cluster: VirtualCluster, head: str, how: str) -> None:
    """Add carl to the group that lets in, or delete him."""
    change = f"dn: {LETS_IN}\nchangetype: modify\n{how}: member\nmember: uid=carl,{SUFFIX}\n"
    _change(cluster, head, "ldapmodify", change)


def _look_again(cluster: VirtualCluster) -> None:
    """Let SSSD try a directory that was away at once, not within minutes."""
    for machine in ("head", _LOGIN):
        cluster.root_output(cluster.instance(machine), "pkill", "-USR2", "-x", "sssd")


def _start_directory(cluster: VirtualCluster, head: str) -> None:
    """Install slapd on the head, with its people, and store the password that the cluster reads, unless it runs."""
    if _is_served(cluster, head):
        return
    make_certificates(cluster.directory, _HOST)
    key = cluster.key("directory")
    if not key.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    apt = "apt-get install --yes --no-install-recommends -o DPkg::Lock::Timeout=300"
    cluster.root_output(head, "sh", "-c", f"DEBIAN_FRONTEND=noninteractive {apt} {' '.join(_PACKAGES)} >/dev/null 2>&1")
    cluster.root_output(head, "sh", "-c", f"systemctl disable --now slapd; rm -rf /var/lib/ldap/*; mkdir -p {_FILES}")
    texts = {
        name: (cluster.directory / name).read_text(encoding="utf-8") for name in ("server.pem", "server.key", "ca.pem")
    }
    for name, text in {**texts, "slapd.conf": slapd_conf(_FILES)}.items():
        cluster.write(head, _FILES / name, text)
    _serve(cluster, head)
    _change(cluster, head, "ldapadd", entries(key.with_suffix(".pub").read_text(encoding="utf-8")))
    cluster.client("secretsmanager").create_secret(Name=_SECRET, SecretString=PASSWORD)


def _serve(cluster: VirtualCluster, head: str) -> None:
    """Start slapd unless it runs, and wait until it answers."""
    if not _is_served(cluster, head):
        slapd = ("/usr/sbin/slapd", "-f", f"{_FILES}/slapd.conf", "-h", "ldaps:///", "-d", "0")
        cluster.root_output(head, "systemd-run", "--quiet", "--collect", f"--unit={_UNIT}", *slapd)
    base = (*_client("ldapsearch"), "-b", "", "-s", "base")
    cluster.wait_until(lambda: cluster.as_root(head, *base).returncode == 0, "the directory answers")


def _is_served(cluster: VirtualCluster, head: str) -> bool:
    return cluster.as_root(head, "systemctl", "is-active", _UNIT).returncode == 0


def _client(program: str) -> Sequence[str]:
    who = ("-x", "-H", f"ldaps://{_HOST}", "-D", f"cn=reader,{SUFFIX}", "-w", PASSWORD)
    return ("env", f"LDAPTLS_CACERT={_FILES}/ca.pem", program, *who)


def _change(cluster: VirtualCluster, head: str, program: str, changes: str) -> None:
    """Change the directory."""
    cluster.write(head, _FILES / "changes", changes)
    cluster.root_output(head, *_client(program), "-f", f"{_FILES}/changes")


def _declare(cluster: VirtualCluster) -> None:
    """Name the directory in place of the people, and apply that, unless it is done."""
    text = cluster.cluster_file.read_text(encoding="utf-8")
    if _ACCESS in text:
        return
    before, _, after = text.partition("    access:\n")
    kept = after[after.index("    login:") :]  # what follows the people
    ca = textwrap.indent((cluster.directory / "ca.pem").read_text(encoding="utf-8"), " " * 10)
    cluster.cluster_file.write_text(f"{before}{_ACCESS}{ca}{kept}", encoding="utf-8")
    cluster.corral("up", "vm", "--box", "--yes")


def _knows_bob(cluster: VirtualCluster, machine: str) -> bool:
    return cluster.as_root(machine, "id", "-u", "bob").stdout.strip() == "20002"
