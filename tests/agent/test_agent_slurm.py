"""scontrol as the agent gives it: the exact words, many nodes at once, and its refusals as one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from corral.agent.slurm import SlurmError, place, power_down, scontrol


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


def test_nodes_are_powered_down_with_the_reason(log: Path) -> None:
    power_down(["train-1", "train-2", "cpu-1"], "corral: no room")
    assert log.read_text().splitlines() == [
        "update nodename=cpu-1,train-[1-2] state=power_down_force <reason=corral: no room>"
    ]


def test_nodes_are_placed_in_the_order_of_their_addresses(log: Path) -> None:
    place({"train-2": "10.64.0.9", "train-1": "10.64.0.10"})
    assert log.read_text().splitlines() == [
        "update nodename=train-1,train-2 nodeaddr=10.64.0.10,10.64.0.9 nodehostname=ip-10-64-0-10,ip-10-64-0-9"
    ]


def test_hundred_nodes_are_one_call(log: Path) -> None:
    power_down([f"train-{number}" for number in range(1, 202)], "x")
    assert [line.split()[1] for line in log.read_text().splitlines()] == [
        "nodename=train-[1-100]",
        "nodename=train-[101-200]",
        "nodename=train-201",
    ]


def test_no_nodes_are_no_call(log: Path) -> None:
    power_down([], "x")
    place({})
    assert log.read_text() == ""


def test_a_refusal_is_one_sentence(log: Path) -> None:
    with pytest.raises(SlurmError, match=r"^scontrol update nodename=x-1 state=bad failed: slurm_update error: Inv"):
        scontrol("update", "nodename=x-1", "state=bad")


def test_a_machine_without_scontrol_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match=r"^scontrol ping: .*No such file or directory"):
        scontrol("ping")
