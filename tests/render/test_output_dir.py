"""Writing rendered files into a directory that may hold other people's files."""

from pathlib import Path

import pytest

from corral.render.output_dir import MANIFEST, FileStatus, ForeignFiles, compare, write


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
