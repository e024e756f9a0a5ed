"""Judging variables: what is found in which kind of text, which rule decides, and that every row has a source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.catalog.aws.instance_types import find_instance_type, instance_types
from corral.catalog.aws.nccl_variables import (
    COMPONENTS,
    VariableRule,
    VariableVerdict,
    format_version,
    parse_version,
    plugin_settings,
    variable_catalog,
)
from corral.plan.nccl_env.env_parser import assignments_in
from corral.plan.nccl_env.lint_env import (
    Assignment,
    Context,
    EnvFinding,
    UnknownInstaller,
    assumed_versions,
    installer_warning,
    lint,
)

PAGE = Path(__file__).parents[2] / "docs" / "lint-env.md"


def finding(text: str, type: str | None = None, **versions: str) -> EnvFinding:
    """The one finding about `NAME=value`."""
    given = {name: parse_version(version) for name, version in versions.items()}
    machine = find_instance_type(type) if type else None
    (found,) = lint(assignments_in(text), Context(instance_type=machine, versions=assumed_versions(given)))
    return found


def verdict(text: str, type: str | None = None, **versions: str) -> str:
    return finding(text, type, **versions).verdict.value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FI_EFA_USE_DEVICE_RDMA=1", "wrong"),
        ("FI_PROVIDER=efa", "wrong"),
        ("FI_PROVIDER=tcp", "harmful"),
        ("FI_EFA_FORK_SAFE=1", "needless"),
        ("FI_EFA_FORK_SAFE=0", "harmful"),
        ("FI_EFA_USE_HUGE_PAGE=0", "fine"),
        ("FI_EFA_USE_HUGE_PAGE=1", "needless"),
        ("FI_EFA_SET_CUDA_SYNC_MEMOPS=0", "wrong"),
        ("FI_EFA_ENABLE_SHM_TRANSFER=1", "needless"),
        ("FI_EFA_TX_SIZE=64", "fine"),
        ("RDMAV_FORK_SAFE=1", "harmful"),
        ("RDMAV_HUGEPAGES_SAFE=1", "harmful"),
        ("IBV_FORK_SAFE=1", "harmful"),
        ("NCCL_ALGO=Ring", "harmful"),
        ("NCCL_PROTO=simple", "wrong"),
        ("NCCL_PROTO=LL128", "harmful"),
        ("NCCL_BUFFSIZE=2097152", "harmful"),
        ("NCCL_MIN_NCHANNELS=8", "harmful"),
        ("NCCL_SOCKET_IFNAME=en,eth", "fine"),
        ("NCCL_SOCKET_IFNAME=^docker,lo", "fine"),
        ("NCCL_SOCKET_IFNAME=ens32", "fine"),
        ("NCCL_SOCKET_IFNAME=ib0", "harmful"),
        ("NCCL_SOCKET_IFNAME=lo", "harmful"),
        ("NCCL_NET=Socket", "harmful"),
        ("NCCL_NET=AWS Libfabric", "fine"),
        ("NCCL_NET_PLUGIN=none", "harmful"),
        ("NCCL_IB_DISABLE=1", "needless"),
        ("NCCL_IB_TIMEOUT=22", "needless"),
        ("NCCL_P2P_DISABLE=1", "harmful"),
        ("NCCL_P2P_DISABLE=0", "needless"),
        ("NCCL_TREE_THRESHOLD=0", "wrong"),
        ("NCCL_ASYNC_ERROR_HANDLING=1", "wrong"),
        ("NCCL_DEBUG=WARN", "fine"),
        ("NCCL_DEBUG=WARNING", "wrong"),
        ("NCCL_DEBUG=ATTN", "wrong"),
        ("NCCL_CROSS_NIC=1", "fine"),
        ("OFI_NCCL_FORCE_NUM_RAILS=4", "harmful"),
        ("OFI_NCCL_ENDPOINT_PER_COMM=1", "wrong"),
        ("NCCL_MIN_CHANNELS=8", "unknown"),
        ("FI_NOTHING=1", "unknown"),
    ],
)
def test_variable_on_any_type_with_the_newest_versions(text: str, expected: str) -> None:
    assert verdict(text) == expected


@pytest.mark.parametrize(
    ("text", "versions", "expected"),
    [
        ("FI_PROVIDER=efa", {"plugin": "1.5.0"}, "fine"),
        ("FI_PROVIDER=efa", {"plugin": "1.6.0"}, "wrong"),
        ("NCCL_PROTO=simple", {"plugin": "1.5.0"}, "fine"),
        ("NCCL_PROTO=simple", {"plugin": "1.6.0"}, "wrong"),
        ("FI_EFA_USE_DEVICE_RDMA=1", {"plugin": "1.6.0"}, "fine"),
        ("FI_EFA_USE_DEVICE_RDMA=1", {"libfabric": "1.17.3"}, "fine"),
        ("FI_EFA_USE_DEVICE_RDMA=1", {"plugin": "1.7.0", "libfabric": "1.18.0"}, "wrong"),
        ("FI_EFA_SET_CUDA_SYNC_MEMOPS=0", {"installer": "1.29.1", "plugin": "1.7.4", "libfabric": "1.19.0"}, "wrong"),
        ("FI_EFA_SET_CUDA_SYNC_MEMOPS=0", {"installer": "1.29.0", "plugin": "1.7.4", "libfabric": "1.19.0"}, "fine"),
        (
            "FI_EFA_SET_CUDA_SYNC_MEMOPS=0",
            {"installer": "1.29.0", "plugin": "1.7.4", "libfabric": "1.19.0", "nccl": "2.18.5"},
            "needless",
        ),
        ("NCCL_NETDEVS_POLICY=MAX:1", {"nccl": "2.27.7"}, "wrong"),
        ("NCCL_NETDEVS_POLICY=MAX:1", {"nccl": "2.28.0"}, "fine"),
        ("NCCL_NVLS_ENABLE=0", {"nccl": "2.18.3"}, "needless"),
        ("NCCL_DEBUG=ATTN", {"nccl": "2.32.0"}, "fine"),
        ("NCCL_TREE_THRESHOLD=0", {"nccl": "2.4.8"}, "fine"),
    ],
)
def test_verdict_changes_with_the_version(text: str, versions: dict[str, str], expected: str) -> None:
    assert verdict(text, **versions) == expected


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("NCCL_BUFFSIZE=8388608", "p5.48xlarge", "needless"),
        ("NCCL_BUFFSIZE=2097152", "p5.48xlarge", "harmful"),
        ("NCCL_BUFFSIZE=8388608", "g5.48xlarge", "harmful"),
        ("NCCL_TOPO_FILE=/opt/aws-ofi-nccl/share/p4d-24xl-topo.xml", "p4d.24xlarge", "needless"),
        ("NCCL_TOPO_FILE=/opt/aws-ofi-nccl/share/p4d-24xl-topo.xml", "p4de.24xlarge", "harmful"),
        ("NCCL_TOPO_FILE=/opt/aws-ofi-nccl/share/p4d-24xl-topo.xml", "p5.48xlarge", "wrong"),
        ("NCCL_NETDEVS_POLICY=max:1", "p5en.48xlarge", "needless"),
        ("NCCL_NETDEVS_POLICY=ALL", "p6-b200.48xlarge", "harmful"),
        ("NCCL_NETDEVS_POLICY=ALL", "p6-b300.48xlarge", "fine"),
        ("OFI_NCCL_PROTOCOL=SENDRECV", "p5.48xlarge", "harmful"),
        ("OFI_NCCL_PROTOCOL=rdma", "p5.48xlarge", "needless"),
        ("OFI_NCCL_NIC_DUP_CONNS=4", "p3dn.24xlarge", "needless"),
        ("NCCL_PROTO=LL128", "p4d.24xlarge", "harmful"),
        ("NCCL_PROTO=simple", "p4d.24xlarge", "needless"),
        ("NCCL_PROTO=simple", "p5en.48xlarge", "wrong"),
        ("NCCL_NVLS_ENABLE=0", "p5.48xlarge", "harmful"),
        ("NCCL_NVLS_ENABLE=0", "p4d.24xlarge", "fine"),
        ("FI_EFA_USE_DEVICE_RDMA=1", "p3dn.24xlarge", "harmful"),
        ("FI_EFA_USE_DEVICE_RDMA=1", "g5.48xlarge", "harmful"),
        ("FI_EFA_USE_DEVICE_RDMA=1", "p5.48xlarge", "wrong"),
        ("FI_EFA_USE_DEVICE_RDMA=1", "trn1.32xlarge", "fine"),
        ("FI_EFA_USE_DEVICE_RDMA=0", "trn2.48xlarge", "harmful"),
        ("FI_PROVIDER=efa", "trn2.48xlarge", "fine"),
        ("FI_EFA_FORK_SAFE=1", "trn1.32xlarge", "fine"),
        ("NCCL_DEBUG=INFO", "trn1.32xlarge", "needless"),
        ("NEURON_RT_NUM_CORES=32", "trn1.32xlarge", "fine"),
    ],
)
def test_verdict_changes_with_the_type(text: str, type: str, expected: str) -> None:
    assert verdict(text, type) == expected


def test_a_finding_names_the_version_from_which_it_applies() -> None:
    since = "libfabric 1.18.0 and aws-ofi-nccl 1.7.0"
    assert finding("FI_EFA_USE_DEVICE_RDMA=1").since == since


def test_a_finding_names_the_value_that_the_plugin_sets() -> None:
    assert (
        finding("NCCL_BUFFSIZE=1", "p5.48xlarge").message == "overrides what the plugin sets on p5.48xlarge (8388608)"
    )


@pytest.mark.parametrize("name", ["NCCL_FOO", "OFI_NCCL_FOO", "FI_EFA_FOO", "NCCL_"])
def test_a_name_that_is_like_none_has_no_hint(name: str) -> None:
    assert finding(f"{name}=1").fix == ""


def test_a_typo_finds_the_nearest_name() -> None:
    assert finding("NCCL_SOCKET_IFNAMES=eth0").fix == "did you mean NCCL_SOCKET_IFNAME?"


@pytest.mark.parametrize(
    ("text", "type", "expected"),
    [
        ("NCCL_P2P_DISABLE=1 torchrun t.py", None, "harmful"),
        ("NCCL_NVLS_ENABLE=0 python train.py --type x", "p5.48xlarge", "harmful"),
        ('os.environ["NCCL_PROTO"]="LL128"', None, "harmful"),
        ("  NCCL_TOPO_FILE: /x", "p5.48xlarge", "wrong"),
    ],
)
def test_a_variable_before_a_command_in_python_and_in_yaml_is_evaluated(
    text: str, type: str | None, expected: str
) -> None:
    assert verdict(text, type) == expected


def test_a_value_that_only_the_shell_knows_is_evaluated_by_its_name() -> None:
    assert verdict("export NCCL_ALGO=$MINE") == "harmful"


def test_other_variables_are_ignored() -> None:
    context = Context(instance_type=None, versions=assumed_versions({}))
    assert lint(assignments_in("PATH=/bin\nTORCH_NCCL_BLOCKING_WAIT=1\nMY_FI_PROVIDER=x"), context) == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NCCL_DEBUG=INFO", [("NCCL_DEBUG", "INFO")]),
        ("NCCL_NET=AWS Libfabric", [("NCCL_NET", "AWS Libfabric")]),
        ("NCCL_DEBUG=", [("NCCL_DEBUG", "")]),
        ("export NCCL_DEBUG=INFO", [("NCCL_DEBUG", "INFO")]),
        ("export A=1 B='2 3' C=\"4\"", [("A", "1"), ("B", "2 3"), ("C", "4")]),
        ('declare -x NCCL_DEBUG="INFO"', [("NCCL_DEBUG", "INFO")]),
        ("  export NCCL_DEBUG=INFO; NCCL_ALGO=Ring # NCCL_PROTO=LL", [("NCCL_DEBUG", "INFO"), ("NCCL_ALGO", "Ring")]),
        ("FI_PROVIDER=efa NCCL_DEBUG=INFO srun train", [("FI_PROVIDER", "efa"), ("NCCL_DEBUG", "INFO")]),
        ("mpirun -x NCCL_DEBUG=INFO -x PATH ./a \\", [("NCCL_DEBUG", "INFO")]),
        ("export NCCL_DEBUG=${NCCL_DEBUG:-INFO}", [("NCCL_DEBUG", "INFO")]),
        ("export NCCL_DEBUG=$LEVEL", [("NCCL_DEBUG", None)]),
        ("export NCCL_DEBUG=$(cat level)", [("NCCL_DEBUG", None)]),
        ("#SBATCH --export=ALL,NCCL_DEBUG=INFO,FI_PROVIDER=efa", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('#SBATCH --export="ALL,NCCL_DEBUG=INFO"', [("NCCL_DEBUG", "INFO")]),
        ("#SBATCH --export=ALL,NCCL_SOCKET_IFNAME='en,eth'", [("NCCL_SOCKET_IFNAME", "en,eth")]),
        ("srun --export=ALL,NCCL_DEBUG=INFO train", [("NCCL_DEBUG", "INFO")]),
        ("ENV NCCL_DEBUG=INFO FI_PROVIDER=efa \\", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("ENV NCCL_DEBUG INFO", [("NCCL_DEBUG", "INFO")]),
        ("    NCCL_DEBUG=INFO \\", [("NCCL_DEBUG", "INFO")]),
        ("NCCL_P2P_DISABLE=1 torchrun t.py", [("NCCL_P2P_DISABLE", "1")]),
        ("NCCL_NVLS_ENABLE=0 python train.py --type x", [("NCCL_NVLS_ENABLE", "0")]),
        ("NCCL_DEBUG=INFO my_trainer cfg", [("NCCL_DEBUG", "INFO")]),
        ("NCCL_NET=Socket srun x", [("NCCL_NET", "Socket")]),
        ("NCCL_NET='AWS Libfabric' srun x", [("NCCL_NET", "AWS Libfabric")]),
        ("NCCL_NET=AWS Libfabric", [("NCCL_NET", "AWS Libfabric")]),
        ("NCCL_TOPO_FILE=/x/y.xml torchrun t.py", [("NCCL_TOPO_FILE", "/x/y.xml")]),
        ("NCCL_TOPO_FILE=/x/y.xml train --fast", [("NCCL_TOPO_FILE", "/x/y.xml")]),
        ("NCCL_DEBUG_FILE=/my dir/log", [("NCCL_DEBUG_FILE", "/my dir/log")]),
        ("env NCCL_DEBUG=INFO FI_PROVIDER=efa ./a", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("NCCL_DEBUG=INFO ./a | NCCL_ALGO=Ring b", [("NCCL_DEBUG", "INFO"), ("NCCL_ALGO", "Ring")]),
        ("A='x y' NCCL_PROTO='LL' c && NCCL_ALGO=Ring d", [("A", "x y"), ("NCCL_PROTO", "LL"), ("NCCL_ALGO", "Ring")]),
        ("srun --export=ALL,NCCL_DEBUG=INFO env NCCL_ALGO=Ring x", [("NCCL_DEBUG", "INFO"), ("NCCL_ALGO", "Ring")]),
        ("setenv NCCL_DEBUG INFO", [("NCCL_DEBUG", "INFO")]),
        ("set -gx NCCL_DEBUG INFO", [("NCCL_DEBUG", "INFO")]),
        ("  NCCL_TOPO_FILE: /x", [("NCCL_TOPO_FILE", "/x")]),
        ('NCCL_SOCKET_IFNAME: "en,eth" # both', [("NCCL_SOCKET_IFNAME", "en,eth")]),
        ("NCCL_DEBUG: ${LEVEL}", [("NCCL_DEBUG", None)]),
        ("- NCCL_DEBUG=INFO", [("NCCL_DEBUG", "INFO")]),
        ("environment: {NCCL_DEBUG: INFO, FI_PROVIDER: efa}", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("- {name: NCCL_DEBUG, value: INFO}", [("NCCL_DEBUG", "INFO")]),
        ('{"NCCL_DEBUG":"INFO", "FI_PROVIDER": "efa"}', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('  "NCCL_DEBUG": "INFO",', [("NCCL_DEBUG", "INFO")]),
        ('os.environ["NCCL_PROTO"]="LL128"', [("NCCL_PROTO", "LL128")]),
        ("os.environ['NCCL_BUFFSIZE'] = str(1)", [("NCCL_BUFFSIZE", "1")]),
        ("os.environ['NCCL_PROTO'] = proto", [("NCCL_PROTO", None)]),
        ("os.environ.setdefault('NCCL_DEBUG', 'INFO')", [("NCCL_DEBUG", "INFO")]),
        ('if os.environ["NCCL_PROTO"] == "LL": pass', []),
        ('print(os.environ["NCCL_PROTO"])', []),
        ('echo "NCCL_DEBUG: $NCCL_DEBUG"', []),
        (': "${NCCL_DEBUG:=INFO}"', [("NCCL_DEBUG", "INFO")]),
        ("NCCL_SOCKET_IFNAME+=,eth1", [("NCCL_SOCKET_IFNAME", None)]),
        ("mpiexec -genv NCCL_DEBUG INFO -env FI_PROVIDER efa ./a", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("qsub -v NCCL_DEBUG=INFO,FI_PROVIDER=efa job", [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("apptainer exec --env NCCL_SOCKET_IFNAME=en,eth i", [("NCCL_SOCKET_IFNAME", "en,eth")]),
        (
            "docker run -e 'NCCL_NET=AWS Libfabric' -eNCCL_DEBUG=INFO i",
            [("NCCL_NET", "AWS Libfabric"), ("NCCL_DEBUG", "INFO")],
        ),
        ('docker run --env=NCCL_DEBUG=INFO -e "FI_PROVIDER=efa" i', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("ENV NCCL_NET AWS Libfabric", [("NCCL_NET", "AWS Libfabric")]),
        ('CMD ["env", "NCCL_DEBUG=INFO", "torchrun"]', [("NCCL_DEBUG", "INFO")]),
        ('bash -c "export NCCL_DEBUG=INFO && FI_PROVIDER=efa ./a"', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('args: ["-c", "export NCCL_DEBUG=INFO && train"]', [("NCCL_DEBUG", "INFO")]),
        ('echo "export NCCL_DEBUG=INFO" >> ~/.bashrc', [("NCCL_DEBUG", "INFO")]),
        ("echo NCCL_DEBUG=INFO | sudo tee -a /etc/nccl.conf", [("NCCL_DEBUG", "INFO")]),
        (
            'printf "NCCL_DEBUG=INFO\\nFI_PROVIDER=efa\\n" > /etc/nccl.conf',
            [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")],
        ),
        ("echo export NCCL_DEBUG=INFO", [("NCCL_DEBUG", "INFO")]),
        ('echo "set NCCL_PROTO=Simple if slow"', []),
        ("echo NCCL_PROTO=Simple >&2", []),
        ("echo NCCL_PROTO=Simple > /dev/stderr", []),
        ('die "use export NCCL_PROTO=Simple"', []),
        ("grep -q NCCL_DEBUG=INFO file", []),
        ("description: set NCCL_PROTO=Simple if slow", []),
        ("// NCCL_DEBUG=INFO", []),
        ("; NCCL_DEBUG=INFO", []),
        (
            'Environment="NCCL_NET=AWS Libfabric" "NCCL_DEBUG=INFO"',
            [("Environment", "NCCL_NET=AWS Libfabric"), ("NCCL_NET", "AWS Libfabric"), ("NCCL_DEBUG", "INFO")],
        ),
        ('os.environ.update(NCCL_DEBUG="INFO", FI_PROVIDER="efa")', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('os.environ.update(NCCL_DEBUG="INFO",FI_PROVIDER="efa")', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('    NCCL_DEBUG="INFO",', [("NCCL_DEBUG", "INFO")]),
        ("    NCCL_DEBUG=level,", [("NCCL_DEBUG", None)]),
        (
            'os.environ.update({"NCCL_DEBUG": level, "FI_PROVIDER": "efa"})',
            [("NCCL_DEBUG", None), ("FI_PROVIDER", "efa")],
        ),
        ("os.environ['NCCL_DEBUG'] = 'INFO' if slow else 'WARN'", [("NCCL_DEBUG", None)]),
        ("os.environ['NCCL_DEBUG'] = f'{level}'", [("NCCL_DEBUG", None)]),
        ('print("NCCL_PROTO=Simple")', []),
        ('logger.info("set NCCL_PROTO=Simple")', []),
        ('raise ValueError("set NCCL_PROTO=Simple")', []),
        ('{"Env": ["NCCL_DEBUG=INFO", "FI_PROVIDER=efa"]}', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ('{"Name": "NCCL_DEBUG", "Value": "INFO"}', [("NCCL_DEBUG", "INFO")]),
        ('env = { NCCL_DEBUG = "INFO", FI_PROVIDER = "efa" }', [("NCCL_DEBUG", "INFO"), ("FI_PROVIDER", "efa")]),
        ("export NCCL_DEBUG := INFO", [("NCCL_DEBUG", "INFO")]),
        ("NCCL_DEBUG: !Ref Level", [("NCCL_DEBUG", None)]),
        ("NCCL_DEBUG: *x", [("NCCL_DEBUG", None)]),
        ("NCCL_DEBUG: |", [("NCCL_DEBUG", None)]),
        ("# export NCCL_DEBUG=INFO", []),
        ("echo $NCCL_DEBUG", []),
        ("train --NCCL_DEBUG=INFO", []),
        ("#SBATCH --nodes=2", []),
        ("", []),
    ],
)
def test_assignments_of_a_line(line: str, expected: list[tuple[str, str | None]]) -> None:
    assert [(found.name, found.value) for found in assignments_in(line)] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PATH=/bin\nLS_COLORS=a;b\nNCCL_NET=AWS Libfabric\nPS1=$ \n", "AWS Libfabric"),
        ("BASH_FUNC_module%%=() {  eval x\n y\n}\nNCCL_NET=AWS Libfabric\n", "AWS Libfabric"),
        ("# of ours\nNCCL_NET=AWS Libfabric\n", "AWS Libfabric"),
        ("PATH=/bin\nNCCL_NET=AWS python train.py\n", "AWS"),
        ("#!/bin/sh\nNCCL_NET=AWS Libfabric\n", "AWS"),
        ("cd /x\nNCCL_NET=AWS Libfabric\n", "AWS"),
        ("export A=1\nNCCL_NET=AWS Libfabric\n", "AWS"),
    ],
)
def test_only_in_a_listing_everything_after_the_sign_is_the_value(text: str, expected: str) -> None:
    assert [found.value for found in assignments_in(text) if found.name == "NCCL_NET"] == [expected]


def test_a_pod_names_a_variable_and_has_its_value_below() -> None:
    text = "env:\n- name: NCCL_DEBUG\n  value: 'INFO'\n- name: NCCL_ALGO\n  valueFrom:\n"
    assert [(one.line, one.name, one.value) for one in assignments_in(text)] == [
        (2, "NCCL_DEBUG", "INFO"),
        (4, "NCCL_ALGO", None),
    ]


def test_a_continued_line_is_read_to_its_end() -> None:
    text = "export NCCL_DEBUG=INFO \\\n  FI_PROVIDER=efa\nNCCL_ALGO=Ring \\\n  srun x\n"
    assert [(one.line, one.name, one.value) for one in assignments_in(text)] == [
        (1, "NCCL_DEBUG", "INFO"),
        (2, "FI_PROVIDER", "efa"),
        (3, "NCCL_ALGO", "Ring"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat <<EOF\nNCCL_PROTO=Simple\nEOF\nexport NCCL_DEBUG=INFO", [(4, "INFO")]),
        (": <<'NOTES'\nexport NCCL_PROTO=Simple\nNOTES\n", []),
        ("cat > /etc/nccl.conf <<EOF\nNCCL_DEBUG=WARN\nEOF", [(2, "WARN")]),
        ("sudo tee /etc/nccl.conf <<'EOF'\nNCCL_DEBUG=WARN\nEOF", [(2, "WARN")]),
        ("cat <<EOF | sbatch\nexport NCCL_DEBUG=WARN\nEOF", [(2, "WARN")]),
        ('usage() {\n  echo "Usage:\n  NCCL_PROTO=Simple train\n"\n}\nexport NCCL_DEBUG=INFO', [(6, "INFO")]),
        ("bash -c '\nexport NCCL_DEBUG=INFO\ntrain\n'", [(2, "INFO")]),
        ('"""Doc.\n\nSet NCCL_PROTO=Simple.\n"""\nos.environ["NCCL_DEBUG"] = "INFO"', [(5, "INFO")]),
        ("ENV A=b \\\n    # NCCL_PROTO=LL\n    NCCL_DEBUG=INFO", [(3, "INFO")]),
        ("env:\n- name: NCCL_DEBUG\n  # why\n  value: INFO", [(2, "INFO")]),
        ("env:\n- value: INFO\n  name: NCCL_DEBUG", [(3, "INFO")]),
        ('{\n  "name": "NCCL_DEBUG",\n  "value": "INFO"\n}', [(2, "INFO")]),
        ('[env]\nNCCL_DEBUG = "INFO"', [(2, "INFO")]),
    ],
)
def test_prose_sets_nothing(text: str, expected: list[tuple[int, str]]) -> None:
    found = [one for one in assignments_in(text) if one.name.startswith("NCCL_")]
    assert [(one.line, one.value) for one in found] == expected


@pytest.mark.parametrize(
    "piece",
    ['"', "'", "\\", "${", "$(", "`a", "A=", "a(", '["', "{NCCL_A: ", '"NCCL_A":', "cat <<A\n", "echo '\"\n", "A='\""],
)
def test_a_long_text_of_nothing_takes_no_time_to_speak_of(piece: str) -> None:
    assert sum(1 for _ in assignments_in(piece * 50_000)) <= 50_000


@given(st.text(alphabet=st.sampled_from("AB=\n\"'\\ $(){}[],:#<>|;-NCL_x"), max_size=200))
def test_garbage_is_no_error(text: str) -> None:
    assert all(one.line <= text.count("\n") + 1 for one in assignments_in(f"NCCL_{text}"))


def test_an_assignment_knows_its_line() -> None:
    found = tuple(assignments_in("#!/bin/bash\n\nexport NCCL_DEBUG=INFO\n"))
    assert found == (Assignment(line=3, name="NCCL_DEBUG", value="INFO"),)


@pytest.mark.parametrize("text", ['export NCCL_DEBUG="INFO', "NCCL_DEBUG='", "ENV", "=", "#SBATCH --export=", "\\"])
def test_a_text_that_is_broken_off_is_no_error(text: str) -> None:
    assert len(tuple(assignments_in(text))) <= 1


@pytest.mark.parametrize(
    ("installer", "plugin", "libfabric"),
    [("1.40.0", "1.14.2", "2.1.0"), ("1.45.1", "1.16.3", "2.1.0"), ("1.50.0", "1.21.1", "2.6.0")],
)
def test_an_installer_defines_the_other_versions(installer: str, plugin: str, libfabric: str) -> None:
    versions = assumed_versions({"installer": parse_version(installer)})
    assert (format_version(versions["plugin"]), format_version(versions["libfabric"])) == (plugin, libfabric)


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({}, None),
        ({"installer": "1.51.0"}, None),
        ({"installer": "1.43.1", "nccl": "2.20.0"}, None),
        (
            {"installer": "1.60.0"},
            "EFA installer 1.60.0 is newer than the known installers (1.40.0 to 1.51.0): using 1.51.0, which"
            " installs aws-ofi-nccl 1.22.0 and libfabric 2.7.0 - set --plugin and --libfabric for other versions",
        ),
        (
            {"installer": "1.45.1", "plugin": "1.17.0"},
            "EFA installer 1.45.1 is not one of the known installers (1.40.0 to 1.51.0): using 1.43.2, which"
            " installs libfabric 2.1.0 - set --plugin and --libfabric for other versions",
        ),
        ({"installer": "1.60.0", "plugin": "1.23.0", "libfabric": "2.8.0"}, None),
        ({"installer": "1.29.0", "plugin": "1.7.4", "libfabric": "1.19.0"}, None),
    ],
)
def test_an_unknown_installer_is_a_warning_with_the_one_that_counts(given: dict[str, str], warning: str | None) -> None:
    assert installer_warning({name: parse_version(version) for name, version in given.items()}) == warning


def test_an_old_installer_alone_is_an_error() -> None:
    with pytest.raises(UnknownInstaller, match=r"before 1\.40\.0 .* also set --plugin and --libfabric"):
        assumed_versions({"installer": parse_version("1.29.0")})


@pytest.mark.parametrize("text", ["", "x", "1", "1.x", ".1"])
def test_an_invalid_version_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="is not a version"):
        parse_version(text)


def rules() -> list[VariableRule]:
    data = variable_catalog()
    return [*(rule for rules in data.rules.values() for rule in rules), *(rule for _, rule in data.families)]


def test_every_row_has_a_source() -> None:
    data = variable_catalog()
    sources = [row.source for group in (rules(), data.plugin, data.installers, data.measured) for row in group]
    assert [source for source in sources if len(source) < 20] == []


def test_wrong_and_harmful_findings_name_the_fix() -> None:
    bad = (VariableVerdict.WRONG, VariableVerdict.HARMFUL, VariableVerdict.NEEDLESS)
    assert [rule.message for rule in rules() if rule.verdict in bad and not rule.fix] == []


def test_no_message_contains_its_fix() -> None:
    texts = [rule.message for rule in rules()]
    assert [text for text in texts if " - " in text or "unset" in text or "; use" in text] == []


def test_conditions_name_components_and_types_that_exist() -> None:
    components = {name for rule in rules() for name in (*rule.since, *rule.before)}
    patterns = {rule.types for rule in rules() if rule.types} | {row.types for row in variable_catalog().plugin}
    unknown = {pattern for pattern in patterns if not any(re.fullmatch(pattern, name) for name in instance_types())}
    assert (components - set(COMPONENTS), unknown) == (set(), set())


def test_measured_types_are_in_the_catalog() -> None:
    assert {row.instance_type for row in variable_catalog().measured} - set(instance_types()) == set()


@pytest.mark.parametrize(
    ("type", "expected"),
    [
        ("p3dn.24xlarge", ["OFI_NCCL_NIC_DUP_CONNS", "OFI_NCCL_PROTOCOL"]),
        ("p5.4xlarge", ["OFI_NCCL_PROTOCOL"]),
        ("g6e.48xlarge", []),
        ("trn2.48xlarge", ["OFI_NCCL_PROTOCOL"]),
    ],
)
def test_what_the_plugin_sets(type: str, expected: list[str]) -> None:
    assert list(plugin_settings(type)) == expected


def tables() -> str:
    """What docs/lint-env.md lists, from the data."""
    data = variable_catalog()
    evaluated = {
        name: found for name, found in data.rules.items() if any(r.verdict is not VariableVerdict.FINE for r in found)
    }
    families = {f"{prefix}*": (rule,) for prefix, rule in data.families}
    lines = [
        "| variable | where | verdict | what is wrong, or what it is for | fix | source |",
        "|---|---|---|---|---|---|",
    ]
    lines += [line(name, rule) for name, found in {**evaluated, **families}.items() for rule in found]
    lines += ["", "| types | what the plugin sets by itself | source |", "|---|---|---|"]
    for row in data.plugin:
        sets = " ".join(f"`{name}={value}`" for name, value in row.sets.items())
        since = f" ({conditions({'since': row.since})})" if row.since else ""
        lines.append(f"| `{cell(row.types)}` | {sets}{since} | {row.source} |")
    known = [name for name in data.rules if name not in evaluated]
    lines += ["", f"Nothing against: {', '.join(f'`{name}`' for name in known)}."]
    return "\n".join(lines)


def line(name: str, rule: VariableRule) -> str:
    wanted = [f"value `{cell(rule.value)}`"] if rule.value else []
    wanted += [f"types `{cell(rule.types)}`"] if rule.types else []
    wanted += [rule.vendor.value] if rule.vendor else []
    wanted += [text for text in (conditions({"since": rule.since}), conditions({"before": rule.before})) if text]
    cells = (f"`{name}`", "; ".join(wanted), rule.verdict.value, rule.message, rule.fix, rule.source)
    return "| " + " | ".join(cells) + " |"


def conditions(of: dict[str, object]) -> str:
    ((word, versions),) = of.items()
    assert hasattr(versions, "items")
    return ", ".join(f"{word} {COMPONENTS[name]} {format_version(version)}" for name, version in versions.items())


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def test_the_page_equals_the_data(request: pytest.FixtureRequest) -> None:
    marks = re.compile(r"(?<=<!-- from the data -->\n).*?(?=\n<!-- end -->)", re.DOTALL)
    page = PAGE.read_text()
    if request.config.getoption("--regold"):
        PAGE.write_text(page := marks.sub(lambda _: tables(), page))
    assert marks.findall(page) == [tables()]
