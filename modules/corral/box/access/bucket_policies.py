"""What the policy of a bucket denies a role. Hold the cloud's lock. Grants do not count: our buckets grant nothing.

Source: IAM User Guide, "Policy evaluation logic": an explicit deny in a resource's policy decides.
"""

from __future__ import annotations

import json
from dataclasses import replace

from moto.s3.models import s3_backends

from corral.box.access.policy_evaluator import Decision, RequiredAction, is_denied_to
from corral.box.account import ACCOUNT

_DENIED = Decision(allowed=False, reason="with an explicit deny in a resource-based policy", explicitly_denied=True)
_TLS = {"aws:securetransport": "true"}  # in the box, loopback counts as TLS


def bucket_denial(role: str, required: RequiredAction) -> Decision | None:
    """The refusal of an action by the policy of its bucket; None if that does not refuse it to the role of this ARN."""
    if not required.action.startswith("s3:"):
        return None
    name = required.resource.rpartition(":::")[2].partition("/")[0]
    bucket = s3_backends[ACCOUNT]["aws"].buckets.get(name)
    if bucket is None or not bucket.policy:
        return None
    seen = replace(required, context={**_TLS, **required.context})
    return _DENIED if is_denied_to(role, ACCOUNT, json.loads(bucket.policy), seen) else None
