"""host.conf: the lines of slurm.conf that depend on the kind of host that Slurm runs on, and nothing about the cluster.

On EC2 hosts have cgroups and a `slurm` user; the box and the tests describe their own host by a record and get the same
file from it. slurm.conf includes host.conf by its bare name, which is what makes slurmctld send it to the nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from corral.render.lines import Value, slurm_line
from corral.render.texts import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What Slurm must know about the hosts of a cluster. The defaults are those of an EC2 image.

    `state_dir` holds what must outlive a head. `munge_socket`: None is munge's own place. `poses`: hosts register as
    the planned nodes whatever hardware they have. Without `cgroups` jobs are neither bound nor fenced.
    """

    slurm_user: str = "slurm"
    slurmd_user: str = "root"
    state_dir: str = "/var/lib/corral/slurmctld"
    spool_dir: str = "/var/spool/slurmd"
    log_dir: str = "/var/log/slurm"
    run_dir: str = "/run"
    controller_port: int = 6817
    node_port: int = 6818
    cgroups: bool = True
    poses: bool = False
    munge_socket: str | None = None


EC2 = HostFacts()
BOX = HostFacts(cgroups=False, poses=True)  # a machine of the AWS in a box shares its kernel with all others


def host_conf(facts: HostFacts = EC2) -> str:
    """The text of host.conf for such hosts."""
    return fill("slurm/host.conf.j2", lines=host_lines(facts))


def host_lines(facts: HostFacts) -> tuple[str, ...]:
    """One setting a line."""
    return tuple(line for key, value in host_settings(facts).items() if (line := slurm_line({key: value})))


def host_settings(facts: HostFacts) -> Mapping[str, Value]:
    """The settings of host.conf by key, the same keys for every host. None: not written, Slurm's default is right."""
    return {
        "SlurmUser": facts.slurm_user,
        "SlurmdUser": facts.slurmd_user,
        "SlurmctldPort": facts.controller_port,
        "SlurmdPort": facts.node_port,
        "StateSaveLocation": facts.state_dir,
        "SlurmdSpoolDir": facts.spool_dir,
        "SlurmctldLogFile": f"{facts.log_dir}/slurmctld.log",
        "SlurmdLogFile": f"{facts.log_dir}/slurmd.log",
        "SlurmctldPidFile": f"{facts.run_dir}/slurmctld.pid",
        "SlurmdPidFile": f"{facts.run_dir}/slurmd.pid",
        "AuthInfo": f"socket={facts.munge_socket}" if facts.munge_socket else None,
        **_confinement(cgroups=facts.cgroups),
        "JobAcctGatherType": "jobacct_gather/cgroup" if facts.cgroups else "jobacct_gather/linux",
        "SlurmdParameters": "config_overrides" if facts.poses else None,
    }


def _confinement(*, cgroups: bool) -> Mapping[str, Value]:
    """How processes of a job are held together and bound.

    task/cgroup comes first: from 23.02.1 Slurm sorts them so itself, since on cgroup v2 before Linux 6.2 the other
    order undoes the binding (CHANGELOG/slurm-23.02.md). No task plugin is no line: 23.11 removed `task/none`.
    Alloc: every node of a job is checked before the job begins anywhere, not only the first. Contain makes a job's
    container exist on every node from the start; without proctrack/cgroup it is an error.
    """
    return {
        "ProctrackType": "proctrack/cgroup" if cgroups else "proctrack/linuxproc",
        "TaskPlugin": ("task/cgroup", "task/affinity") if cgroups else None,
        "PrologFlags": ("Alloc", "Contain") if cgroups else "Alloc",
    }


HOST_KEYS = tuple(host_settings(EC2))
