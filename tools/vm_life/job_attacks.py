"""What a job of an ordinary user tries against other users, Slurm and the machine, and who may do the same.

Each act is a shell command that succeeds for somebody, so that none fails for another reason than its user.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corral.agent.autoscaler.resume_program import SPOOL
from corral.agent.imds_firewall import INTERFACES_IPV6, IPV6
from corral.model.accounting_paths import DATABASE_DIR
from corral.model.job_role import PORT, URI

ROOT, VICTIM, ATTACKER = "root", "victim", "attacker"
AS_ADA = ("setpriv", "--reuid=2000", "--regid=2000", "--clear-groups")  # the attacker, whom useradd has made
TOKEN = "curl -sf -m 5 -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token"
# The service has no IPv6 address, as launch templates say: a route leads nowhere, for whom the kernel lets take it.
# Where the kernel has no IPv6, the address counts as reached by who may.
_HAS_NO_IPV6 = f"test ! -e {INTERFACES_IPV6}"
_TO_IPV6 = f'socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(("{IPV6.address}", 80))'
_CONNECT_IPV6 = f"python3 -I -c 'import socket; {_TO_IPV6}'"
ROUTE_TO_IPV6, NO_ROUTE_TO_IPV6 = (
    ("sh", "-c", f"{_HAS_NO_IPV6} || ip -6 route {verb} {IPV6.address} dev lo") for verb in ("replace", "delete")
)
# sbatch itself refuses --uid to all but root. In a namespace of their own users are root for sbatch, and not for munge,
# so slurmctld decides. Where nobody may make one the act counts as done, so that it cannot fail for that reason.
_NAMESPACE = "unshare --user --map-root-user"
_JOB_OF_ANOTHER = "sbatch --uid=$USER --chdir=/ --output=/dev/null --wrap=true"


@dataclass(frozen=True, slots=True)
class Act:
    """A command of the attacker's. `allowed`: the same for who may. Both exit with 0 if they reach what they want.

    The variables JOB, PID, FILE are the victim's running job, its process and a file of theirs; NODE and ADDRESS are
    the node of the job; USER is the victim; KEY is the id of the key that the endpoint there gives them.
    """

    name: str
    command: str
    by: str = ROOT
    allowed: str = ""


ON_A_NODE = (
    Act("metadata service", TOKEN),
    Act("metadata service by IPv6", _CONNECT_IPV6, ROOT, f"{_HAS_NO_IPV6} || {_CONNECT_IPV6}"),
    Act("job role of another user", f'curl -sf -m 5 -H "Authorization: $KEY" {URI} | grep -F "\\"$KEY\\""', VICTIM),
    Act("munge key", "cat /etc/munge/munge.key"),
    Act("directory of the munge key", "ls /etc/munge"),
    Act("file of another user", "cat $FILE", VICTIM),
    Act("signal to a process of another user", "kill -0 $PID", VICTIM),
    Act("environment of a process of another user", "cat /proc/$PID/environ", VICTIM),
    Act("memory of a process of another user", "cat /proc/$PID/maps", VICTIM),
    Act("environment of slurmd", "cat /proc/$(pgrep -o -x slurmd)/environ"),
    Act("script of a job of another user", "cat $(find /var/spool -name slurm_script | head -1) </dev/null | grep ."),
    Act("signal to a job of another user", "scancel --signal=CONT $JOB", VICTIM),
    Act("change of a job of another user", "scontrol update jobid=$JOB comment=mine", VICTIM),
    Act("job under the name of another user", f"{_NAMESPACE} true || exit 0; {_NAMESPACE} {_JOB_OF_ANOTHER}"),
    Act("comment of a node", "scontrol update nodename=$NODE comment=mine"),
    Act("configuration of Slurm", "scontrol reconfigure"),
    Act("program that root runs", "touch /opt/corral/mine && rm /opt/corral/mine"),
    Act("unit that root runs", "touch /etc/systemd/system/mine && rm /etc/systemd/system/mine"),
)
ON_THE_HEAD = (
    Act("metadata service of the head", TOKEN),
    Act("metadata service of the head by IPv6", _CONNECT_IPV6, ROOT, f"{_HAS_NO_IPV6} || {_CONNECT_IPV6}"),
    Act("requests for machines", f"touch {SPOOL}/mine && rm {SPOOL}/mine"),
    Act("state of slurmctld", "ls /var/lib/corral/slurmctld"),
    Act("files of the database", f"ls {DATABASE_DIR}"),
    Act("configuration of slurmdbd", "cat /etc/slurm/slurmdbd.conf"),
    Act("events of the cluster", "cat /var/lib/corral/events.jsonl || true >>/var/lib/corral/events.jsonl"),
    Act("account of one's own", "sacctmgr -i create account mine && sacctmgr -i delete account mine"),
    Act(
        "credentials endpoint of a node",
        f"curl -sf -m 5 http://$ADDRESS:{PORT}/credentials",
        ATTACKER,
        f"curl -sf -m 5 http://127.0.0.1:{PORT}/credentials",
    ),
)


def script(acts: Sequence[Act], variables: Mapping[str, str], *, by: str = "") -> str:
    """A shell script that prints the name of each act that succeeds: the attacker's, or those that `by` may do."""
    settings = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    chosen = [act for act in acts if by in ("", act.by)]
    commands = [(act.name, act.allowed if by and act.allowed else act.command) for act in chosen]
    lines = [
        f"timeout 30 sh -c {shlex.quote(command)} >/dev/null 2>&1 && echo {shlex.quote(name)}"
        for name, command in commands
    ]
    return "\n".join([*settings, *lines, "true"])
