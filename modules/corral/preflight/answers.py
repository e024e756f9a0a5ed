"""An account's answers: each question is asked once, however many checks want to know, and several at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError


class Answers:
    """`session`: makes clients by service, as `inventory.account.Session` does."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._known: dict[str, Any] = {}

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of this service. Making one is not safe in two threads at once."""
        with self._lock:
            return self.session.client(service, region) if region else self.session.client(service)

    def ask(self, service: str, action: str, region: str | None = None, **request: Any) -> Mapping[str, Any]:
        """The answer to one request. Raises botocore's errors."""
        answer: Mapping[str, Any] = self._once(
            f"{service} {action} {region} {request}",
            lambda: getattr(self.client(service, region), action)(**request),
        )
        return answer

    def every(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        """What all pages of the answer hold under this key. Raises botocore's errors."""
        question = f"{service} {action} {key} {request}"
        found: Sequence[Mapping[str, Any]] = self._once(question, lambda: self._pages(service, action, key, request))
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

    def _once(self, question: str, ask: Callable[[], Any]) -> Any:
        with self._lock:
            lock = self._locks.setdefault(question, Lock())
        with lock:  # who asks the same meanwhile waits for the answer; an error is nobody's answer
            if question not in self._known:
                self._known[question] = ask()
            return self._known[question]
