"""Fetching: the files that a head and a compute machine install, and errors."""

import logging
from pathlib import Path

import pytest

from agent.stores import Uploaded, manifest_of, uploaded
from corral.agent.boot.sequence import BootError, fetch
from corral.agent.config.file_placements import is_needed
from corral.agent.config_store import IncompleteUpload, ManifestStore
from corral.model.enums import Role
from corral.render import cluster_files, deployed_json
from render.plans import cpu, deployed, dev, train

PROGRAMS = {
    *(f"opt/corral/bin/{name}" for name in ("corral-agent", "resume", "resume-failed", "suspend", "task-prolog")),
    *(
        f"opt/corral/bin/{name}"
        for name in (
            "health-check",
            "prolog",
            "epilog",
            "rank-order",
            "ecr-password",
            "restore-scripts",
            "prolog-slurmctld",
            "epilog-slurmctld",
        )
    ),
    "etc/enroot/mounts.d/50-corral.fstab",
    "etc/profile.d/corral-credentials.sh",
    "etc/profile.d/corral-ssh.sh",
    "etc/ssh/ssh_config.d/60-corral.conf",
    "etc/ssh/sshd_config.d/50-corral-credentials.conf",
    "etc/sudoers.d/zzzz-corral",
}
RECORDS = {"etc/corral/cluster.json", "etc/corral/deployed.json"}


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """A directory that holds what the cluster's prefix in the bucket holds."""
    files = {**cluster_files(dev(train(), cpu())), "deployed.json": deployed_json(deployed())}
    for name, text in files.items():
        file = tmp_path / "bucket" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "bucket"


def installed(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_a_head_has_slurms_files_the_users_own_and_the_job_scripts(bucket: Path, tmp_path: Path) -> None:
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path / "root")
    slurm = {f"etc/slurm/{name}.conf" for name in ("slurm", "host", "gres", "cgroup", "own", "slurmdbd", "users")}
    slurm |= {"etc/slurm/first-job.conf", "etc/slurm/topology-plugin.conf", "etc/mysql/mariadb.conf.d/60-corral.cnf"}
    slurm |= {"etc/corral/accounts", "etc/slurm/plugstack.conf"}
    access = {f"etc/ssh/sshd_config.d/{name}.conf" for name in ("60-corral", "70-corral-homes")}
    access |= {"etc/ssh/corral_authorized_keys", "etc/sudoers.d/zzzz-corral-admins"}
    scripts = {
        "train": "accelerate deepspeed jax jupyter lightning megatron nccl-tests sweep torchrun",
        "cpu": "accelerate jax jupyter lightning sweep torchrun",
    }
    jobs = {f"opt/corral/jobs/{queue}/{name}.sbatch" for queue, names in scripts.items() for name in names.split()}
    assert installed(tmp_path / "root") == RECORDS | PROGRAMS | slurm | access | jobs


def test_a_compute_machine_with_efa_has_the_settings_of_nccl(bucket: Path, tmp_path: Path) -> None:
    fetch(uploaded(bucket), Role.COMPUTE, "train", root=tmp_path / "root")
    assert installed(tmp_path / "root") == RECORDS | PROGRAMS | {"etc/nccl.conf", "etc/profile.d/corral-nccl.sh"}


def test_a_compute_machine_without_efa_has_none(bucket: Path, tmp_path: Path) -> None:
    fetch(uploaded(bucket), Role.COMPUTE, "cpu", root=tmp_path / "root")
    assert installed(tmp_path / "root") == RECORDS | PROGRAMS


def test_a_compute_machine_fetches_only_what_it_installs(bucket: Path, tmp_path: Path) -> None:
    source = Uploaded(bucket)
    fetch(ManifestStore(source, lambda _: manifest_of(bucket)), Role.COMPUTE, "train", root=tmp_path / "root")
    assert source.reads == ["manifest.json", "cluster.json", "deployed.json", "nccl/profile.sh", "nccl/train.conf"]


def test_a_file_that_the_manifest_does_not_name_is_not_installed(bucket: Path, tmp_path: Path) -> None:
    manifest = manifest_of(bucket)
    (bucket / "slurm/prolog.conf").write_text("Prolog=/scratch/run\n")
    fetch(ManifestStore(Uploaded(bucket), lambda _: manifest), Role.HEAD, None, root=tmp_path / "root")
    assert not (tmp_path / "root/etc/slurm/prolog.conf").exists()


