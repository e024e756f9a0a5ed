"""Files that a killed Pulumi leaves incomplete."""

from __future__ import annotations

from pathlib import Path

from corral.engine.backend.file_backend import is_torn_file_error, remove_torn_files


def test_partial_attribute_files_are_deleted_and_complete_ones_kept(tmp_path: Path) -> None:
    stacks = tmp_path / ".pulumi/stacks/corral-base"
    stacks.mkdir(parents=True)
    for name, text in (("dev.json.attrs", ""), ("old.json.attrs", '{"user.a": 1}'), ("dev.json", "{}")):
        (stacks / name).write_text(text)
    assert remove_torn_files(f"file://{tmp_path}") == [stacks / "dev.json.attrs"]
    assert sorted(file.name for file in stacks.iterdir()) == ["dev.json", "old.json.attrs"]


def test_other_backends_are_left_alone() -> None:
    assert remove_torn_files("s3://states") == []


def test_truncated_file_is_detected() -> None:
    assert is_torn_file_error("error: failed to load checkpoint: EOF")
