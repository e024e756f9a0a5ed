"""Which of a cluster's files a machine downloads and where they go, by role and queue. Pure: bytes to placements."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from corral.agent.directory import directory_placements
from corral.agent.file_install import Placement
from corral.agent.user_rights import ADMINS, KEYS, user_rights
from corral.model.enums import Role
from corral.model.job_role import URI, VARIABLE
from corral.model.monitoring import ALERTMANAGER_DIR, PRICES, PROMETHEUS_DIR

# Isolated (-I): root may start it in a directory in which a user has left an argparse.py (decision 162).
_ENTRY_POINT = "/usr/bin/python3 -I /opt/corral/agent/corral/agent/entry_point.py"
_AGENT = f"exec {_ENTRY_POINT}"
# slurmctld waits for these three, so they run a single file without the agent's imports.
_RESUME_PROGRAM = "exec /usr/bin/python3 -I -S /opt/corral/agent/corral/agent/autoscaler/resume_program.py"
_HOOKS, PROLOGS, EPILOGS = "/opt/corral/hooks", "/opt/corral/prolog.d", "/opt/corral/epilog.d"
# Each program in a directory by its name: the environment's, then an image's own. Not by a pattern in slurm.conf, whose
# order differs between releases of Slurm. An epilog runs all, so that one failure leaves nothing else behind.
_PROLOG = f"""# Skip corral's check, and the start of Python, if one passed within the last minute.
if [ -z "$(find /run/corral/healthy -newermt "-60 seconds" 2>/dev/null)" ]; then
    {_ENTRY_POINT} prolog || exit
fi
LC_ALL=C
for program in {PROLOGS}/*; do
    if [ -x "$program" ]; then "$program" || exit; fi
done"""
_EPILOG = f"""LC_ALL=C code=0
for program in {EPILOGS}/*; do
    if [ -x "$program" ]; then "$program" || code=$?; fi
done
exit $code"""
# slurmctld exits over a job whose script is empty, at each start again. So the job gets one that fails with a reason.
# Its environment is in Slurm's format: the number of its variables, then each. This runs as slurmctld's user, who may
# have put links there.
_RESTORE_SCRIPTS = r"""for job in /var/lib/corral/slurmctld/hash.*/job.*; do
    if [ ! -d "$job" ] || { [ -s "$job/script" ] && [ -s "$job/environment" ]; }; then continue; fi
    echo "corral: the script of ${job##*/} is lost" >&2
    printf '%s\n' '#!/bin/sh' \
        'echo "corral: a full disk or a power cut took the script of this job - submit it again" >&2' \
        'exit 1' >"$job/script"
    printf '\001\000\000\000PATH=/usr/bin:/bin\000' >"$job/environment"
    chmod 600 "$job/environment" "$job/script"
