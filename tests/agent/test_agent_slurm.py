"""The agent's Slurm commands: the exact arguments, many nodes at once, and errors as one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.slurm import SlurmError, power_down, read_node, replace, scontrol, set_addresses, signal_script


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a scontrol that does nothing was given, a line for each call; a word with a blank stands in brackets."""
    script = f"""#!/bin/sh
line=
for word; do case "$word" in *" "*) word="<$word>";; esac; line="$line $word"; done
echo "${{line# }}" >>{tmp_path}/log
[ "$3" != "state=bad" ] || {{ echo "slurm_update error: Invalid node name specified" >&2; exit 1; }}
"""
    (tmp_path / "scontrol").write_text(script)
    (tmp_path / "scontrol").chmod(0o755)
    (tmp_path / "log").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "log"


def test_nodes_are_set_down_and_powered_down_with_the_reason(log: Path) -> None:
    power_down(["train-1", "train-2", "cpu-1"], "corral: no room")
    assert log.read_text().splitlines() == [
        "update nodename=cpu-1,train-[1-2] state=down <reason=corral: no room>",
        "update nodename=cpu-1,train-[1-2] state=power_down_force <reason=corral: no room>",
    ]


def test_a_script_that_does_not_handle_the_signal_is_not_signalled(tmp_path: Path, log: Path) -> None:
    """Its default is to end: the job would have failed, where it could have been requeued."""
    scripts = '#!/bin/sh\n[ "$3" != 5 ] || echo "trap save USR1"\n[ "$3" != 6 ] || echo "python train.py"\n'
    (tmp_path / "scontrol").write_text(scripts)
    (tmp_path / "scancel").write_text(f'#!/bin/sh\necho "$*" >>{log}\n')
    (tmp_path / "scancel").chmod(0o755)
    assert [signal_script(job) for job in ("5", "6")] == [True, False]
    assert log.read_text().splitlines() == ["--batch --signal=USR1 5"]


def test_addresses_are_in_the_order_of_their_nodes(log: Path) -> None:
    set_addresses({"train-2": "10.64.0.9", "train-1": "10.64.0.10"})
    assert log.read_text().splitlines() == [
        "update nodename=train-1,train-2 nodeaddr=10.64.0.10,10.64.0.9 nodehostname=ip-10-64-0-10,ip-10-64-0-9"
    ]


def test_five_hundred_nodes_are_one_call(log: Path) -> None:
    replace([f"train-{number}" for number in range(1, 1002)], "x")
    assert [line.split()[1] for line in log.read_text().splitlines()] == [
        "nodename=train-[1-500]",
        "nodename=train-[501-1000]",
        "nodename=train-1001",
    ]


def test_no_nodes_are_no_call(log: Path) -> None:
    power_down([], "x")
    set_addresses({})
    assert log.read_text() == ""


def test_a_refusal_is_one_sentence(log: Path) -> None:
    with pytest.raises(SlurmError, match=r"^scontrol update nodename=x-1 state=bad failed: slurm_update error: Inv"):
        scontrol("update", "nodename=x-1", "state=bad")


def test_a_machine_without_scontrol_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=r"^scontrol ping: .*No such file or directory"):
        scontrol("ping")


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("reason", "NodeName=train-1 State=IDLE+DRAIN Reason=two words [root@2026-11-21T12:00:00] "),
        ("reason", "NodeName=train-1 State=IDLE Reason=two words [root@2026-11-21T12:00:00] Comment=other State=DOWN "),
        ("comment", "NodeName=train-1 State=IDLE Comment=two words [root@2026-11-21T12:00:00] Extra=(null)"),
        ("started", "NodeName=train-1 State=IDLE BootTime=x SlurmdStartTime=two words"),
        ("booted", "NodeName=train-1 State=IDLE BootTime=two SlurmdStartTime=x"),
    ],
)
def test_a_field_ends_where_the_next_one_begins(field: str, line: str) -> None:
    wanted = "two" if field in ("started", "booted") else "two words [root@2026-11-21T12:00:00]"
    assert getattr(read_node(line), field) == wanted


def test_states_are_read_from_their_field_only() -> None:
    assert read_node("NodeName=train-1 State=IDLE+CLOUD Comment=it was State=DOWN").states == {"IDLE", "CLOUD"}


def test_a_line_about_no_node_is_refused() -> None:
    with pytest.raises(ValueError, match="'No nodes in the system' does not describe a node"):
        read_node("No nodes in the system")
