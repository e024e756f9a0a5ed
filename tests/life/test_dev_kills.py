"""kill -9 in the middle of up and of down of `dev`, at points drawn by a seed: nothing is lost, nothing is doubled.

Whatever is made twice is either in the state, whose numbers would differ, or left in the box after the last down. All
calls of this life, those that look for what was lost among them, are held against the deployer's policies.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from boxes import running_box
from cli_session import CliSession, copy_project, is_engine, kill, process_tree, redeploy_counts, start_until
from corral.plan.iam.deployer_policy import deployer_policies
from deployer_actions import called_actions, denied, seen_actions, uncalled
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.long]
SEED = 20261121
COMMAND, ENGINE, ALL = "the command", "the engine", "everything"
# What the box makes by itself, the bucket of the user's data and the boundary: engine/lifecycle/external_resources.py.
ONLY_IN_THE_BOX = {"iam:CreatePolicy", "s3:ListAllMyBuckets"}


def test_dev_survives_kills_at_any_moment(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    with running_box(tmp_path / "box"):
        cli = CliSession(project=copy_project(tmp_path / "project", small=False), box=tmp_path / "box")
        with step("an up that was killed again and again is continued and nothing is doubled"):
            for victim in (ALL, ENGINE, COMMAND, ALL):
                cut_down(cli, "up", "created", dice.randint(1, 14), victim)
            must(cli, "up", "dev", "--yes")
            assert redeploy_counts(cli) == {"base": (0, 0, 33), "cluster": (0, 0, 62)}
        must(cli, "status", "dev")
        with step("a down that was killed again and again is continued and leaves what is kept"):
            for victim in (COMMAND, ALL, ENGINE):
                cut_down(cli, "down", "deleted", dice.randint(1, 14), victim, "--with-base")
            must(cli, "down", "dev", "--with-base", "--yes")
            assert set(cli.left()) == {"efs/file-system", "kms/alias", "kms/key", "s3/bucket"}
        with step("after that the data goes by its name"):
            must(cli, "cleanup")
            must(cli, "down", "dev", "--yes", "--delete-data", "dev")
            assert set(cli.left()) == {"kms/key"}  # it waits for its deletion
        called = called_actions(cli.box) - ONLY_IN_THE_BOX
        with step("every call from up to down is allowed by the deployer's policies"):
            policies = deployer_policies(account="123456789012", region="us-east-1")
            assert denied(policies, called) == []
        with step("every allowed action is called or has its reason"):
            of_dev = [
                one for one in seen_actions() if not one.startswith("elasticloadbalancing:")
            ]  # test_load_balancer.py
            assert uncalled(of_dev, called) == []


def cut_down(cli: CliSession, verb: str, word: str, after: int, victim: str, *options: str) -> None:
    """Begins the command and, after so many lines that begin with the word, kills it, or its engine, or all."""
    process = start_until(cli, verb, word, after, *options)
    members = process_tree(process.pid)
    victims = {ALL: members, COMMAND: [process.pid], ENGINE: [one for one in members if is_engine(one)]}
    kill(victims[victim])
    process.communicate()


def must(cli: CliSession, *arguments: str) -> None:
    done = cli.run(*arguments)
    assert done.returncode == 0, done.stderr
