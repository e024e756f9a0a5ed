"""STS: keys that nobody can guess, GetCallerIdentity also for an instance's credentials, sessions, encoded messages."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import moto.sts.urls
from moto.core.responses import ActionResult
from moto.sts.models import AssumedRole, STSBackend, sts_backends
from moto.sts.responses import TokenResponse

from corral.box.access import decoded, principals
from corral.box.access.principals import principal_of
from corral.box.account import ACCOUNT, OWNER_ARN, REGION
from corral.box.machines.imds_data import TEMPORARY

SESSION_S = 12 * 3600  # the longest that a role can be set to. Source: STS API reference, AssumeRole


class UnknownRole(Exception):
    """The account has no role of this name; the text is a sentence for the user."""


class BoxSTS(STSBackend):
    """The STS of one account."""

    _url_module = moto.sts.urls

    def assume_role(self, *args: Any, **kwargs: Any) -> AssumedRole:
        """A session with keys that derive from the box's secret."""
        role = super().assume_role(*args, **kwargs)
        key = role.access_key
        key.access_key_id = principals.secret.access_key(TEMPORARY, "session", role.session_token)
        key.secret_access_key = principals.secret.secret_key("session", role.session_token)
        role.access_key_id, role.secret_access_key = key.access_key_id, key.secret_access_key
        return role

    def get_caller_identity(self, access_key_id: str, region: str) -> tuple[str, str, str]:
        """The caller's id, ARN and account."""
        if self.get_assumed_role_from_access_key(access_key_id) is None and (who := principal_of(access_key_id)):
            return who.id, who.arn, self.account_id
        if access_key_id == principals.secret.owner_key:
            return principals.OWNER_ID, OWNER_ARN, self.account_id
        found: tuple[str, str, str] = super().get_caller_identity(access_key_id, region)
        return found


class BoxTokenResponse(TokenResponse):
    """The actions of STS, with one that moto lacks."""

    def decode_authorization_message(self) -> ActionResult:
        """DecodeAuthorizationMessage: the details of a refusal of EC2."""
        return ActionResult({"DecodedMessage": decoded(str(self._get_param("EncodedMessage")))})


def role_session(name: str) -> Mapping[str, str]:
    """The credentials of a new session of this role: `access_key`, `secret_key`, `token`. Raises UnknownRole."""
    from moto.iam.models import iam_backends

    roles = iam_backends[ACCOUNT]["aws"].roles.values()
    arn = next((role.arn for role in roles if role.name == name), None)
    if arn is None:
        raise UnknownRole(f"the box has no role {name!r} - create it with `aws iam create-role`, see docs/bootstrap.md")
    session = sts_backends[ACCOUNT]["aws"].assume_role(REGION, "corral", arn, None, SESSION_S, None)
    return {
        "access_key": session.access_key_id,
        "secret_key": session.secret_access_key,
        "token": session.session_token,
    }


def install() -> None:
    """Replace moto's STS with the box's."""
    moto.sts.urls.url_paths["{0}/$"] = BoxTokenResponse.dispatch
    sts_backends.backend = BoxSTS
