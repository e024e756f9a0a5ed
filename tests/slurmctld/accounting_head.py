"""Accounts and jobs of people on a head with slurmdbd."""

from __future__ import annotations

from pathlib import Path

from tools.slurm_head.controller import Controller

import slurms
from corral.agent.accounting.slurm_accounts import SlurmAccounts
from corral.agent.host.base import HostError
from corral.model.cluster import ClusterPlan


def sync_accounts(cluster: Controller, plan: ClusterPlan, state: Path) -> None:
    """Bring slurmdbd to the plan, as an apply does."""

    def run(words: object) -> str:
        done = cluster.run(*words)  # type: ignore[misc]
        if done.returncode:
            raise HostError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    SlurmAccounts(run, state_dir=state, listens=lambda: True).sync(plan)


def submit_as(cluster: Controller, uid: int, *options: str) -> str:
    """The id of a job that has the only node of queue cpu to itself, of the user with this id."""
    words = ("sbatch", "--parsable", "--exclusive", "--partition=cpu", "--time=10", "--chdir=/", "--output=/dev/null")
    done = cluster.run("setpriv", f"--reuid={uid}", "--regid=60", "--clear-groups", *words, *options)
    return slurms.must(done).strip()
