"""The box's copy of the projects."""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
import yaml

from corral.engine.engine_errors import EngineError
from corral.engine.pulumi.projects import base_of, box_image, environment_file, sync_box_copy


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for project in ("base", "cluster"):
        folder = tmp_path / "stacks" / project
        folder.mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text(f"name: corral-{project}\n")
        (folder / "__main__.py").write_text("program()\n")
        (folder / "Pulumi.dev.yaml").write_text(
            "# mine\nsecretsprovider: awskms://alias/real\nconfig:\n  corral-cluster:spec: {base: shared}\n"
        )
    return tmp_path / "stacks"


def stack_file(copy: Path, project: str) -> dict[str, object]:
    return dict(yaml.safe_load((copy / project / "Pulumi.dev.yaml").read_text()))


def test_a_cluster_boots_the_boxs_image_and_a_real_accounts_key_stays_behind(source: Path, tmp_path: Path) -> None:
    copy = sync_box_copy(source, tmp_path / "copy")
    assert stack_file(copy, "cluster") == {
        "config": {"corral-cluster:spec": {"base": "shared"}, "corral-cluster:imageProfile": "box-debian-12"}
    }
    assert stack_file(copy, "base") == {"config": {"corral-cluster:spec": {"base": "shared"}}}


def test_the_copys_own_salt_survives_a_change_of_the_source(source: Path, tmp_path: Path) -> None:
    copy = sync_box_copy(source, tmp_path / "copy")
    with (copy / "base/Pulumi.dev.yaml").open("a") as file:
        file.write("encryptionsalt: v1:abc\n")
    (source / "base/Pulumi.dev.yaml").write_text("config: {'corral-base:spec': {}}\n")
    assert stack_file(sync_box_copy(source, copy), "base") == {
        "config": {"corral-base:spec": {}},
        "encryptionsalt": "v1:abc",
    }


def test_source_is_not_changed(source: Path, tmp_path: Path) -> None:
    before = {file: file.read_bytes() for file in source.rglob("*") if file.is_file()}
    sync_box_copy(source, tmp_path / "copy")
    assert {file: file.read_bytes() for file in source.rglob("*") if file.is_file()} == before


def test_a_projects_own_catalog_is_copied_and_stays(source: Path, tmp_path: Path) -> None:
    (source.parent / "catalog.toml").write_text("# mine\n")
    (tmp_path / "box").mkdir()
    copy = sync_box_copy(source, tmp_path / "box/stacks")
    texts = [(stacks.parent / "catalog.toml").read_text() for stacks in (source, copy)]
    assert texts == ["# mine\n", "# mine\n"]


def test_run_files_that_a_cluster_declares_are_copied_and_no_others(source: Path, tmp_path: Path) -> None:
    for path in ("runs/llama.yaml", "runs/other.yaml", "secret.yaml"):
        (source.parent / path).parent.mkdir(exist_ok=True)
        (source.parent / path).write_text("# mine\n")
    runs = "{llama: runs/llama.yaml, outside: runs/../secret.yaml, missing: runs/missing.yaml}"
    spec = f"config:\n  corral-cluster:spec: {{base: shared, jobs: {{runs: {runs}}}}}\n"
    (source / "cluster/Pulumi.dev.yaml").write_text(spec)
    sync_box_copy(source, tmp_path / "box/stacks")
    copied = {path.relative_to(tmp_path / "box") for path in (tmp_path / "box").rglob("*.yaml")}
    assert {str(path) for path in copied if path.parts[0] != "stacks"} == {"runs/llama.yaml"}


def test_files_deleted_from_the_source_are_deleted_from_the_copy(source: Path, tmp_path: Path) -> None:
    copy = sync_box_copy(source, tmp_path / "copy")
    (source / "cluster/Pulumi.dev.yaml").unlink()
    sync_box_copy(source, copy)
    assert not (copy / "cluster/Pulumi.dev.yaml").exists()


def test_copy_of_itself_is_not_changed(source: Path) -> None:
    before = (source / "cluster/Pulumi.dev.yaml").read_text()
    sync_box_copy(source, source)
    assert (source / "cluster/Pulumi.dev.yaml").read_text() == before


def test_the_clusters_file_names_its_base(source: Path) -> None:
    assert base_of(source, "dev") == "shared"


def test_an_unknown_environment_is_reported_with_the_known_ones(source: Path) -> None:
    with pytest.raises(EngineError) as refused:
        environment_file(source, "prod")
    message = f"unknown environment 'prod': {source}/cluster declares dev - choose one of them"
    assert (str(refused.value), refused.value.code) == (message, 2)


def test_mistyped_environment_is_reported_with_a_suggestion_and_all_names(source: Path) -> None:
    (source / "cluster/Pulumi.prod.yaml").touch()
    with pytest.raises(EngineError) as refused:
        environment_file(source, "deb")
    assert str(refused.value) == (
        f"unknown environment 'deb': {source}/cluster declares dev, prod - did you mean 'dev'?"
    )


def test_project_without_an_environment_is_reported_with_the_fix(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").unlink()
    with pytest.raises(EngineError, match="cluster declares none - `corral new DIR` creates one"):
        environment_file(source, "dev")


def test_path_is_no_environment_name(source: Path) -> None:
    with pytest.raises(EngineError, match=re.escape("unknown environment '../base/Pulumi.dev'")):
        environment_file(source, "../base/Pulumi.dev")


def test_a_copy_that_cannot_be_written_names_the_file_and_leaves_no_draft(source: Path, tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (4, limits[1])
    )  # bytes: as on a full disk, a file can be opened but not written
    try:
        with pytest.raises(OSError, match=f"{tmp_path}/copy/base/Pulumi.dev.yaml"):
            sync_box_copy(source, tmp_path / "copy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list((tmp_path / "copy/base").iterdir()) == []


def test_invalid_file_keeps_its_previous_copy(source: Path, tmp_path: Path) -> None:
    copy = sync_box_copy(source, tmp_path / "copy")
    (source / "base/Pulumi.dev.yaml").write_text("config: {'corral-base:spec': {a: 1, a: 2}}\n")
    assert stack_file(sync_box_copy(source, copy), "base") == {"config": {"corral-cluster:spec": {"base": "shared"}}}


def test_base_is_read_from_a_file_with_errors(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").write_text("config:\n  corral-cluster:spec: {base: shared, a: 1, a: 2}\n")
    assert base_of(source, "dev") == "shared"


def test_duplicate_base_is_an_error(source: Path) -> None:
    (source / "cluster/Pulumi.dev.yaml").write_text("config:\n  corral-cluster:spec: {base: shared, base: other}\n")
    with pytest.raises(EngineError, match=r"Pulumi\.dev\.yaml: line 2, column 39: 'base' is given twice - keep one"):
        base_of(source, "dev")


def test_a_cluster_boots_the_image_that_the_box_names(source: Path, tmp_path: Path) -> None:
    copy = sync_box_copy(source, tmp_path / "copy", box_image({"CORRAL_BOX_IMAGE": "box-debian-13"}))
    assert yaml.safe_load((copy / "cluster/Pulumi.dev.yaml").read_text())["config"]["corral-cluster:imageProfile"] == (
        "box-debian-13"
    )
