"""Differences between a state and a program's inputs."""

from __future__ import annotations

from typing import Any

import pytest

from corral.box.provider.diff import differences
from corral.box.provider.property_schema import (
    asset,
    block,
    block_list,
    boolean,
    integer,
    json_document,
    switch,
    text,
    text_map,
    text_set,
)
from corral.box.provider.protobuf_values import UNKNOWN

PROPS = {
    "name": text(replaces=True),
    "zone": text(computed=True, replaces=True),
    "days": integer(default=0),
    "file": asset(),
    "enabled": boolean(default=True),
    "encrypted": switch(),
    "force": boolean(write_only=True, default=False),
    "policy": json_document(),
    "groups": text_set(),
    "tags": text_map(),
    "cards": block_list({"index": integer(), "groups": text_set()}),
    "root": block({"size": integer(computed=True), "key": text(replaces=True, computed=True)}, computed=True),
}
ALLOW = '{"Statement": [{"Effect": "Allow", "Action": ["s3:Get*", "s3:List*"]}], "Version": "2012-10-17"}'
SAME_ALLOW = '{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":["s3:List*","s3:Get*"]}}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {}),
        ({"zone": "us-east-1a"}, {}),
        ({"days": 0}, {}),
        ({}, {"days": 0}),
        ({"enabled": True}, {}),
        ({"encrypted": "true"}, {"encrypted": "true"}),
        ({"file": {"path": "/a", "hash": "1"}}, {"file": {"path": "/b", "hash": "1"}}),
        ({}, {"force": True}),
        ({"policy": ALLOW}, {"policy": SAME_ALLOW}),
        ({"groups": ["sg-1", "sg-2"]}, {"groups": ["sg-2", "sg-1"]}),
        ({"tags": {}}, {}),
        ({"cards": [{"index": 0, "groups": ["a", "b"]}]}, {"cards": [{"index": 0, "groups": ["b", "a"]}]}),
        ({"root": {"size": 8, "key": "k"}}, {"root": {"size": 8}}),
        ({"root": {"size": 8}}, {}),
    ],
)
def test_equivalent_values_do_not_differ(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert differences(PROPS, old, new) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"name": "a"}, {"name": "b"}, [("name", "changed", True)]),
        ({"name": "a"}, {"name": UNKNOWN}, [("name", "changed", True)]),
        ({"zone": "us-east-1a"}, {"zone": "us-east-1b"}, [("zone", "changed", True)]),
        ({"days": 30}, {}, [("days", "changed", False)]),
        ({"enabled": False}, {}, [("enabled", "changed", False)]),
        ({"enabled": True}, {"enabled": False}, [("enabled", "changed", False)]),
        ({"force": True}, {}, [("force", "changed", False)]),
        ({"policy": ALLOW}, {"policy": ALLOW.replace("Get", "Put")}, [("policy", "changed", False)]),
        ({"groups": ["sg-1"]}, {"groups": ["sg-1", "sg-2"]}, [("groups", "changed", False)]),
        ({"groups": ["sg-1"]}, {}, [("groups", "deleted", False)]),
        ({"tags": {"a": "1"}}, {"tags": {"b": "2"}}, [("tags.a", "deleted", False), ("tags.b", "added", False)]),
        ({"tags": {"corral:env": "dev"}}, {"tags": {"corral:env": "x"}}, [('tags["corral:env"]', "changed", False)]),
        ({"cards": [{"index": 0}]}, {"cards": [{"index": 1}]}, [("cards[0].index", "changed", False)]),
        ({"cards": [{"index": 0}]}, {"cards": [{"index": 0}, {"index": 1}]}, [("cards[1]", "added", False)]),
        ({"root": {"size": 8, "key": "k"}}, {"root": {"key": "l"}}, [("root.key", "changed", True)]),
    ],
)
def test_different_values_differ(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str, bool]]
) -> None:
    found = [(one.path, one.kind.value, one.replaces) for one in differences(PROPS, old, new)]
    assert found == expected
