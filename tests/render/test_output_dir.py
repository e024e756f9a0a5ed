"""Writing rendered files into a directory that may hold other people's files."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from corral.render.output_dir import MANIFEST, FileStatus, ForeignFiles, UnsafePath, compare, write


def changes(directory: Path, files: dict[str, str]) -> dict[str, FileStatus]:
    return {one.path: one.change for one in write(directory, files)}


def names(directory: Path) -> list[str]:
    found = (str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file())
    return sorted(name for name in found if name != MANIFEST)


def test_new_files_are_written_with_their_directories(tmp_path: Path) -> None:
    assert changes(tmp_path / "out", {"slurm/slurm.conf": "a"}) == {"slurm/slurm.conf": FileStatus.NEW}
    assert (tmp_path / "out/slurm/slurm.conf").read_text() == "a"


def test_a_second_write_returns_the_changes(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "1", "c": "1"})
    assert changes(tmp_path, {"a": "1", "b": "2"}) == {
        "a": FileStatus.SAME,
        "b": FileStatus.CHANGED,
        "c": FileStatus.REMOVED,
    }


def test_file_that_is_no_longer_rendered_goes(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "1"})
    write(tmp_path, {"a": "1"})
    assert names(tmp_path) == ["a"]


def test_other_files_in_the_directory_stay(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    write(tmp_path, {"a": "1"})
    assert names(tmp_path) == ["a", "mine"]


@pytest.mark.parametrize("files", [{"a": "2"}, {}], ids=["overwrite", "remove"])
def test_edited_file_stops_everything(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, {"a": "1"})
    (tmp_path / "a").write_text("edited")
    with pytest.raises(ForeignFiles, match="changed since: a - nothing was written"):
        write(tmp_path, {**files, "new": "1"})
    assert ((tmp_path / "a").read_text(), names(tmp_path)) == ("edited", ["a"])


def test_foreign_file_with_the_very_content_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    write(tmp_path, {"a": "1"})
    assert changes(tmp_path, {"a": "2"}) == {"a": FileStatus.CHANGED}


def test_write_that_broke_off_can_be_repeated(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1", "b": "1"})
    (tmp_path / "b").unlink()
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        write(tmp_path, {"a": "2", "b": "2"})
    (tmp_path / "b").rmdir()
    assert changes(tmp_path, {"a": "2", "b": "2"})["b"] is FileStatus.NEW


def test_broken_list_owns_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"a": "1"})
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(ForeignFiles):
        write(tmp_path, {"a": "2"})


def test_comparing_writes_nothing(tmp_path: Path) -> None:
    assert [one.change for one in compare(tmp_path / "out", {"a": "1"})] == [FileStatus.NEW]
    assert not (tmp_path / "out").exists()


def test_file_that_is_not_text_is_compared_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff\xfe")
    assert [one.change for one in compare(tmp_path, {"a": "1"})] == [FileStatus.CHANGED]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file of the user's, next to the directory."""
    (tmp_path / "mine").write_text("mine")
    return tmp_path / "mine"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The directory, as somebody else has prepared it."""
    (tmp_path / "clone").mkdir()
    return tmp_path / "clone"


def list_as_written(directory: Path, path: str) -> None:
    """A manifest by which corral would delete this file, with the hash of what is in it."""
    (directory / MANIFEST).write_text(json.dumps({"files": {path: [hashlib.sha256(b"mine").hexdigest()]}}))


@pytest.mark.parametrize("by", [write, compare])
@pytest.mark.parametrize("path", ["{}", "../mine", "a/../../mine", "./../mine", "..", "", "a\0b"])
def test_a_list_that_leads_out_of_the_directory_is_refused(
    mine: Path, clone: Path, path: str, by: Callable[[Path, dict[str, str]], object]
) -> None:
    list_as_written(clone, path.format(mine))
    with pytest.raises(UnsafePath, match="is not the path of a file below"):
        by(clone, {"a": "1"})
    assert (mine.read_text(), names(clone)) == ("mine", [])


@pytest.mark.parametrize("by", [write, compare])
@pytest.mark.parametrize("link", ["slurm.conf", "slurm", MANIFEST])
@pytest.mark.parametrize("target", ["mine", "new"])
def test_a_link_in_the_directory_is_refused(
    mine: Path, clone: Path, link: str, target: str, by: Callable[[Path, dict[str, str]], object]
) -> None:
    (clone / link).symlink_to(mine.parent / target)
    with pytest.raises(UnsafePath, match=f"clone/{link} is a link, which may lead elsewhere - nothing was written"):
        by(clone, {"a": "1", "slurm.conf": "1", "slurm/gres.conf": "1"})
    assert (mine.read_text(), sorted(one.name for one in mine.parent.iterdir())) == ("mine", ["clone", "mine"])
    assert [one.name for one in clone.iterdir()] == [link]


def test_nothing_is_deleted_through_a_link_to_a_directory(mine: Path, clone: Path) -> None:
    (clone / "up").symlink_to(mine.parent)
    list_as_written(clone, "up/mine")
    with pytest.raises(UnsafePath, match="clone/up is a link"):
        write(clone, {"a": "1"})
    assert (mine.read_text(), names(clone)) == ("mine", [])


def test_a_pipe_in_the_way_is_refused_and_not_waited_for(clone: Path) -> None:
    os.mkfifo(clone / "a")
    with pytest.raises(UnsafePath, match="clone/a is neither a file nor a directory"):
        write(clone, {"a": "1"})


def test_the_directory_itself_may_be_a_link(tmp_path: Path, clone: Path) -> None:
    (tmp_path / "out").symlink_to(clone)
    write(tmp_path / "out", {"a": "1"})
    assert (clone / "a").read_text() == "1"


@pytest.mark.parametrize("text", ['{"files": {"a": 5}}', '{"files": [1]}', "[]", "[" * 100_000])
def test_a_list_of_another_form_owns_nothing(clone: Path, text: str) -> None:
    (clone / "a").write_text("mine")
    (clone / MANIFEST).write_text(text)
    with pytest.raises(ForeignFiles):
        write(clone, {"a": "1"})
