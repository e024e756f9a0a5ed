"""What counts as a difference between a state and what a program wants."""

from __future__ import annotations

from typing import Any

import pytest

from corral.box.provider.compare import differences
from corral.box.provider.shapes import asset, block, blocks, document, flag, switch, text, texts, whole, wordset
from corral.box.provider.wire import UNKNOWN

PROPS = {
    "name": text(replaces=True),
    "zone": text(computed=True, replaces=True),
    "days": whole(default=0),
    "file": asset(),
    "enabled": flag(default=True),
    "encrypted": switch(),
    "force": flag(kept=True, default=False),
    "policy": document(),
    "groups": wordset(),
    "tags": texts(),
    "cards": blocks({"index": whole(), "groups": wordset()}),
    "root": block({"size": whole(computed=True), "key": text(replaces=True, computed=True)}, computed=True),
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
def test_these_mean_the_same(old: dict[str, Any], new: dict[str, Any]) -> None:
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
def test_these_differ(old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str, bool]]) -> None:
    found = [(one.path, one.way.value, one.replaces) for one in differences(PROPS, old, new)]
    assert found == expected
