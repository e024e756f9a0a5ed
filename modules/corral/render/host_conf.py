"""host.conf: the lines of slurm.conf that depend on the kind of host, not on the cluster.

EC2 hosts have cgroups and a `slurm` user; the box and the tests describe their own host by a record. slurm.conf
includes host.conf by its bare name, because slurmctld sends only such files to the nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from corral.render.conf_line import Value, slurm_line
from corral.render.templates import fill


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """The facts about a cluster's hosts that Slurm needs. The defaults fit an EC2 image.

    `state_dir`: what outlives a head. `munge_socket`: None means munge's default path. `poses`: hosts register as the
    planned nodes regardless of their hardware. Without `cgroups`, jobs are neither bound nor confined.
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
BOX = HostFacts(cgroups=False, poses=True)  # an instance of the box shares its kernel with all others


def host_conf(facts: HostFacts = EC2) -> str:
    """The text of host.conf for these hosts."""
    return fill("slurm/host.conf.j2", lines=host_lines(facts))


def host_lines(facts: HostFacts) -> tuple[str, ...]:
    """The settings, one per line."""
    return tuple(line for key, value in host_settings(facts).items() if (line := slurm_line({key: value})))


def host_settings(facts: HostFacts) -> Mapping[str, Value]:
    """The settings of host.conf by key, the same keys for every host. None: not written, Slurm's default applies."""
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
    """How processes of a job are tracked and bound.

    task/cgroup comes first: on cgroup v2 before Linux 6.2 the other order undoes the binding, so Slurm itself sorts
    them from 23.02.1 on (CHANGELOG/slurm-23.02.md). Without a task plugin the line is omitted: 23.11 removed
    `task/none`. Alloc runs the prolog on every node of a job before the job starts on any. Contain creates a job's
    container on every node at its start; it requires proctrack/cgroup.
    """
    return {
        "ProctrackType": "proctrack/cgroup" if cgroups else "proctrack/linuxproc",
        "TaskPlugin": ("task/cgroup", "task/affinity") if cgroups else None,
        "PrologFlags": ("Alloc", "Contain") if cgroups else "Alloc",
    }
