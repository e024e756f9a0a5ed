"""What a Systems Manager document runs: its parameters, and the user of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from corral.box.api.ssm_documents import SessionStart, script_of, session_of
from corral.box.api_errors import ApiError

COMMAND = {
    "schemaVersion": "2.2",
    "parameters": {
        "name": {"type": "String", "allowedPattern": "^[a-z]+$"},
        "count": {"type": "String", "default": "1"},
    },
    "mainSteps": [
        {"action": "aws:runShellScript", "inputs": {"runCommand": ["greet {{ name }}", "repeat {{count}}"]}},
    ],
}


def test_a_command_runs_its_lines_with_the_values() -> None:
    assert script_of(COMMAND, {"name": ["ann"]}) == "greet ann\nrepeat 1"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "The document requires the parameter name."),
        ({"name": ["ann"], "x": ["1"]}, "The document does not have the parameter x."),
        ({"name": ["Ann"]}, "Parameter value for name does not match the allowed pattern ^[a-z]+$"),
        ({"name": ["ann; id"]}, "Parameter value for name does not match the allowed pattern ^[a-z]+$"),
        ({"name": ["ann\n"]}, "Parameter value for name does not match the allowed pattern ^[a-z]+$"),
    ],
)
def test_invalid_parameters_are_refused(values: Mapping[str, list[str]], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        script_of(COMMAND, values)
    assert (refused.value.code, refused.value.message) == ("InvalidParameters", message)


def shell(elevated: bool, **preferences: Any) -> Mapping[str, Any]:
    return {
        "schemaVersion": "1.0",
        "sessionType": "InteractiveCommands",
        "inputs": preferences,
        "parameters": {"command": {"type": "String", "default": "bash"}},
        "properties": {"linux": {"commands": "{{ command }}", "runAsElevated": elevated}},
    }


@pytest.mark.parametrize(
    ("document", "tag", "user"),
    [
        (shell(False, runAsEnabled=True, runAsDefaultUser=""), "ada", "ada"),
        (shell(False, runAsEnabled=True, runAsDefaultUser="guest"), "ada", "ada"),
        (shell(False, runAsEnabled=True, runAsDefaultUser="guest"), "", "guest"),
        (shell(False, runAsEnabled=True, runAsDefaultUser=""), "", ""),
        (shell(False, runAsEnabled=False), "ada", "ssm-user"),
        (shell(True, runAsEnabled=True, runAsDefaultUser=""), "ada", "root"),
    ],
)
def test_a_session_runs_as(document: Mapping[str, Any], tag: str, user: str) -> None:
    assert session_of(document, {}, tag) == SessionStart(user=user, command="bash")


def test_a_session_runs_the_given_command() -> None:
    assert session_of(shell(True), {"command": ["id -u"]}, "").command == "id -u"
