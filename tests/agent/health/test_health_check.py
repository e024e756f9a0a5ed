"""The checks of Slurm and of the boot, with a scontrol that records its updates."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.health_fixtures import H100, Recorded
from corral.agent.config.file_placements import placements_for
from corral.agent.health import check
from corral.agent.health.check import HealthError, check_boot, check_idle, check_without_job, drain_sick_node, prolog
from corral.agent.health.findings import FindingKind, sick
from corral.model.enums import Role

LOST = sick(FindingKind.GPU_MISSING, "7 of 8 GPUs answer")


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scontrol that knows train-3 in the state that a file names, and the log of its updates."""
    (tmp_path / "state").write_text("IDLE+CLOUD")
    script = f"""#!/bin/sh
[ "$2" = show ] && {{ echo "NodeName=train-3 State=$(cat {tmp_path}/state) ThreadsPerCore=1"; exit; }}
for word; do printf '<%s>' "$word"; done >>{tmp_path}/log
"""
    (tmp_path / "scontrol").write_text(script)
    (tmp_path / "scontrol").chmod(0o755)
    (tmp_path / "log").touch()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("corral.agent.imds_client.read", lambda name, service="": "i-0abc")
    return tmp_path


def updates(scontrol: Path) -> str:
    return (scontrol / "log").read_text()


def test_a_job_begins_on_a_healthy_node(scontrol: Path) -> None:
    prolog("train-3", H100, Recorded("healthy"), scontrol / "mark")
    assert updates(scontrol) == ""


def test_no_job_begins_on_a_sick_node_which_is_drained(scontrol: Path) -> None:
    reason = "corral: i-0abc: 7 of 8 GPUs answer: replace the machine"
    with pytest.raises(HealthError, match=rf"^train-3 accepts no job: {reason}$"):
        prolog("train-3", H100, Recorded("gpu-missing"), scontrol / "mark")
    assert updates(scontrol) == f"<update><nodename=train-3><state=drain><reason={reason}>"


def program(scontrol: Path) -> int:
    """The exit code of the file that Slurm starts, on a machine that has no agent: 2 of Python without its file."""
    (placed,) = [one for one in placements_for({}, Role.COMPUTE, None) if one.path == "/opt/corral/bin/prolog"]
    text = placed.content.decode().replace("/run/corral", str(scontrol)).replace("/opt/corral", "/nonexistent")
    return subprocess.run(["sh", "-c", text], stderr=subprocess.DEVNULL).returncode


def test_a_job_right_after_a_passed_check_is_not_delayed(scontrol: Path) -> None:
    check.quick(H100, Recorded("healthy"), scontrol / "healthy")
    assert program(scontrol) == 0


def test_a_check_of_a_minute_ago_is_repeated(scontrol: Path) -> None:
    check.quick(H100, Recorded("healthy"), scontrol / "healthy")
    os.utime(scontrol / "healthy", (time.time() - 61, time.time() - 61))
    assert program(scontrol) == 2


def test_without_a_check_a_job_does_not_begin(scontrol: Path) -> None:
    assert program(scontrol) == 2


def test_a_failed_check_removes_the_mark_of_a_passed_one(scontrol: Path) -> None:
    check.quick(H100, Recorded("healthy"), scontrol / "mark")
    check.quick(H100, Recorded("gpu-missing"), scontrol / "mark")
    assert not (scontrol / "mark").exists()


def test_a_sick_idle_node_is_drained(scontrol: Path) -> None:
    check_idle("train-3", H100, Recorded("nvlink-down"))
    assert updates(scontrol).endswith("<reason=corral: i-0abc: GPU 4: NVLink 7, 8 is down: replace the machine>")


def test_a_healthy_idle_node_is_left_alone(scontrol: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "MARK", scontrol / "mark")
    check_idle("train-3", H100, Recorded("healthy"))
    assert updates(scontrol) == ""


def test_a_node_that_somebody_drained_keeps_its_reason(scontrol: Path) -> None:
    (scontrol / "state").write_text("IDLE+CLOUD+DRAIN")
    drain_sick_node("train-3", [LOST])
    assert updates(scontrol) == ""


def test_the_reason_goes_into_the_log_where_the_node_has_another(
    scontrol: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (scontrol / "state").write_text("IDLE+CLOUD+DRAIN")
    drain_sick_node("train-3", [LOST])
    assert "health train-3: already drained; found: corral: i-0abc: 7 of 8" in caplog.text


def test_a_machine_that_is_sick_when_it_boots_does_not_join() -> None:
    with pytest.raises(HealthError, match=r"^the machine is not fit for jobs: 31 of 32 EFA interfaces are up: rep"):
        check_boot(H100, Recorded("efa-missing"))


def test_a_deep_check_is_refused_while_a_job_has_the_node(scontrol: Path) -> None:
    (scontrol / "state").write_text("MIXED+CLOUD")
    with pytest.raises(HealthError, match=r"^train-3 is MIXED, and a deep check loads the GPUs - drain the node"):
        check_without_job("train-3")


def test_a_deep_check_is_done_on_a_drained_node(scontrol: Path) -> None:
    (scontrol / "state").write_text("IDLE+CLOUD+DRAIN")
    check_without_job("train-3")


def test_findings_are_one_document() -> None:
    assert json.loads(check.as_json([LOST])) == {
        "healthy": False,
        "findings": [
            {
                "kind": "gpu-missing",
                "severity": "sick",
                "message": "7 of 8 GPUs answer",
                "fix": "replace the machine",
            },
        ],
    }


def test_a_healthy_machine_is_reported_as_healthy() -> None:
    assert check.as_text([]) == "healthy"


def around_jobs(scontrol: Path, name: str, programs: Mapping[str, str]) -> tuple[int, list[str]]:
    """The exit code of what Slurm runs around a job on a healthy node with these programs, and what they print."""
    (placed,) = [one for one in placements_for({}, Role.COMPUTE, None) if one.path == f"/opt/corral/bin/{name}"]
    check.quick(H100, Recorded("healthy"), scontrol / "healthy")
    directory = scontrol / f"{name}.d"
    directory.mkdir()
    for program_name, text in programs.items():
        (directory / program_name).write_text(f"#!/bin/sh\n{text}\n")
        (directory / program_name).chmod(0o755)
    text = placed.content.decode().replace("/run/corral", str(scontrol)).replace("/opt/corral", str(scontrol))
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True)
    return done.returncode, done.stdout.split()


FAILING = {"50-environment": "echo environment; exit 3", "90-image": "echo image"}


def test_a_prolog_that_fails_is_the_last_and_keeps_the_job_off_the_node(scontrol: Path) -> None:
    assert around_jobs(scontrol, "prolog", FAILING) == (3, ["environment"])


def test_an_epilog_that_fails_stops_no_other_and_is_reported(scontrol: Path) -> None:
    assert around_jobs(scontrol, "epilog", FAILING) == (3, ["environment", "image"])
