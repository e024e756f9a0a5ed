"""The machines' policies grant what the agent calls, and no more: read from the agent's source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name
from botocore.session import get_session

from corral.plan.iam.deployer_policy import permission
from corral.plan.iam.head_calls import planned_arns
from corral.plan.iam.iam_policies import compute_policy, head_policy
from environments import dev_cluster

MODULES = Path(__file__).parents[2] / "modules"
SERVICES = ("ec2", "fsx", "logs", "cloudwatch", "route53", "s3", "secretsmanager", "sns", "ssm", "sts")
# The commands of a node, and what `corral-agent boot` runs for it. Those of the head import all others.
NODE = ("corral.agent.commands.node", "corral.agent.boot.sequence", "corral.agent.boot.munge_key", "corral.agent.s3")
HEAD = ("corral.agent.commands.head", "corral.agent.commands.apply", *NODE)
# Not called by the agent: AWS requires it for a call of the agent's, or AWS's own agent calls it.
LAUNCH = {"ec2:CreateTags", "iam:PassRole"}  # RunInstances with tags and a role
OF_THE_KEY = ("kms:",)  # encrypted volumes, objects and secrets
OF_THE_SSM_AGENT = ("ssm:UpdateInstanceInformation", "ssmmessages:")
PUTS_IN_THE_BOOT = {"secretsmanager:PutSecretValue"}  # of the head; a node imports the same module


def imported(name: str) -> Iterator[str]:
    """The agent's modules that this one imports, anywhere in it."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("corral.agent"):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def tree(name: str) -> ast.Module:
    path = MODULES / name.replace(".", "/")
    file = path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"
    return ast.parse(file.read_bytes())


def closure(roots: tuple[str, ...]) -> set[str]:
    """These modules of the agent and all that they import."""
    seen: set[str] = set()
    todo = list(roots)
    while todo:
        name = todo.pop()
        path = MODULES / name.replace(".", "/")
        if name not in seen and (path.is_dir() or path.with_suffix(".py").is_file()):
            seen.add(name)
            todo += imported(name)
    return seen


def called(roots: tuple[str, ...]) -> set[str]:
    """The IAM actions of all operations of AWS that these modules name, as methods or in words (paginators)."""
    words: set[object] = set()
    for name in closure(roots):
        for node in ast.walk(tree(name)):
            if isinstance(node, ast.Attribute):
                words.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
    return {
        permission(service, operation)
        for service in SERVICES
        for operation in get_session().get_service_model(service).operation_names
        if xform_name(operation) in words
    }


def granted(policy: Any) -> set[str]:
    """The actions of the policy that the agent itself is to call."""
    actions = {action for statement in policy["Statement"] for action in statement["Action"]}
    return {one for one in actions - LAUNCH if not one.startswith((*OF_THE_KEY, *OF_THE_SSM_AGENT))}


@pytest.mark.parametrize(
    ("policy", "roots", "apart"),
    [(head_policy, HEAD, set()), (compute_policy, NODE, PUTS_IN_THE_BOOT)],
    ids=["head", "compute"],
)
def test_a_machine_may_call_what_its_agent_calls_and_no_more(policy: Any, roots: Any, apart: set[str]) -> None:
    assert granted(policy(planned_arns(dev_cluster(), "123456789012"))) == called(roots) - apart
