"""SSM: Parameter Store with the public parameters that name the box's images; commands and sessions on machines.

A machine of the box is managed: it has an SSM agent as long as it runs. A command runs there as root; what a session
may run is recorded, and `corral connect` runs it, as the session-manager-plugin does on AWS.
"""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import moto.ssm.models
import moto.ssm.urls
from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.ssm.models import Command, Document, Parameter, SimpleSystemManagerBackend
from moto.ssm.responses import SimpleSystemManagerResponse

from corral.box.access.principals import principal_of, role_tags
from corral.box.account import ACCOUNT, PARTITION
from corral.box.api.ssm_documents import RUN_AS_TAG, SessionStart, Values, script_of, session_of
from corral.box.api_errors import ApiError
from corral.box.images import IMAGES, PUBLISHED, MachineImage, image_id
from corral.box.vpc.virtual_network import MachineError, Vpc

_SHOWN = 24_000  # characters of output that GetCommandInvocation shows. Source: Systems Manager API reference

_sessions: dict[str, tuple[str, SessionStart]] = {}  # the machine and the start of each, by id; not saved
machine_directories: Callable[[], Mapping[str, Path]] = dict  # the daemon's: VPC directories by instance id


class BoxCommand(Command):
    """A command on the machines that the call names; moto's runs on all instances unless the call has targets."""

    def _get_instance_ids_from_targets(self) -> list[str]:
        if self.targets:
            raise NotImplementedError("targets of a command")
        return []


class BoxDocument(Document):
    """A document for the systems that have a shell; moto names none."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.platform_types = ["Linux", "MacOS"]


class BoxSSM(SimpleSystemManagerBackend):
    """The SSM of one account and region."""

    _url_module = moto.ssm.urls

    def __init__(self, region_name: str, account_id: str) -> None:
        super().__init__(region_name, account_id)
        for image in IMAGES:
            self.publish_image(image, image_id(image, region_name), image.name, PUBLISHED.timestamp())

    def publish_image(self, image: MachineImage, id: str, name: str, at: float) -> None:
        """Let the public parameter of this kind of image name this one, from `at` (seconds since the epoch) on."""
        published = self._parameters[image.parameter]
        published.append(
            Parameter(
                account_id=self.account_id,
                name=image.parameter,
                value=id,
                parameter_type="String",
                description=name,
                allowed_pattern=None,
                keyid=None,
                last_modified_date=at,
                version=len(published) + 1,
                data_type="aws:ec2:image",
            )
        )

    def send_command(self, **arguments: Any) -> Command:
        """A command that starts on each machine."""
        document = self._document(arguments["document_name"], "Command")
        script = script_of(document.content_json, arguments["parameters"])
        directories = {name: self._machine(name, "InvalidInstanceId") for name in arguments["instance_ids"]}
        command = BoxCommand(account_id=ACCOUNT, backend_region=self.region_name, **arguments)
        self._commands.append(command)
        for name, directory in directories.items():
            invocation = command.get_invocation(name, None)
            invocation |= {"Status": "InProgress", "StatusDetails": "InProgress", "ResponseCode": -1}
            threading.Thread(target=_run, args=(directory, name, script, invocation), daemon=True).start()
        return command

    def start_session(self, target: str, name: str, values: Values, caller: str) -> str:
        """The id of a new session on a machine."""
        start = session_of(self._document(name, "Session").content_json, values, _run_as(caller))
        self._machine(target, "TargetNotConnected")
        who = principal_of(caller)
        owner = who.arn.rpartition("/")[2] if who else "root"
        session = f"{owner}-{secrets.token_hex(9)[:17]}"
        _sessions[session] = (target, start)
        return session

    def _document(self, name: str, kind: str) -> Document:
        """The default version of the account's document; the box has none of AWS's. Raises ApiError without one."""
        held = self._documents.get(name.removeprefix(f"arn:{PARTITION}:ssm:{self.region_name}:{ACCOUNT}:document/"))
        if held is None or (found := held.get_default_version()).document_type != kind:
            raise ApiError("InvalidDocument", f"Document with name {name} does not exist.")
        return found

    def _machine(self, instance_id: str, code: str) -> Path:
        known = any(one.id == instance_id for one in ec2_backends[ACCOUNT][self.region_name].all_instances())
        directory = machine_directories().get(instance_id)
        if not known or directory is None:
            texts = {
                "InvalidInstanceId": f"Instances [[{instance_id}]] not in a valid state for account {ACCOUNT}",
                "TargetNotConnected": f"{instance_id} is not connected.",
            }
            raise ApiError(code, texts[code])
        return directory


class BoxSSMResponse(SimpleSystemManagerResponse):
    """The actions of SSM, with ListDocumentVersions and StartSession, which moto lacks."""

    def list_document_versions(self) -> ActionResult:
        """ListDocumentVersions, in one page."""
        held = self.ssm_backend._get_documents(self._get_param("Name"))
        versions = [
            {
                "Name": one.name,
                "DocumentVersion": number,
                **({"VersionName": one.version_name} if one.version_name else {}),
                "CreatedDate": one.created_date,
                "IsDefaultVersion": number == held.default_version,
                "DocumentFormat": one.document_format,
                "Status": one.status,
            }
            for number, one in held.versions.items()
        ]
        return ActionResult({"DocumentVersions": versions})

    def start_session(self) -> ActionResult:
        """StartSession: an id; the box has no stream."""
        session = self.ssm_backend.start_session(
            target=self._get_param("Target"),
            name=self._get_param("DocumentName", "SSM-SessionManagerRunShell"),
            values=self._get_param("Parameters", {}),
            caller=self.get_access_key(),
        )
        return ActionResult({"SessionId": session, "TokenValue": secrets.token_urlsafe(), "StreamUrl": ""})


def find_session(session_id: str) -> Mapping[str, str]:
    """The `instance`, the `user` and the `command` of a session; empty if there is none."""
    if (found := _sessions.get(session_id)) is None:
        return {}
    return {"instance": found[0], "user": found[1].user, "command": found[1].command}


def install() -> None:
    """Replace moto's SSM with the box's."""
    from moto.ssm.models import ssm_backends

    moto.ssm.models.Document = BoxDocument
    ssm_backends.backend = BoxSSM
    moto.ssm.urls.url_paths = {"{0}/$": BoxSSMResponse.dispatch}


def _run_as(caller: str) -> str:
    """The user that the tag of the caller's role names; empty without one."""
    who = principal_of(caller)
    return role_tags(who.role_arn).get(RUN_AS_TAG, "") if who else ""


def _run(directory: Path, name: str, script: str, invocation: dict[str, Any]) -> None:
    try:
        done = Vpc(directory=directory).run(name, ("sh", "-c", script))
    except (MachineError, OSError) as error:
        invocation |= {"Status": "Failed", "StatusDetails": f"Undeliverable: {error}"}
        return
    status = "Success" if done.returncode == 0 else "Failed"
    invocation |= {
        "ResponseCode": done.returncode,
        "StandardOutputContent": done.stdout[:_SHOWN],
        "StandardErrorContent": done.stderr[:_SHOWN],
        "StatusDetails": status,
        "Status": status,
    }
