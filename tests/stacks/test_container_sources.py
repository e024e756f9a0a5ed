"""Archives of what runs containers: fetched once, and nothing else than what the catalogue names."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from container_archives import ARCHIVES, CONTAINERS, CONTENTS, SOURCES
from corral.catalog.container_sources import container_sources
from corral.model.containers import ContainerRuntime, ContainersPlan
from corral.stacks.container_sources import SourceError, source_archives

BY_URL = {one.url: CONTENTS[one.name] for one in SOURCES}


def refuses(url: str) -> bytes:
    raise SourceError(f"cannot fetch {url.rpartition('/')[2]}")


def test_a_cluster_without_containers_needs_no_archive(tmp_path: Path) -> None:
    assert source_archives(ContainersPlan(), tmp_path, refuses) == {}


def test_archives_are_fetched(tmp_path: Path) -> None:
    assert source_archives(CONTAINERS, tmp_path, BY_URL.__getitem__) == ARCHIVES


def test_what_was_fetched_is_not_fetched_again(tmp_path: Path) -> None:
    source_archives(CONTAINERS, tmp_path, BY_URL.__getitem__)
    assert source_archives(CONTAINERS, tmp_path, refuses) == ARCHIVES


def test_without_the_network_the_message_names_address_and_path(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        source_archives(CONTAINERS, tmp_path, refuses)
    assert str(caught.value) == (
        "cannot fetch enroot.tar.gz - fetch https://example.com/enroot.tar.gz elsewhere, and put it at"
        f" {tmp_path}/enroot-1.0.tar.gz"
    )


def test_another_archive_is_refused_and_not_kept(tmp_path: Path) -> None:
    other = gzip.compress(b"other")
    with pytest.raises(SourceError) as caught:
        source_archives(CONTAINERS, tmp_path, lambda _: other)
    assert str(caught.value) == (
        f"https://example.com/enroot.tar.gz unpacks to SHA-256 {hashlib.sha256(b'other').hexdigest()},"
        f" expected {SOURCES[0].sha256} - do not use it, and report it to corral's developers"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_changed_file_in_the_cache_is_refused(tmp_path: Path) -> None:
    (tmp_path / "enroot-1.0.tar.gz").write_bytes(gzip.compress(b"other"))
    with pytest.raises(SourceError, match=r"unpacks to SHA-256 .* - delete it, and corral fetches"):
        source_archives(CONTAINERS, tmp_path, BY_URL.__getitem__)


@pytest.mark.parametrize("content", [b"", b"<html>", CONTENTS["enroot"][:-9]], ids=["empty", "a page", "cut off"])
def test_what_is_no_complete_archive_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is not a complete tar\.gz|unpacks to SHA-256"):
        source_archives(CONTAINERS, tmp_path, lambda _: content)


def test_an_archive_that_is_compressed_anew_is_the_same(tmp_path: Path) -> None:
    again = gzip.compress(gzip.decompress(CONTENTS["enroot"]), 1)
    plan = replace(CONTAINERS, sources=SOURCES[:1])
    assert source_archives(plan, tmp_path, lambda _: again) == {SOURCES[0].path: again}


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path: Path) -> None:
    bomb = gzip.compress(bytes(17 << 20), 1)
    with pytest.raises(SourceError, match="more than 16,777,216 bytes"):
        source_archives(CONTAINERS, tmp_path, lambda _: bomb)


def test_pyxis_is_compiled_with_enroot_and_both_are_pinned() -> None:
    found = [one.plan for one in container_sources()[ContainerRuntime.PYXIS]]
    assert [(one.name, one.version, len(one.sha256)) for one in found] == [
        ("enroot", "4.1.2", 64),
        ("pyxis", "0.24.0", 64),
    ]
