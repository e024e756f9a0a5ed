"""What a killed Pulumi leaves half written."""

from __future__ import annotations

from pathlib import Path

from corral.engine.file_backend import looks_torn, mend


def test_half_written_attributes_go_and_whole_ones_stay(tmp_path: Path) -> None:
    stacks = tmp_path / ".pulumi/stacks/corral-base"
    stacks.mkdir(parents=True)
    for name, text in (("dev.json.attrs", ""), ("old.json.attrs", '{"user.a": 1}'), ("dev.json", "{}")):
        (stacks / name).write_text(text)
    assert mend(f"file://{tmp_path}") == [stacks / "dev.json.attrs"]
    assert sorted(file.name for file in stacks.iterdir()) == ["dev.json", "old.json.attrs"]


def test_other_backends_are_left_alone() -> None:
    assert mend("s3://states") == []


def test_a_file_that_ends_too_early_is_recognised() -> None:
    assert looks_torn("error: failed to load checkpoint: EOF")
