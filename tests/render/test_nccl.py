"""NCCL's settings: only with EFA, short, and exported without overriding the user's own."""

import subprocess
from pathlib import Path

import pytest

from corral.render.nccl import nccl_files
from render.plans import cpu, dev, train

# What aws-ofi-nccl sets by itself, and what is wrong with today's plugin and libfabric.
LEFT_ALONE = ("NCCL_BUFFSIZE", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_TOPO_FILE", "NCCL_PROTO", "NCCL_ALGO", "FI_PROVIDER")


def test_a_queue_without_efa_has_no_file() -> None:
    assert sorted(nccl_files(dev(train(), cpu()))) == ["nccl/profile.sh", "nccl/train.conf"]


def test_a_cluster_without_efa_has_no_file() -> None:
    assert nccl_files(dev(cpu())) == {}


def test_two_settings_are_enough() -> None:
    lines = nccl_files(dev())["nccl/train.conf"].splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["NCCL_SOCKET_IFNAME=en,eth", "NCCL_DEBUG=WARN"]


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_the_plugin_sets_is_left_to_it(name: str) -> None:
    assert [text for text in nccl_files(dev()).values() if f"{name}=" in text] == []


def test_the_profile_exports_the_file_but_keeps_what_the_user_set(tmp_path: Path) -> None:
    files = nccl_files(dev())
    (tmp_path / "nccl.conf").write_text(files["nccl/train.conf"])
    profile = files["nccl/profile.sh"].replace("/etc/nccl.conf", str(tmp_path / "nccl.conf"))
    environment = {"PATH": "/usr/bin:/bin", "NCCL_DEBUG": "INFO"}
    command = ["sh", "-eu", "-c", f"{profile}\nenv | grep ^NCCL_ | sort"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["NCCL_DEBUG=INFO", "NCCL_SOCKET_IFNAME=en,eth"]
