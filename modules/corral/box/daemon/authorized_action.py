"""moto does what the box has authorized. A request can name several actions, and the two need not read the same one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from moto.core.responses import BaseResponse

from corral.box.api_calls import Call
from corral.box.api_errors import ApiError

_AUTHORIZED: ContextVar[str] = ContextVar("authorized", default="")


@contextmanager
def authorized(call: Call) -> Iterator[None]:
    """Within it, moto refuses to do another action than the call's with InvalidAction.

    But for S3: moto's has names of its own for actions, and finds them in the path alone, as `api_calls` does.
    """
    token = _AUTHORIZED.set("" if call.service == "s3" else call.action)
    try:
        yield
    finally:
        _AUTHORIZED.reset(token)


def install() -> None:
    """Have each of moto's services compare the action that it finds in a request."""
    find = BaseResponse._get_action

    def compared(self: Any) -> str:
        found: str = find(self)
        wanted = _AUTHORIZED.get()
        if wanted and found != wanted:
            raise ApiError("InvalidAction", f"The call names two actions, {wanted} and {found}.")
        return found

    BaseResponse._get_action = compared