def test_a_file_that_differs_from_the_manifest_is_not_installed(bucket: Path, tmp_path: Path) -> None:
    manifest, waits = manifest_of(bucket), list[float]()
    (bucket / "slurm/slurm.conf").write_text("Prolog=/scratch/run\n")
    with pytest.raises(IncompleteUpload, match=r"slurm/slurm\.conf has hash"):
        fetch(
            ManifestStore(Uploaded(bucket), lambda _: manifest),
            Role.HEAD,
            None,
            root=tmp_path / "root",
            wait=waits.append,
        )
    assert ((tmp_path / "root").exists(), waits) == (False, [3.0] * 19)


def test_an_upload_in_progress_is_awaited(bucket: Path, tmp_path: Path) -> None:
    manifests = [manifest_of(bucket)]
    (bucket / "slurm/host.conf").write_text("SlurmUser=slurm\n")

    def upload(_: float) -> None:
        manifests.append(manifest_of(bucket))

    store = ManifestStore(Uploaded(bucket), lambda _: manifests[-1])
    fetch(store, Role.HEAD, None, root=tmp_path / "root", wait=upload)
    assert (tmp_path / "root/etc/slurm/host.conf").read_text() == "SlurmUser=slurm\n"


def test_files_are_installed_as_they_are_in_the_bucket(bucket: Path, tmp_path: Path) -> None:
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path / "root")
    assert (tmp_path / "root/etc/slurm/slurm.conf").read_bytes() == (bucket / "slurm/slurm.conf").read_bytes()


def test_fetching_gives_the_clusters_records(bucket: Path, tmp_path: Path) -> None:
    assert fetch(uploaded(bucket), Role.COMPUTE, "cpu", root=tmp_path) == (dev(train(), cpu()), deployed())


def test_fetching_again_changes_nothing(bucket: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    with caplog.at_level(logging.INFO):
        fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    assert caplog.messages == ["install head: nothing has changed"]


def test_only_what_differs_is_reported_as_changed(
    bucket: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    (bucket / "slurm/host.conf").write_text("SlurmUser=slurm\n")
    with caplog.at_level(logging.INFO):
        fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    assert caplog.messages == ["install head: /etc/slurm/host.conf"]


def test_the_users_lines_on_the_head_stay(bucket: Path, tmp_path: Path) -> None:
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    (tmp_path / "etc/slurm/own.conf").write_text("KillWait=60\n")
    fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)
    assert (tmp_path / "etc/slurm/own.conf").read_text() == "KillWait=60\n"


def test_an_unknown_queue_is_refused_with_the_known_ones(bucket: Path, tmp_path: Path) -> None:
    with pytest.raises(BootError, match="cluster dev has no queue 'h100'; expected one of train, cpu"):
        fetch(uploaded(bucket), Role.COMPUTE, "h100", root=tmp_path)


def test_a_prefix_without_deployed_json_is_refused(bucket: Path, tmp_path: Path) -> None:
    (bucket / "deployed.json").unlink()
    with pytest.raises(BootError, match=r"deployed\.json is missing"):
        fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)


def test_a_plan_of_another_agent_is_refused_by_its_field(bucket: Path, tmp_path: Path) -> None:
    (bucket / "cluster.json").write_text('{"name": "dev"}')
    with pytest.raises(BootError, match="cannot read the cluster's records: ClusterPlan: missing fields"):
        fetch(uploaded(bucket), Role.HEAD, None, root=tmp_path)


@pytest.mark.parametrize(
    ("name", "role", "needed"),
    [
        ("cluster.json", Role.HEAD, True),
        ("cluster.json", Role.COMPUTE, True),
        ("slurm/slurm.conf", Role.HEAD, True),
        ("slurm/slurm.conf", Role.COMPUTE, False),
        ("jobs/train/torchrun.sbatch", Role.COMPUTE, False),
        ("nccl/train.conf", Role.COMPUTE, True),
        ("neuron/trn.sh", Role.COMPUTE, True),
    ],
)
def test_a_machine_needs_the_files_that_it_installs(name: str, role: Role, needed: bool) -> None:
    assert is_needed(name, role) is needed
