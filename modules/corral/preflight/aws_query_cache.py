"""Cached requests to AWS: each is sent once, however many checks need it; several run in parallel.

After a timeout, an endpoint gets no more requests: each would wait as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

Endpoint = tuple[str, str | None]  # service and region; None is the session's


class AwsQueryCache:
    """`session`: makes clients by service, as `inventory.scan.Session` does."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self._lock = Lock()
        self._locks: dict[str, Lock] = {}
        self._known: dict[str, Any] = {}
        self._silent: dict[Endpoint, Exception] = {}

    def client(self, service: str, region: str | None = None) -> Any:
        """The client of this service. The lock: creating a client is not thread-safe."""
        with self._lock:
            return self.session.client(service, region) if region else self.session.client(service)

    def call(self, service: str, action: str, region: str | None = None, **request: Any) -> Mapping[str, Any]:
        """The response to one request. Raises botocore's errors."""
        result: Mapping[str, Any] = self._once(
            (service, region),
            f"{service} {action} {region} {request}",
            lambda: getattr(self.client(service, region), action)(**request),
        )
        return result

    def list_all(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        """The items under this key on all pages of the response. Raises botocore's errors."""
        question = f"{service} {action} {key} {request}"
        found: Sequence[Mapping[str, Any]] = self._once(
            (service, None), question, lambda: self._pages(service, action, key, request)
        )
        return found

    def list_existing(self, service: str, action: str, key: str, **request: Any) -> Sequence[Mapping[str, Any]]:
        """The items with these ids; empty if AWS reports that they do not exist."""
        try:
            return self.list_all(service, action, key, **request)
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

    def _once(self, endpoint: Endpoint, question: str, fetch: Callable[[], Any]) -> Any:
        with self._lock:
            lock = self._locks.setdefault(question, Lock())
        with lock:  # threads with the same request wait here; errors are not cached
            if question not in self._known:
                self._known[question] = self._unless_silent(endpoint, fetch)
            return self._known[question]

    def _unless_silent(self, endpoint: Endpoint, fetch: Callable[[], Any]) -> Any:
        if endpoint in self._silent:
            raise self._silent[endpoint]
        try:
            return fetch()
        except (ConnectTimeoutError, ReadTimeoutError) as error:
            self._silent[endpoint] = error
            raise
