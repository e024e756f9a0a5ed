"""The box's copy of the projects."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from corral.engine.errors import EngineError
from corral.engine.projects import base_of, environment_file, sync


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
    assert (refused.value.hints, refused.value.code) == (("known are: dev",), 2)
