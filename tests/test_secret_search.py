"""Secrets are found in whatever form they are written, and only where they are."""

from __future__ import annotations

import base64
import gzip
import json
from urllib.parse import quote

import pytest

from secret_search import secrets_in

SECRETS = {"key": bytes(range(128, 256)), "url": b"https://hooks.example.org/services/T0/B0/canary-of-this-test"}
URL = SECRETS["url"].decode()


@pytest.mark.parametrize(
    "content",
    [
        SECRETS["url"],
        f"Post {URL}: no route to host".encode(),
        URL.encode().hex().encode(),
        base64.b64encode(URL.encode()),
        base64.b64encode(f"u:{URL}".encode()),
        base64.b64encode(f"u{URL}\n".encode()),
        gzip.compress(URL.encode()),
        json.dumps({"url": URL}).encode(),
        f"/?to={quote(URL, safe='')}".encode(),
    ],
    ids=["alone", "in a log", "hex", "base64", "base64 after two", "base64 after one", "gzip", "JSON", "in a URL"],
)
def test_a_secret_is_found_in_each_form(content: bytes) -> None:
    assert secrets_in(content, SECRETS) == ["url"]


def test_binary_secrets_are_found_too() -> None:
    found = [secrets_in(form, SECRETS) for form in (SECRETS["key"], base64.b64encode(b"\x01" + SECRETS["key"]))]
    assert found == [["key"], ["key"]]


def test_what_only_resembles_a_secret_is_none() -> None:
    assert secrets_in(URL[:-1].encode(), SECRETS) == []
