"""How the box refuses a call as AWS would. What a person is told (`BoxError`) is in `control`."""

from __future__ import annotations

# mypy: disallow-subclassing-any=False
from moto.core.exceptions import ServiceException


class Refused(ServiceException):
    """An AWS error with its code; defined here because moto cannot serialise its own base class."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
