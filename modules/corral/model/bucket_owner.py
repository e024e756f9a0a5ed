"""The account that must own a bucket in S3: names of buckets are global, so another account can create one first."""

from collections.abc import Callable
from typing import Any

ANY_OWNER = ""  # as ExpectedBucketOwner: the user chose this bucket, and it may be another account's

_OWNER = "ExpectedBucketOwner"


def expect_owner(s3: Any, account: Callable[[], str]) -> Any:
    """The same S3 client, whose calls S3 refuses with 403 for a bucket of another account than `account()`.

    A call with ExpectedBucketOwner=ANY_OWNER reaches buckets of all accounts. Source: S3 User Guide, "Verifying bucket
    ownership with bucket owner condition".
    """

    def name_owner(params: dict[str, Any], model: Any, **_: Any) -> None:
        if _OWNER not in model.input_shape.members:  # CreateBucket, ListBuckets
            return
        if _OWNER not in params:
            params[_OWNER] = account()
        elif params[_OWNER] == ANY_OWNER:
            del params[_OWNER]

    s3.meta.events.register("provide-client-params.s3", name_owner)
    return s3
