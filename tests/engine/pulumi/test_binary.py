"""The choice of the Pulumi CLI, and the errors if none is usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.binary import find_pulumi


def fake(path: Path, answer: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {answer}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "PATH": str(tmp_path / "path")}


def test_configured_cli_precedes_the_one_on_path(tmp_path: Path, environ: dict[str, str]) -> None:
    fake(tmp_path / "path/pulumi", "v3.250.0")
    named = fake(tmp_path / "named/pulumi", "v3.240.1")
    found = find_pulumi({**environ, "CORRAL_PULUMI": str(named)})
    assert (found.path, found.version) == (named, (3, 240, 1))


def test_cli_on_path_precedes_a_cached_one(tmp_path: Path, environ: dict[str, str]) -> None:
    on_path = fake(tmp_path / "path/pulumi", "v3.250.0")
    fake(tmp_path / ".cache/corral/pulumi-3.259.0/pulumi", "not run")
    assert find_pulumi(environ).path == on_path


def test_newest_cached_cli_is_used_without_running_it(tmp_path: Path, environ: dict[str, str]) -> None:
    for version in ("3.210.0", "3.99.0", "3.259.0"):
        fake(tmp_path / f".cache/corral/pulumi-{version}/pulumi", "not run")
    assert find_pulumi(environ).version == (3, 259, 0)


def test_cached_cli_gets_corrals_language_host(tmp_path: Path, environ: dict[str, str]) -> None:
    cached = fake(tmp_path / ".cache/corral/pulumi-3.259.0/pulumi", "not run")
    found = find_pulumi(environ)
    assert (cached.parent / "pulumi-language-python").exists()
    assert found.search == (cached.parent, cached.parent)


def test_official_cli_keeps_its_own_language_host(tmp_path: Path, environ: dict[str, str]) -> None:
    official = fake(tmp_path / "path/pulumi", "v3.250.0")
    fake(tmp_path / "path/pulumi-language-python", "official")
    assert find_pulumi(environ).search == (official.parent,)


def test_old_cli_is_refused_with_both_versions(tmp_path: Path, environ: dict[str, str]) -> None:
    old = fake(tmp_path / "path/pulumi", "v3.199.9")
    with pytest.raises(EngineError) as refused:
        find_pulumi(environ)
    assert refused.value.sentence == f"{old} is Pulumi 3.199.9, corral needs 3.200.0 or newer"


def test_missing_cli_is_one_sentence_with_how_to_install_it(environ: dict[str, str]) -> None:
    with pytest.raises(EngineError) as refused:
        find_pulumi(environ)
    assert str(refused.value).splitlines() == [
        "Pulumi CLI not found in $CORRAL_PULUMI, on PATH or in corral's cache",
        "  install it: curl -fsSL https://get.pulumi.com | sh",
        "  or build it into ~/.cache/corral: `make pulumi` in corral's source directory",
    ]


def test_a_program_that_is_not_pulumi_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    other = fake(tmp_path / "named/pulumi", "hello")
    with pytest.raises(EngineError, match="does not print its version"):
        find_pulumi({**environ, "CORRAL_PULUMI": str(other)})