done"""
# Slurm starts programs by path without arguments, so each agent command that Slurm calls has its own file.
PROGRAMS: Mapping[str, str] = {
    # Root may come by ssh, whose sessions have the job role.
    "corral-agent": f'unset {VARIABLE}\n{_AGENT} "$@"',
    "resume": f'{_RESUME_PROGRAM} resume "$@"',
    "resume-failed": f'{_RESUME_PROGRAM} resume-failed "$@"',
    "suspend": f'{_RESUME_PROGRAM} suspend "$@"',
    "prolog": _PROLOG,
    "epilog": _EPILOG,
    "prolog-slurmctld": f"exec {_HOOKS}/prolog-slurmctld",
    "restore-scripts": _RESTORE_SCRIPTS,
    "epilog-slurmctld": f"exec {_HOOKS}/epilog-slurmctld",
    "health-check": f"{_AGENT} health-check",
    "rank-order": f"{_AGENT} rank-order",
    # A profile of the user's own need not exist on this machine.
    "ecr-password": f"unset AWS_PROFILE AWS_DEFAULT_PROFILE\n{_AGENT} ecr-password",
}
_PROGRAM = """#!/bin/sh
# Managed by corral: written by `corral-agent boot`.
{command}
"""
# Programs of the environment: where they go, and whether nodes need them.
_OWN_PROGRAMS: Mapping[str, tuple[str, Role]] = {
    "hooks/prolog": (f"{PROLOGS}/50-environment", Role.COMPUTE),
    "hooks/epilog": (f"{EPILOGS}/50-environment", Role.COMPUTE),
    "hooks/prolog-slurmctld": (f"{_HOOKS}/prolog-slurmctld", Role.HEAD),
    "hooks/epilog-slurmctld": (f"{_HOOKS}/epilog-slurmctld", Role.HEAD),
    "containers/prolog": (f"{PROLOGS}/20-containers", Role.COMPUTE),
}
# Root's programs use the machine's own role, all others the job role.
_JOB_ROLE = f"{VARIABLE}={URI}"
_PROFILE = f"""# Managed by corral: where the SDKs and tools of AWS find the job role.
if [ "$(id -u)" -ne 0 ]; then export {_JOB_ROLE}; fi
"""
# Slurm adds the printed variable to the task's environment, wherever the job was submitted.
_TASK_PROLOG = f"""#!/bin/sh
# Managed by corral: where the SDKs and tools of AWS find the job role.
if [ "$(id -u)" -ne 0 ]; then echo "export {_JOB_ROLE}"; fi
"""
# Slurm runs its TaskProlog inside of the container that Pyxis has made, where a program of the host's is missing: each
# task would fail.
_CONTAINERS = """# Managed by corral: what Slurm runs in each task is there in containers of enroot and Pyxis, too.
/opt/corral/bin/task-prolog /opt/corral/bin/task-prolog none x-create=file,bind,ro,nosuid,nodev
"""
_SSHD = f"""# Managed by corral: a command over ssh reads no profile.
SetEnv {_JOB_ROLE}
"""
_OWN = b"# Your own lines of slurm.conf; corral never changes this file. After a change: scontrol reconfigure\n"
CONTAINERS = "/opt/corral/containers"  # what a machine compiles
ENROOT_CONFIG = "/etc/corral/enroot"  # for users without their own; containers/enroot.conf names it
ACCOUNTS = "/etc/corral/accounts"  # for people and for the comparison of an apply
FIRST_JOB = "/etc/slurm/first-job.conf"
TOPOLOGY_PLUGIN = "/etc/slurm/topology-plugin.conf"
NO_TOPOLOGY = b"# Managed by corral: do not edit. Slurm has no topology of this cluster.\n"
_FIRST_JOB = b"# Managed by corral: do not edit. The first job id (default: 1).\n"
_NEEDED = {
    Role.COMPUTE: ("nccl/", "neuron/", "containers/", "directory/"),
    Role.LOGIN: ("slurm/", "jobs/", "access/", "containers/", "directory/"),
}
_HEAD_SSHD = "access/head-sshd.conf"
SSHD_CONF = "/etc/ssh/sshd_config.d/60-corral.conf"
_ACCESS = {
    "access/authorized_keys": ("/etc/ssh/corral_authorized_keys", 0o644),
    "access/sshd.conf": (SSHD_CONF, 0o644),
    "access/sudoers": (ADMINS, 0o440),
}


def placements_for(files: Mapping[str, bytes], role: Role, queue: str | None) -> tuple[Placement, ...]:
    """Return the placements of the files for a machine in this role and queue.

    `files`: content by path below the cluster's prefix.
    """
    match role:
        case Role.HEAD:
            own = (*_people(files, role), *_accounting(files), *_monitoring(files))
        case Role.LOGIN:
            own = _people(files, role)
        case Role.COMPUTE:
            own = _compute(files, queue)
    return (
        *_shared(files),
        *user_rights(role),
        *own,
        *directory_placements(files, role),
        *_own_programs(files, role),
        *_container_sources(files),
    )


def is_needed(name: str, role: Role) -> bool:
    """True if a machine in this role installs a file of the manifest. Nodes fetch Slurm's files from slurmctld."""
    if name in _OWN_PROGRAMS:
        return _OWN_PROGRAMS[name][1] is role
    return role is Role.HEAD or "/" not in name or name.startswith(_NEEDED[role])


def _shared(files: Mapping[str, bytes]) -> tuple[Placement, ...]:
    records = (
        Placement(path=f"/etc/corral/{name}", content=files[name])
        for name in ("cluster.json", "deployed.json")
        if name in files
    )
    programs = (
        Placement(path=f"/opt/corral/bin/{name}", content=_program(command), mode=0o755)
        for name, command in PROGRAMS.items()
    )
    return (*records, *programs, *_job_role())


def _own_programs(files: Mapping[str, bytes], role: Role) -> Iterator[Placement]:
    """The environment's programs that Slurm runs on machines in this role."""
    for name, (path, where) in _OWN_PROGRAMS.items():
        if name in files and where is role:
            yield Placement(path=path, content=files[name], mode=0o755)


def _container_sources(files: Mapping[str, bytes]) -> Iterator[Placement]:
    """What a machine compiles for its containers, and the script that does."""
    for name in sorted(files):
        if name == "containers/build.sh" or (name.startswith("containers/") and name.endswith(".tar.gz")):
            yield Placement(path=f"{CONTAINERS}/{PurePosixPath(name).name}", content=files[name], mode=_mode(name))


def _mode(name: str) -> int:
    return 0o755 if name.endswith(".sh") else 0o644


def _program(command: str) -> bytes:
    return _PROGRAM.format(command=command).encode()


