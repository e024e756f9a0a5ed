"""The engine's environment variables: state backend, secrets, credentials, PATH. Nothing is left to defaults.

All is computed from the command's environment. Only `require_credentials` calls AWS, once, if the state backend is a
bucket.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.engine.backend.bucket_backend import require_bucket
from corral.engine.engine_errors import CANNOT_START, WRONG_INPUT, EngineError
from corral.engine.pulumi.binary import PulumiBinary
from corral.engine.pulumi.projects import fields_of, secrets_provider_of
from corral.model.pulumi_files import stack_of

PYTHON = sys.executable  # runs plugins and programs
ALWAYS = {
    "PULUMI_SKIP_UPDATE_CHECK": "true",
    "PULUMI_AUTOMATION_API": "true",  # no prompts and no advertisements from the CLI
    "PYTHONUNBUFFERED": "1",
}
# Settings of a real account must not reach the box.
REAL_ACCOUNT = ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_ROLE_ARN")
OWN_BACKENDS = ("file://", "s3://", "gs://", "azblob://")
HOSTED = ("https://", "http://")  # only if PULUMI_BACKEND_URL names it
NO_BACKEND = (
    "e.g. export PULUMI_BACKEND_URL='s3://my-state-bucket?region=us-east-1'",
    "`corral bootstrap` creates a bucket and prints what to set",
    "or add --box to use the local AWS emulator, which has its own state",
)
NO_SECRETS = (
    "export PULUMI_CONFIG_PASSPHRASE=...  (or PULUMI_CONFIG_PASSPHRASE_FILE=...)",
    "or a KMS key: `secretsprovider: awskms://alias/NAME?region=REGION` in the stack file",
)
NO_CREDENTIALS = (
    "sign in with `aws sso login`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "or add --box to use the local AWS emulator",
)


def engine_environment(
    environ: Mapping[str, str], binary: PulumiBinary, stacks: Path, box: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All variables of the engine's process: for the box if its variables are given, otherwise for an account.

    Raises EngineError if an account has no state backend configured.
    """
    if box is not None:
        kept = {name: value for name, value in environ.items() if name not in REAL_ACCOUNT}
        return _complete({**kept, **box}, binary)
    url = backend_url(environ, stacks)
    return _complete({**environ, "PULUMI_BACKEND_URL": url}, binary)


def backend_url(environ: Mapping[str, str], stacks: Path) -> str:
    """The URL of the state backend: from the environment, the project, or a login to a self-managed backend.

    Raises EngineError instead of falling back to Pulumi Cloud.
    """
    for url in (environ.get("PULUMI_BACKEND_URL"), _project_backend(stacks), _logged_in(environ)):
        if url:
            return _known(url)
    sentence = "no state backend is configured: PULUMI_BACKEND_URL is not set"
    raise EngineError(sentence, NO_BACKEND, WRONG_INPUT)


def require_secrets(environ: Mapping[str, str], stack_file: Path) -> None:
    """Raises EngineError unless a secrets provider is configured for this stack."""
    if "PULUMI_CONFIG_PASSPHRASE" in environ or environ.get("PULUMI_CONFIG_PASSPHRASE_FILE"):
        return
    if not secrets_provider_of(stack_file):
        raise EngineError("no secrets provider is configured", NO_SECRETS, WRONG_INPUT)


def require_same_secrets(state: Mapping[str, Any] | None, stack_file: Path) -> None:
    """Raises EngineError if the secrets of an exported state use another provider than the stack file names.

    This happens after a checkout without the line `secretsprovider`, and after a change of only that line.
    """
    used = ((state or {}).get("deployment") or {}).get("secrets_providers") or {}
    if not used:
        return
    was = str((used.get("state") or {}).get("url") or "") if used.get("type") == "cloud" else ""
    named = secrets_provider_of(stack_file) or ""
    if named in (was, was or "passphrase"):
        return
    if was and not named:
        sentence = f"the secrets of this stack are encrypted with {was}, but {stack_file} does not name it"
        raise EngineError(sentence, (f"add the line  secretsprovider: {was}",), WRONG_INPUT)
    sentence = f"{stack_file} names the secrets provider {named}, but the stack uses {was or 'a passphrase'}"
    change = f"pulumi -C {stack_file.parent} stack change-secrets-provider --stack {stack_of(stack_file)} '{named}'"
    raise EngineError(
        sentence, (f"to change the provider: {change}", "otherwise restore the line in the file"), WRONG_INPUT
    )


def require_credentials(environ: Mapping[str, str]) -> None:
    """Raises EngineError unless AWS credentials are configured, and give access to a state backend in a bucket."""
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
    sentence = f"PULUMI_BACKEND_URL is '{url}', which is not a state backend of Pulumi"
    raise EngineError(sentence, NO_BACKEND, WRONG_INPUT)


def _complete(environ: Mapping[str, str], binary: PulumiBinary) -> dict[str, str]:
    ahead = [*map(str, binary.search), str(Path(sys.executable).parent)]
    path = environ.get("PATH", os.defpath).split(os.pathsep)
    search = dict.fromkeys([*ahead, *path])
    return {**environ, **ALWAYS, "CORRAL_PYTHON": PYTHON, "PATH": os.pathsep.join(search)}


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
