"""An account's answers: each question is asked once, however many checks want to know, and several at the same time.

A service that does not answer a question is asked nothing more: each one would wait as long for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

Endpoint = tuple[str, str | None]  # service and region; None is the session's


class Answers:
    """`session`: makes clients by service, as `inventory.account.Session` does."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._known: dict[str, Any] = {}
        self._silent: dict[Endpoint, Exception] = {}

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of this service. Making one is not safe in two threads at once."""
        with self._lock:
            return self.session.client(service, region) if region else self.session.client(service)

    def ask(self, service: str, action: str, region: str | None = None, **request: Any) -> Mapping[str, Any]:
        """The answer to one request. Raises botocore's errors."""
        answer: Mapping[str, Any] = self._once(
            (service, region),
            f"{service} {action} {region} {request}",
            lambda: getattr(self.client(service, region), action)(**request),
        )
        return answer

    def every(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        """What all pages of the answer hold under this key. Raises botocore's errors."""
        question = f"{service} {action} {key} {request}"
        found: Sequence[Mapping[str, Any]] = self._once(
            (service, None), question, lambda: self._pages(service, action, key, request)
        )
        return found

    def named(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        """The same for things that are asked for by their ids: nothing where AWS says that there is no such thing."""
        try:
            return self.every(service, action, key, **request)
        except ClientError as error:
            code = str(error.response["Error"]["Code"])
            if "NotFound" in code or "Malformed" in code or "NoSuch" in code:
                return ()
            raise

    def _pages(self, service: str, action: str, key: str, request: Mapping[str, Any]) -> list[Any]:
        client = self.client(service)
        if not client.can_paginate(action):
            return list(getattr(client, action)(**request)[key])
        return [one for page in client.get_paginator(action).paginate(**request) for one in page[key]]

    def _once(self, endpoint: Endpoint, question: str, ask: Callable[[], Any]) -> Any:
        with self._lock:
            lock = self._locks.setdefault(question, Lock())
        with lock:  # who asks the same meanwhile waits for the answer; an error is nobody's answer
            if question not in self._known:
                self._known[question] = self._asked(endpoint, ask)
            return self._known[question]

    def _asked(self, endpoint: Endpoint, ask: Callable[[], Any]) -> Any:
        if endpoint in self._silent:
            raise self._silent[endpoint]
        try:
            return ask()
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            self._silent[endpoint] = error
            raise
