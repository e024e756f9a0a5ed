"""STS: GetCallerIdentity also for an instance's credentials, which STS did not issue."""

# mypy: disallow-subclassing-any=False
from __future__ import annotations

import moto.sts.urls
from moto.sts.models import STSBackend

from corral.box.access.principals import principal_of


class BoxSTS(STSBackend):
    """The STS of one account."""

    _url_module = moto.sts.urls

    def get_caller_identity(self, access_key_id: str, region: str) -> tuple[str, str, str]:
        """The caller's id, ARN and account."""
        if self.get_assumed_role_from_access_key(access_key_id) is None and (who := principal_of(access_key_id)):
            return who.id, who.arn, self.account_id
        found: tuple[str, str, str] = super().get_caller_identity(access_key_id, region)
        return found


def install() -> None:
    """Replace moto's STS with the box's."""
    from moto.sts.models import sts_backends

    sts_backends.backend = BoxSTS
