"""Which of a cluster's files belong where on which machine. Pure: bytes in, placements out."""

from collections.abc import Iterator, Mapping

from corral.agent.credentials import URI
from corral.agent.install import Placement
from corral.model.manifest import MANIFEST
from corral.model.markets import Role

_AGENT = "PYTHONPATH=/opt/corral/agent:/opt/corral/library exec /usr/bin/python3 -m corral.agent"
# slurmctld waits for these three: one file, without what the other entries of the agent load first.
_NOTE = "exec /usr/bin/python3 -I -S /opt/corral/agent/corral/agent/note.py"
# Slurm starts its programs by a bare path, so every entry of the agent that Slurm knows is a file of its own.
PROGRAMS: Mapping[str, str] = {
    "corral-agent": f'{_AGENT} "$@"',
    "resume": f'{_NOTE} resume "$@"',
    "resume-failed": f'{_NOTE} resume-failed "$@"',
    "suspend": f'{_NOTE} suspend "$@"',
    "prolog": f"{_AGENT} prolog",
    "health-check": f"{_AGENT} health-check",
    "ranks": f"{_AGENT} ranks",
}
_PROGRAM = """#!/bin/sh
# Managed by corral: written by `corral-agent boot`.
{first}{command}
"""
# A job that starts within a minute of a check that found nothing is not held up, not even by the start of a Python.
_FIRST: Mapping[str, str] = {
    "prolog": 'if [ -n "$(find /run/corral/healthy -newermt "-60 seconds" 2>/dev/null)" ]; then exit 0; fi\n',
}
# Root's programs have the machine's own role, everybody else's the job role.
_JOB_ROLE = f"AWS_CONTAINER_CREDENTIALS_FULL_URI={URI}"
_PROFILE = f"""# Managed by corral: where the SDKs and tools of AWS find the job role.
if [ "$(id -u)" -ne 0 ]; then export {_JOB_ROLE}; fi
"""
# Slurm gives what this prints to the task; a job need not bring the variable from where it was submitted.
_TASK_PROLOG = f"""#!/bin/sh
# Managed by corral: where the SDKs and tools of AWS find the job role.
if [ "$(id -u)" -ne 0 ]; then echo "export {_JOB_ROLE}"; fi
"""
_SSHD = f"""# Managed by corral: a command over ssh reads no profile.
SetEnv {_JOB_ROLE}
"""
_OWN = (
    b"# Your own lines of slurm.conf; corral made this file and leaves it alone. After a change: scontrol reconfigure\n"
)
FIRST_JOB = "/etc/slurm/first-job.conf"
_OWN_OBJECT = "own/slurm.conf"
TOPOLOGY_PLUGIN = "/etc/slurm/topology-plugin.conf"
NO_TOPOLOGY = b"# Managed by corral: do not edit. No node's place in the network is told to Slurm.\n"
_FIRST_JOB = b"# Managed by corral: do not edit. Where the numbers of jobs begin; nothing here is Slurm's default, 1.\n"
_SSH = {
    "ssh/authorized_keys": "/etc/ssh/corral_authorized_keys",
    "ssh/sshd.conf": "/etc/ssh/sshd_config.d/60-corral.conf",
}


def places(files: Mapping[str, bytes], role: Role, queue: str | None) -> tuple[Placement, ...]:
    """Where the files, by their path below the cluster's prefix, belong on a machine in this role and queue."""
    own = _head(files) if role is Role.HEAD else _compute(files, queue)
    return (*_shared(files), *own)


def is_needed(name: str, role: Role) -> bool:
    """True if a machine in this role has a place for the file; nodes fetch Slurm's files from slurmctld."""
    if name.startswith(("agent/", "library/")) or name == MANIFEST:
        return False
    return role is Role.HEAD or "/" not in name or name.startswith(("nccl/", "neuron/"))


