"""The steps that each change of the files requires."""

from dataclasses import replace

import pytest

from corral.agent.config.diff import ApplyStep, SlurmConf, required_steps
from corral.model.accounts import AccountsPlan
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from render.plans import cpu, dev, train

SLURM, GRES = "/etc/slurm/slurm.conf", "/etc/slurm/gres.conf"
RESTART = (ApplyStep.RESTART_SLURMCTLD, ApplyStep.RECONFIGURE)
RECONFIGURE = (ApplyStep.RECONFIGURE,)
NOW = dev(train(4), cpu())


def conf(plan: ClusterPlan) -> SlurmConf:
    files = cluster_files(plan)
    return SlurmConf(slurm=files["slurm/slurm.conf"] + files["slurm/host.conf"], gres=files["slurm/gres.conf"])


CHANGES = {
    "a queue grows": (dev(train(6), cpu()), RESTART, RECONFIGURE),
    "a queue shrinks": (dev(train(2), cpu()), RESTART, RECONFIGURE),
    "a queue comes": (dev(train(4), cpu(), replace(cpu(), name="x")), RESTART, RECONFIGURE),
    "a queue is removed": (dev(train(4)), RESTART, RECONFIGURE),
    "idle nodes stay longer": (dev(replace(train(4), suspend_after_s=60), cpu()), RECONFIGURE, RECONFIGURE),
    "a partition's own key": (dev(replace(train(4), extra={"PriorityTier": "3"}), cpu()), RECONFIGURE, RECONFIGURE),
    "a time limit": (dev(replace(train(4), time_limit_s=60), cpu()), RECONFIGURE, RECONFIGURE),
    "a weight": (dev(replace(train(4), weight=3), cpu()), RECONFIGURE, RECONFIGURE),
    "another machine": (
        dev(replace(train(4), node=replace(train().node, sockets=1)), cpu()), RESTART, RECONFIGURE,
    ),
    "accounts": (replace(dev(), accounts=AccountsPlan(enforced=True)), RESTART, RECONFIGURE),
    "static nodes": (dev(replace(train(4), min_nodes=2), cpu()), RECONFIGURE, RECONFIGURE),
    "a key of the user's": (replace(NOW, extra_slurm={"KillWait": "60"}), RECONFIGURE, RECONFIGURE),
    "the port": (replace(NOW, extra_slurm={"slurmctldport": "7000"}), RESTART, RESTART),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_before_23_11_nodes_and_queues_require_a_restart(change: str) -> None:
    plan, old, _ = CHANGES[change]
    assert required_steps([SLURM], conf(NOW), conf(plan), "22.05") == old


@pytest.mark.parametrize("change", CHANGES)
def test_from_23_11_a_reconfigure_is_nearly_always_enough(change: str) -> None:
    plan, _, new = CHANGES[change]
    assert required_steps([SLURM], conf(NOW), conf(plan), "23.11") == new


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/etc/corral/cluster.json", ()),
        ("/opt/corral/jobs/train/jax.sbatch", ()),
        ("/opt/corral/containers/pyxis-0.24.0.tar.gz", (ApplyStep.COMPILE_CONTAINERS,)),
        ("/etc/slurm/slurmdbd.conf", (ApplyStep.RESTART_SLURMDBD,)),
        ("/etc/corral/prometheus/alerts.yml", (ApplyStep.RESTART_PROMETHEUS,)),
        ("/etc/corral/alertmanager/alerts.tmpl", (ApplyStep.RESTART_ALERTMANAGER,)),
        ("/etc/corral/prices.json", ()),
        ("/etc/mysql/mariadb.conf.d/60-corral.cnf", (ApplyStep.RESTART_MARIADB,)),
        ("/etc/slurm/own.conf", (ApplyStep.RECONFIGURE,)),
        ("/etc/ssh/sshd_config.d/60-corral.conf", (ApplyStep.SYNC_USERS, ApplyStep.RELOAD_SSHD)),
        ("/etc/sudoers.d/zzzz-corral-admins", (ApplyStep.SYNC_USERS,)),
        ("/etc/ssh/corral_authorized_keys", ()),
    ],
)
def test_each_file_has_its_daemon(path: str, expected: tuple[ApplyStep, ...]) -> None:
    assert required_steps([path], conf(NOW), conf(NOW), "22.05") == expected


def test_a_newer_agent_restarts_last() -> None:
    found = required_steps([SLURM], conf(NOW), conf(dev(train(6))), "22.05", agent=True)
    assert found == (*RESTART, ApplyStep.RESTART_AGENT)
