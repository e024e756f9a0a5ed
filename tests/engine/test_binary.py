"""Which Pulumi CLI is taken, and what is said where none will do."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.engine.binary import find_pulumi
from corral.engine.errors import EngineError


def fake(path: Path, answer: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {answer}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "path")}


def test_the_named_one_is_taken_before_the_one_on_path(tmp_path: Path, environ: dict[str, str]) -> None:
    fake(tmp_path / "path/pulumi", "v3.250.0")
    named = fake(tmp_path / "named/pulumi", "v3.240.1")
    found = find_pulumi({**environ, "CORRAL_PULUMI": str(named)})
    assert (found.path, found.version) == (named, (3, 240, 1))


def test_the_one_on_path_is_taken_before_a_cached_one(tmp_path: Path, environ: dict[str, str]) -> None:
    on_path = fake(tmp_path / "path/pulumi", "v3.250.0")
    fake(tmp_path / ".cache/corral/pulumi-3.259.0/pulumi", "unasked")
    assert find_pulumi(environ).path == on_path


def test_the_newest_cached_one_is_taken_without_asking_it(tmp_path: Path, environ: dict[str, str]) -> None:
    for version in ("3.210.0", "3.99.0", "3.259.0"):
        fake(tmp_path / f".cache/corral/pulumi-{version}/pulumi", "unasked")
    assert find_pulumi(environ).version == (3, 259, 0)


def test_a_cached_one_gets_our_language_host_beside_it(tmp_path: Path, environ: dict[str, str]) -> None:
    cached = fake(tmp_path / ".cache/corral/pulumi-3.259.0/pulumi", "unasked")
    found = find_pulumi(environ)
    assert (cached.parent / "pulumi-language-python").exists()
    assert found.search == (cached.parent, cached.parent)


def test_an_official_one_keeps_its_own_language_host(tmp_path: Path, environ: dict[str, str]) -> None:
    official = fake(tmp_path / "path/pulumi", "v3.250.0")
    fake(tmp_path / "path/pulumi-language-python", "official")
    assert find_pulumi(environ).search == (official.parent,)


def test_one_that_is_too_old_is_refused_with_both_versions(tmp_path: Path, environ: dict[str, str]) -> None:
    old = fake(tmp_path / "path/pulumi", "v3.199.9")
    with pytest.raises(EngineError) as refused:
        find_pulumi(environ)
    assert refused.value.sentence == f"{old} is Pulumi 3.199.9, corral needs 3.200.0 or newer"


def test_none_at_all_is_one_sentence_with_the_ways_to_get_one(environ: dict[str, str]) -> None:
    with pytest.raises(EngineError) as refused:
        find_pulumi(environ)
    assert str(refused.value).splitlines() == [
        "no Pulumi CLI was found: neither $CORRAL_PULUMI, nor on PATH, nor cached",
        "  `curl -fsSL https://get.pulumi.com | sh` installs the official one",
        "  `make pulumi` in corral's source directory builds one into ~/.cache/corral",
    ]


def test_a_program_that_is_not_pulumi_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    other = fake(tmp_path / "named/pulumi", "hello")
    with pytest.raises(EngineError, match="does not tell its version"):
        find_pulumi({**environ, "CORRAL_PULUMI": str(other)})