def _shared(files: Mapping[str, bytes]) -> tuple[Placement, ...]:
    records = (
        Placement(path=f"/etc/corral/{name}", content=files[name])
        for name in ("cluster.json", "deployed.json")
        if name in files
    )
    programs = (
        Placement(path=f"/opt/corral/bin/{name}", content=_program(name, command), mode=0o755)
        for name, command in PROGRAMS.items()
    )
    return (*records, *programs, *_job_role())


def _program(name: str, command: str) -> bytes:
    return _PROGRAM.format(first=_FIRST.get(name, ""), command=command).encode()


def _job_role() -> tuple[Placement, ...]:
    """What tells every program of a user's where the job role is: at a login, in a job, in a command over ssh."""
    return (
        Placement(path="/etc/profile.d/corral-credentials.sh", content=_PROFILE.encode()),
        Placement(path="/opt/corral/bin/task-prolog", content=_TASK_PROLOG.encode(), mode=0o755),
        Placement(path="/etc/ssh/sshd_config.d/50-corral-credentials.conf", content=_SSHD.encode()),
    )


def _head(files: Mapping[str, bytes]) -> tuple[Placement, ...]:
    """The head has Slurm's files, which nodes fetch from slurmctld, the job scripts to copy, and keys for SSH."""
    slurm = _below(files, "slurm/", "/etc/slurm")
    jobs = _below(files, "jobs/", "/opt/corral/jobs")
    ssh = tuple(Placement(path=_SSH[name], content=files[name]) for name in _SSH if name in files)
    return (*slurm, _own_lines(files), _first_job(), _topology(), *_accounting(files), *jobs, *ssh)


def _first_job() -> Placement:
    """Slurm refuses to start without a file that it is to include; `accounting` writes a number into it."""
    return Placement(path=FIRST_JOB, content=_FIRST_JOB, keeps=True)


def _topology() -> Placement:
    """The same; `switch_tree` writes another, together with the file that slurmctld then looks for."""
    return Placement(path=TOPOLOGY_PLUGIN, content=NO_TOPOLOGY, keeps=True)


def _accounting(files: Mapping[str, bytes]) -> Iterator[Placement]:
    """slurmdbd refuses a slurmdbd.conf that others than its user may read."""
    if (name := "accounting/mariadb.cnf") in files:
        yield Placement(path="/etc/mysql/mariadb.conf.d/60-corral.cnf", content=files[name])
    if (name := "accounting/slurmdbd.conf") in files:
        yield Placement(path="/etc/slurm/slurmdbd.conf", content=files[name], mode=0o600, owner="slurm")


def _own_lines(files: Mapping[str, bytes]) -> Placement:
    """The user's lines. A copy in the bucket survives the head; without one, what was written on the head stays."""
    if _OWN_OBJECT in files:
        return Placement(path="/etc/slurm/own.conf", content=files[_OWN_OBJECT])
    return Placement(path="/etc/slurm/own.conf", content=_OWN, keeps=True)


def _compute(files: Mapping[str, bytes], queue: str | None) -> tuple[Placement, ...]:
    """A queue with GPUs has settings for NCCL, and one with Neuron devices and EFA those of Neuron."""
    found = []
    if (nccl := f"nccl/{queue}.conf") in files:
        found.append(Placement(path="/etc/nccl.conf", content=files[nccl]))
        found.append(Placement(path="/etc/profile.d/corral-nccl.sh", content=files["nccl/profile.sh"]))
    if (neuron := f"neuron/{queue}.sh") in files:
        found.append(Placement(path="/etc/profile.d/corral-neuron.sh", content=files[neuron]))
    return tuple(found)


def _below(files: Mapping[str, bytes], prefix: str, directory: str) -> tuple[Placement, ...]:
    return tuple(
        Placement(path=f"{directory}/{name.removeprefix(prefix)}", content=files[name])
        for name in sorted(files)
        if name.startswith(prefix)
    )
