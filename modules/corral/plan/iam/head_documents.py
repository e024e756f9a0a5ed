"""The Systems Manager documents by which corral reaches a head: fixed programs of the agent, and shells.

AWS's own documents make whoever may send or start them root: AWS-RunShellScript runs any script as root, and the
default shell belongs to `ssm-user`, who may use sudo. With these documents a policy says what a person may do on a
head: only the programs that a pattern allows, or a shell as that person. `access_policies` and `deployer_policy` name
them.
Sources: Systems Manager User Guide, "Data elements and parameters", "Session document schema", "Turn on Run As support
for Linux and macOS managed nodes"; amazon-ssm-agent, `agent/framework/docparser`, which reads `inputs` for every type
of session, and `agent/session/shell`, which refuses a session without a user of its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

AGENT = "/opt/corral/bin/corral-agent"
ARGUMENTS, TIMEOUT, COMMAND = "arguments", "timeout", "command"  # the parameters of the documents
RUN_AS_TAG = "SSMSessionRunAs"  # on a role or user of IAM: the name of its user on the machines
# GetCommandInvocation shows the first 24,000 characters of what a command printed (API reference). Zipped, that is
# hundreds of jobs; longer output cannot be unzipped and is an error.
_ZIPPED = (
    '{ out=$(%s 2>&3 | gzip -9c | base64 -w0; exit "${PIPESTATUS[0]}"); } 3>&2; code=$?; echo "$out"; exit "$code"'
)
_LOGIN = "cd; exec bash -l"


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadDocument:
    """A document: its name, its type in Systems Manager, and its content."""

    name: str
    type: str
    content: Mapping[str, Any]


def _program(name: str, description: str, allowed: str) -> HeadDocument:
    """A document that runs the agent as root, with arguments of this pattern."""
    script = _ZIPPED % f"{AGENT} {{{{ {ARGUMENTS} }}}}"
    content = {
        "schemaVersion": "2.2",
        "description": description,
        "parameters": {
            ARGUMENTS: {
                "type": "String",
                "description": "Command of corral-agent with its options.",
                "allowedPattern": f"^({allowed})$",
            },
            TIMEOUT: {
                "type": "String",
                "description": "Seconds after which the command is stopped.",
                "default": "60",
                "allowedPattern": "^[1-9][0-9]{0,4}$",
            },
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "agent",
                "inputs": {
                    "timeoutSeconds": f"{{{{ {TIMEOUT} }}}}",
                    "runCommand": [shlex.join(("bash", "-c", script))],
                },
            }
        ],
    }
    return HeadDocument(name=name, type="Command", content=content)


def _shell(name: str, description: str, *, as_root: bool) -> HeadDocument:
    """A document for a shell or one command, as root or as the user whom the caller's tag names.

    There is no default user: a caller without the tag gets no shell.
    """
    preferences = {
        "s3BucketName": "",
        "s3KeyPrefix": "",
        "s3EncryptionEnabled": False,
        "cloudWatchLogGroupName": "",
        "cloudWatchEncryptionEnabled": False,
        "kmsKeyId": "",
        "runAsEnabled": not as_root,
        "runAsDefaultUser": "",
    }
    content = {
        "schemaVersion": "1.0",
        "description": description,
        "sessionType": "InteractiveCommands",
        "inputs": preferences,
        "parameters": {
            COMMAND: {"type": "String", "description": "Command to run (default: a shell).", "default": _LOGIN}
        },
        "properties": {"linux": {"commands": f"{{{{ {COMMAND} }}}}", "runAsElevated": as_root}},
    }
    return HeadDocument(name=name, type="Session", content=content)


QUERY = _program(
    "corral-query",
    "Read a cluster's status, events, job history and what a job has recorded from its head.",
    "status|(events|history)( --since=[0-9]{1,12})?( --start=[0-9]{1,12})?"
    "|job-evidence [0-9]{1,9}(_[0-9]{1,9})?( --start=[0-9]{1,12})?",
)
CONTROL = _program(
    "corral-control",
    "Apply a new configuration on a cluster's head, or drain its jobs before the cluster is deleted.",
    r"apply --json|drain-all --grace=[0-9]{1,6}([.][0-9]{1,6})?( --now)?",
)
SHELL = _shell(
    "corral-shell",
    "Open a shell on a machine of a cluster as the user of the caller's SSMSessionRunAs tag.",
    as_root=False,
)
ROOT_SHELL = _shell("corral-root-shell", "Open a shell on a machine of a cluster as root.", as_root=True)
SSH = HeadDocument(
    name="corral-ssh",
    type="Session",
    content={
        "schemaVersion": "1.0",
        "description": "Connect to sshd on a machine of a cluster, which asks for the caller's key.",
        "sessionType": "Port",
        "properties": {"portNumber": "22"},
    },
)
DOCUMENTS = (QUERY, CONTROL, SHELL, ROOT_SHELL, SSH)
_QUERIES = ("status", "events", "history", "job-evidence")


def document_of(arguments: Sequence[str]) -> HeadDocument:
    """The document that runs this command of the agent; `arguments`: its name and its options."""
    return QUERY if arguments[0] in _QUERIES else CONTROL
