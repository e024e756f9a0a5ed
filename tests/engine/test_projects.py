"""The box's copy of the projects."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
import yaml

from corral.engine.errors import EngineError
from corral.engine.projects import base_of, box_image, environment_file, sync


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for project in ("base", "cluster"):
        folder = tmp_path / "stacks" / project
        folder.mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text(f"name: corral-{project}\n")
        (folder / "__main__.py").write_text("program()\n")
        (folder / "Pulumi.dev.yaml").write_text(
            "# mine\nsecretsprovider: awskms://alias/real\nconfig:\n  corral-cluster:spec: {base: ground}\n"
        )
    return tmp_path / "stacks"


def stack_file(copy: Path, project: str) -> dict[str, object]:
    return dict(yaml.safe_load((copy / project / "Pulumi.dev.yaml").read_text()))


def test_a_cluster_boots_the_boxs_image_and_a_real_accounts_key_stays_behind(source: Path, tmp_path: Path) -> None:
    copy = sync(source, tmp_path / "copy")
    assert stack_file(copy, "cluster") == {
        "config": {"corral-cluster:spec": {"base": "ground"}, "corral-cluster:imageProfile": "box-debian-12"}
    }
    assert stack_file(copy, "base") == {"config": {"corral-cluster:spec": {"base": "ground"}}}


def test_the_copys_own_salt_survives_a_change_of_the_source(source: Path, tmp_path: Path) -> None:
    copy = sync(source, tmp_path / "copy")
    with (copy / "base/Pulumi.dev.yaml").open("a") as file:
        file.write("encryptionsalt: v1:abc\n")
    (source / "base/Pulumi.dev.yaml").write_text("config: {'corral-base:spec': {}}\n")
    assert stack_file(sync(source, copy), "base") == {
        "config": {"corral-base:spec": {}},
        "encryptionsalt": "v1:abc",
    }


def test_the_source_stays_as_it_is(source: Path, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in source.rglob("*") if file.is_file()}
    sync(source, tmp_path / "copy")
    assert {file: file.read_bytes() for file in source.rglob("*") if file.is_file()} == before


def test_what_is_gone_from_the_source_goes_from_the_copy(source: Path, tmp_path: Path) -> None:
    copy = sync(source, tmp_path / "copy")
    (source / "cluster/Pulumi.dev.yaml").unlink()
    sync(source, copy)
    assert not (copy / "cluster/Pulumi.dev.yaml").exists()


def test_a_copy_of_itself_stays_as_it_is(source: Path) -> None:
    before = (source / "cluster/Pulumi.dev.yaml").read_text()
    sync(source, source)
    assert (source / "cluster/Pulumi.dev.yaml").read_text() == before


def test_the_clusters_file_names_its_base(source: Path) -> None:
    assert base_of(source, "dev") == "ground"


def test_an_unknown_environment_is_told_with_the_known_ones(source: Path) -> None:
    with pytest.raises(EngineError) as refused:
        environment_file(source, "prod")
    told = f"there is no environment 'prod': {source}/cluster declares dev - name one of them"
    assert (str(refused.value), refused.value.code) == (told, 2)


def test_an_environment_that_is_mistyped_is_told_with_the_nearest_and_all(source: Path) -> None:
    (source / "cluster/Pulumi.prod.yaml").touch()
    with pytest.raises(EngineError) as refused:
        environment_file(source, "deb")
    assert str(refused.value) == (
        f"there is no environment 'deb': {source}/cluster declares dev, prod - did you mean 'dev'?"
    )


def test_a_project_without_an_environment_is_told_how_to_get_one(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").unlink()
    with pytest.raises(EngineError, match="cluster declares none - `corral new DIR` writes one"):
        environment_file(source, "dev")


def test_a_path_is_no_environment(source: Path) -> None:
    with pytest.raises(EngineError, match=re.escape("there is no environment '../base/Pulumi.dev'")):
        environment_file(source, "../base/Pulumi.dev")


def test_a_copy_that_cannot_be_written_names_the_file_and_leaves_no_draft(source: Path, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (4, limits[1])
    )  # bytes: as on a full disk, a file opens but does not grow
    try:
        with pytest.raises(OSError, match=f"{tmp_path}/copy/base/Pulumi.dev.yaml"):
            sync(source, tmp_path / "copy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "copy/base").iterdir()) == []


def test_a_file_with_mistakes_has_the_copy_that_it_had_before_them(source: Path, tmp_path: Path) -> None:
    copy = sync(source, tmp_path / "copy")
    (source / "base/Pulumi.dev.yaml").write_text("config: {'corral-base:spec': {a: 1, a: 2}}\n")
    assert stack_file(sync(source, copy), "base") == {"config": {"corral-cluster:spec": {"base": "ground"}}}


def test_a_base_beside_a_mistake_is_still_known(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").write_text("config:\n  corral-cluster:spec: {base: ground, a: 1, a: 2}\n")
    assert base_of(source, "dev") == "ground"


def test_a_base_that_may_stand_in_what_cannot_be_read_is_not_guessed(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").write_text("config:\n  corral-cluster:spec: {base: ground, base: other}\n")
    with pytest.raises(EngineError, match=r"Pulumi\.dev\.yaml: line 2, column 39: 'base' is given twice - keep one"):
        base_of(source, "dev")


def test_a_cluster_boots_the_image_that_the_box_names(source: Path, tmp_path: Path) -> None:
    copy = sync(source, tmp_path / "copy", box_image({"CORRAL_BOX_IMAGE": "box-debian-13"}))
    assert yaml.safe_load((copy / "cluster/Pulumi.dev.yaml").read_text())["config"]["corral-cluster:imageProfile"] == (
        "box-debian-13"
    )
