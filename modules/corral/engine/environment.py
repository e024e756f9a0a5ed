"""The environment that an engine runs in: state backend, secrets, credentials, PATH. Nothing is left to defaults.

Everything is computed from the environment of the command; only `require_credentials` looks further, and asks AWS one
question where the states are in a bucket.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.engine.binary import Binary
from corral.engine.bucket_backend import require_bucket
from corral.engine.errors import CANNOT_START, WRONG_INPUT, EngineError
from corral.engine.projects import fields_of, secrets_provider_of
from corral.model.stack_files import stack_of

ALWAYS = {
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_AUTOMATION_API": "true",  # the CLI shall neither ask nor advertise
    "PYTHONUNBUFFERED": "1",
}
# A real account's settings must not travel to the box.
REAL_ACCOUNT = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN")
OWN_BACKENDS = ("file://", "s3://", "gs://", "azblob://")
HOSTED = ("https://", "http://")  # only where PULUMI_BACKEND_URL says so
NO_BACKEND = (
    "for example: export PULUMI_BACKEND_URL='s3://my-state-bucket?region=us-east-1'",
    "`corral bootstrap` makes a bucket and says what to set",
    "or add --box to use the AWS on this machine, which keeps its own state",
)
NO_SECRETS = (
    "export PULUMI_CONFIG_PASSPHRASE=...  (or PULUMI_CONFIG_PASSPHRASE_FILE=...)",
    "or a KMS key: `secretsprovider: awskms://alias/NAME?region=REGION` in the stack's file",
)
NO_CREDENTIALS = (
    "sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "or add --box to use the AWS on this machine",
)


def engine_environment(
    environ: Mapping[str, str], binary: Binary, stacks: Path, box: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All variables of the engine's process: for the box where its variables are given, else for an account.

    Raises EngineError where an account is meant and the state backend or its secrets are not set up.
    """
    if box is not None:
        kept = {name: value for name, value in environ.items() if name not in REAL_ACCOUNT}
        return _complete({**kept, **box}, binary)
    url = backend_url(environ, stacks)
    return _complete({**environ, "PULUMI_BACKEND_URL": url}, binary)


def backend_url(environ: Mapping[str, str], stacks: Path) -> str:
    """Where the states are kept: as the environment says, else the project, else a log-in to a backend of one's own.

    Raises EngineError rather than fall back to the vendor's cloud.
    """
    for url in (environ.get("PULUMI_BACKEND_URL"), _project_backend(stacks), _logged_in(environ)):
        if url:
            return _known(url)
    sentence = "where the state of the stacks is kept is not said: PULUMI_BACKEND_URL is not set"
    raise EngineError(sentence, NO_BACKEND, WRONG_INPUT)


def require_secrets(environ: Mapping[str, str], stack_file: Path) -> None:
    """Raises EngineError unless the secrets of this stack can be encrypted."""
    if "PULUMI_CONFIG_PASSPHRASE" in environ or environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        return
    if not secrets_provider_of(stack_file):
        raise EngineError("how the state's secrets are encrypted is not said", NO_SECRETS, WRONG_INPUT)


def require_same_secrets(state: Mapping[str, Any] | None, stack_file: Path) -> None:
    """Raises EngineError where an exported state's secrets are encrypted otherwise than the stack's file says.

    So it is after a checkout in which the file's line is missing, and after a change of the line alone.
    """
    used = ((state or {}).get("deployment") or {}).get("secrets_providers") or {}
    if not used:
        return
    was = str((used.get("state") or {}).get("url") or "") if used.get("type") == "cloud" else ""
    says = secrets_provider_of(stack_file) or ""
    if says in (was, was or "passphrase"):
        return
    if was and not says:
        sentence = f"the secrets of this stack's state are encrypted with {was}, of which {stack_file} says nothing"
        raise EngineError(sentence, (f"add the line  secretsprovider: {was}",), WRONG_INPUT)
    sentence = f"{stack_file} says that the secrets are encrypted with {says}, but it is {was or 'a passphrase'}"
    change = f"pulumi -C {stack_file.parent} stack change-secrets-provider --stack {stack_of(stack_file)} '{says}'"
    raise EngineError(sentence, (f"to change it: {change}", "else write the line as it was"), WRONG_INPUT)


def require_credentials(environ: Mapping[str, str]) -> None:
    """Raises EngineError unless credentials for AWS are configured, and can be used on a state backend in a bucket."""
    _require_configured(environ)
    require_bucket(environ.get("PULUMI_BACKEND_URL", ""), environ)


def _require_configured(environ: Mapping[str, str]) -> None:
    if environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY"):
        return
    from botocore.exceptions import BotoCoreError
    from botocore.session import Session

    try:
        found = Session().get_credentials()
    except BotoCoreError as error:
        raise EngineError(f"the AWS credentials cannot be used: {error}", NO_CREDENTIALS, CANNOT_START) from None
    if found is None:
        raise EngineError("no AWS credentials were found", NO_CREDENTIALS, CANNOT_START)


def _known(url: str) -> str:
    if url.startswith((*OWN_BACKENDS, *HOSTED)):
        return url
    sentence = f"PULUMI_BACKEND_URL is '{url}', which is no place for states that Pulumi knows"
    raise EngineError(sentence, NO_BACKEND, WRONG_INPUT)


def _complete(environ: Mapping[str, str], binary: Binary) -> dict[str, str]:
    ahead = [*map(str, binary.search), str(Path(sys.executable).parent)]
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    search = dict.fromkeys([*ahead, *path])
    return {**environ, **ALWAYS, "CORRAL_PYTHON": sys.executable, "PATH": os.pathsep.join(search)}


def _project_backend(stacks: Path) -> str | None:
    project = stacks / "cluster" / "Pulumi.yaml"
    backend = fields_of(project).get("backend") if project.is_file() else None
    url = backend.get("url") if isinstance(backend, Mapping) else None
    return url if isinstance(url, str) and url else None


def _logged_in(environ: Mapping[str, str]) -> str | None:
    home = environ.get("PULUMI_HOME") or str(Path(environ.get("HOME") or "~").expanduser() / ".pulumi")
    try:
        current = json.loads(Path(home, "credentials.json").read_text()).get("current", "")
    except (OSError, ValueError):
        return None
    return str(current) if str(current).startswith(OWN_BACKENDS) else None
