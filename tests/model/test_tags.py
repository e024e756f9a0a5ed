"""corral's tags: one module holds their names, and builds the mappings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from corral.model.tags import CLUSTER_TAG, base_tags, cluster_tags, launched_tags, login_name, resource_tag

MODULES = Path(__file__).parents[2] / "modules" / "corral"
TAG = re.compile(r"\bcorral(-box)?:[a-z]+(?![a-z]*:)")  # a type token such as corral:aws:Network has a second colon
OTHERS = {"corral:unanswered"}  # a tag of a Pulumi stack, not of an AWS resource


def tag_literals(source: str) -> Iterator[str]:
    """The texts with a tag's name in this source, f-strings among them; docstrings do not count."""
    tree = ast.parse(source)
    described = (ast.Module, ast.ClassDef, ast.FunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, described) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if (
                id(node) not in docstrings and text not in OTHERS and TAG.search(text)
            ):
                yield text


def test_no_tag_is_written_out_elsewhere() -> None:
    files = (path for path in MODULES.rglob("*.py") if path != MODULES / "model" / "tags.py")
    found = {str(path.relative_to(MODULES)): list(tag_literals(path.read_text())) for path in files}
    assert {name: literals for name, literals in found.items() if literals} == {}


def test_a_tag_that_is_written_out_is_found() -> None:
    source = (
        'def tags(base):\n    "About corral:base."\n    return "corral:base", f"aws:ResourceTag/corral:keep{base}"\n'
    )
    assert list(tag_literals(source)) == ["corral:base", "aws:ResourceTag/corral:keep"]


def test_type_tokens_and_messages_are_no_tags() -> None:
    assert list(tag_literals('f"corral:aws:Network", "corral: no such file", "corral:unanswered"')) == []


def test_users_tags_are_sorted_before_corrals() -> None:
    assert list(base_tags({"b": "2", "a": "1"}, "dev").items()) == [("a", "1"), ("b", "2"), ("corral:base", "dev")]


def test_a_clusters_tags_name_its_base() -> None:
    assert cluster_tags({}, "dev", "small") == {"corral:base": "dev", "corral:cluster": "small"}


def test_launched_instances_carry_queue_and_offer() -> None:
    assert launched_tags({"corral:cluster": "dev"}, "dev", "train", "od-az1") == {
        "corral:cluster": "dev",
        "Name": "corral-dev-train",
        "corral:queue": "train",
        "corral:offer": "od-az1",
    }


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ({"corral:login": "login-1"}, "login-1"),
        ({"corral:login": "login-12"}, "login-12"),
        ({}, None),
        ({"corral:login": "login-0"}, None),
        ({"corral:login": "login-٣"}, None),
        ({"corral:login": "login-1 github.com"}, None),
        ({"corral:login": "login-1\n"}, None),
        ({"corral:login": "l\n    ProxyCommand touch owned\nHost *"}, None),
        ({"corral:login": "login-1", "corral:queue": "train"}, None),
    ],
)
def test_a_login_node_has_the_name_that_corral_gives_or_none(tags: dict[str, str], name: str | None) -> None:
    assert login_name(tags) == name


def test_condition_keys_are_spelled_as_each_service_does() -> None:
    assert (resource_tag(CLUSTER_TAG), resource_tag(CLUSTER_TAG, "ec2"), resource_tag(CLUSTER_TAG, "ssm")) == (
        "aws:ResourceTag/corral:cluster",
        "ec2:ResourceTag/corral:cluster",
        "ssm:resourceTag/corral:cluster",
    )
