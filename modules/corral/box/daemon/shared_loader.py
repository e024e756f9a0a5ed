"""One loader of botocore's files in a process: moto opens a session per service, and each would read them again."""

from __future__ import annotations

from functools import cache
from typing import Any

import botocore.session


def share_loader() -> None:
    """Give all sessions of botocore in this process the same loader, which keeps what it has read."""
    session: Any = botocore.session
    session.create_loader = cache(session.create_loader)