def _job_role() -> tuple[Placement, ...]:
    """The files that point users' programs to the job role: in logins, jobs, containers and ssh commands."""
    return (
        Placement(path="/etc/profile.d/corral-credentials.sh", content=_PROFILE.encode()),
        Placement(path="/opt/corral/bin/task-prolog", content=_TASK_PROLOG.encode(), mode=0o755),
        Placement(path="/etc/enroot/mounts.d/50-corral.fstab", content=_CONTAINERS.encode()),
        Placement(path="/etc/ssh/sshd_config.d/50-corral-credentials.conf", content=_SSHD.encode()),
    )


def _people(files: Mapping[str, bytes], role: Role) -> tuple[Placement, ...]:
    """Where people work: Slurm configuration, which nodes fetch from slurmctld, sample jobs, keys and administrators.

    With login nodes, sshd of the head reads another file, which leaves it to administrators.
    """
    slurm = _below(files, "slurm/", "/etc/slurm")
    jobs = _below(files, "jobs/", "/opt/corral/jobs")
    keys = _below(files, "access/keys/", KEYS)
    closed = {"access/sshd.conf": files[_HEAD_SSHD]} if role is Role.HEAD and _HEAD_SSHD in files else {}
    texts = {**files, **closed}
    access = tuple(
        Placement(path=path, content=texts[name], mode=mode) for name, (path, mode) in _ACCESS.items() if name in files
    )
    return (*slurm, _own_lines(), _first_job(), _topology(), *jobs, *access, *keys)


def _first_job() -> Placement:
    """An empty include file, without which Slurm refuses to start; `accounting` writes FirstJobId into it."""
    return Placement(path=FIRST_JOB, content=_FIRST_JOB, only_if_missing=True)


def _topology() -> Placement:
    """An empty include file; `topology_sync` fills it when it writes topology.conf."""
    return Placement(path=TOPOLOGY_PLUGIN, content=NO_TOPOLOGY, only_if_missing=True)


def _accounting(files: Mapping[str, bytes]) -> Iterator[Placement]:
    """The files of MariaDB and slurmdbd, which refuses a slurmdbd.conf that other users can read; the accounts."""
    if (name := "accounting/accounts") in files:
        yield Placement(path=ACCOUNTS, content=files[name])
    if (name := "accounting/mariadb.cnf") in files:
        yield Placement(path="/etc/mysql/mariadb.conf.d/60-corral.cnf", content=files[name])
    if (name := "accounting/slurmdbd.conf") in files:
        yield Placement(path="/etc/slurm/slurmdbd.conf", content=files[name], mode=0o600, owner="slurm")


def _monitoring(files: Mapping[str, bytes]) -> Iterator[Placement]:
    """The files of Prometheus and Alertmanager, and the prices for the head's own metrics."""
    for name in ("monitoring/alerts.yml", "monitoring/prometheus.yml"):
        if name in files:
            yield Placement(path=f"{PROMETHEUS_DIR}/{PurePosixPath(name).name}", content=files[name])
    for name in ("monitoring/alertmanager.yml", "monitoring/alerts.tmpl"):
        if name in files:
            yield Placement(path=f"{ALERTMANAGER_DIR}/{PurePosixPath(name).name}", content=files[name])
    if (name := "monitoring/prices.json") in files:
        yield Placement(path=PRICES, content=files[name])


def _own_lines() -> Placement:
    """The user's own lines of slurm.conf, which are left alone."""
    return Placement(path="/etc/slurm/own.conf", content=_OWN, only_if_missing=True)


def _compute(files: Mapping[str, bytes], queue: str | None) -> tuple[Placement, ...]:
    """A node's files: NCCL settings for a queue with GPUs, Neuron settings for one with Neuron devices and EFA."""
    found = []
    if (nccl := f"nccl/{queue}.conf") in files:
        found.append(Placement(path="/etc/nccl.conf", content=files[nccl]))
        found.append(Placement(path="/etc/profile.d/corral-nccl.sh", content=files["nccl/profile.sh"]))
    if (mounts := f"containers/mounts/{queue}.fstab") in files:
        enroot = files["containers/enroot.conf"]
        found.append(Placement(path="/etc/enroot/enroot.conf.d/50-corral.conf", content=enroot))
        found.append(Placement(path="/etc/enroot/mounts.d/60-corral.fstab", content=files[mounts]))
    if (name := "containers/credentials") in files:
        found.append(Placement(path=f"{ENROOT_CONFIG}/.credentials", content=files[name]))
    if (neuron := f"neuron/{queue}.sh") in files:
        found.append(Placement(path="/etc/profile.d/corral-neuron.sh", content=files[neuron]))
    return tuple(found)


def _below(files: Mapping[str, bytes], prefix: str, directory: str) -> tuple[Placement, ...]:
    return tuple(
        Placement(path=f"{directory}/{name.removeprefix(prefix)}", content=files[name])
        for name in sorted(files)
        if name.startswith(prefix)
    )
