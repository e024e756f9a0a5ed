"""What a Systems Manager document runs on a machine, with the values of a call. Pure.

Sources: Systems Manager User Guide, "Data elements and parameters" (allowedPattern is in RE2's syntax), "Session
document schema", "Turn on Run As support for Linux and macOS managed nodes"; Systems Manager API reference,
SendCommand, StartSession; amazon-ssm-agent, `agent/framework/docparser` and `agent/session/shell`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corral.box.api_errors import ApiError

RUN_AS_TAG = "SSMSessionRunAs"
DEFAULT_USER = "ssm-user"  # of sessions that run as nobody else; the SSM agent creates it, with sudo
Values = Mapping[str, Sequence[str]]
_NAME = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStart:
    """What a session runs. `user`: on the machine; empty if the document has none, which ends the session at once."""

    user: str
    command: str


def script_of(content: Mapping[str, Any], values: Values) -> str:
    """The script that a Command document runs as root. Raises ApiError for invalid values.

    Documents of one step, `aws:runShellScript`.
    """
    (step,) = content["mainSteps"]
    if step["action"] != "aws:runShellScript":
        raise NotImplementedError(f"the step {step['action']} of a document")
    filled = _filled(content, values)
    return "\n".join(_fill(line, filled) for line in step["inputs"]["runCommand"])


def session_of(content: Mapping[str, Any], values: Values, run_as: str) -> SessionStart:
    """What a session by this document runs. `run_as`: the user that the caller's tag names, or empty.

    Raises ApiError for invalid values.
    """
    filled = _filled(content, values)
    if (kind := content["sessionType"]) != "InteractiveCommands":
        raise NotImplementedError(f"a session of the type {kind}")
    shell, preferences = content["properties"]["linux"], content.get("inputs", {})
    command = _fill(shell["commands"], filled)
    if shell.get("runAsElevated"):
        return SessionStart(user="root", command=command)
    if preferences.get("runAsEnabled"):
        return SessionStart(user=run_as or preferences.get("runAsDefaultUser", ""), command=command)
    return SessionStart(user=DEFAULT_USER, command=command)


def _filled(content: Mapping[str, Any], values: Values) -> Mapping[str, str]:
    """The value of each parameter of the document. Raises ApiError for unknown, missing and invalid ones."""
    declared: Mapping[str, Any] = content.get("parameters", {})
    if unknown := sorted(values.keys() - declared.keys()):
        raise _invalid(f"The document does not have the parameter {unknown[0]}.")
    if missing := [name for name, one in declared.items() if name not in values and "default" not in one]:
        raise _invalid(f"The document requires the parameter {missing[0]}.")
    found = {name: " ".join(values.get(name, (str(one.get("default")),))) for name, one in declared.items()}
    for name, value in found.items():
        pattern = declared[name].get("allowedPattern")
        # In RE2 `$` is the end of the text; in Python also the end of its last line.
        if pattern and ("\n" in value or not re.search(pattern, value)):
            raise _invalid(f"Parameter value for {name} does not match the allowed pattern {pattern}")
    return found


def _fill(text: str, values: Mapping[str, str]) -> str:
    return _NAME.sub(lambda name: values[name[1]], text)


def _invalid(text: str) -> ApiError:
    return ApiError("InvalidParameters", text)
