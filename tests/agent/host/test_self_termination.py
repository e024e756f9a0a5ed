"""When a compute machine terminates itself."""

import os
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

from agent.waiting import until
from corral.agent import slurm
from corral.agent.config_store import StoreError
from corral.agent.host.self_termination import NodeLiveness, first_after_s, why_terminate
from corral.agent.shutdown.head_liveness import HeadMonitor, answers, end_time, has_step, latest_end

NOW = 1_790_000_000.0
STEP = "slurmstepd: [12.batch]"


@pytest.mark.parametrize(
    ("heard_s", "working", "ends_at", "why"),
    [
        (599.0, False, None, ""),
        (600.0, False, None, "no head for 600 s, and no job"),
        (6000.0, True, None, ""),
        (0.0, True, NOW + 1, ""),
        (0.0, True, NOW - 599, ""),
        (0.0, True, NOW - 600, "the cluster ended 600 s ago"),
    ],
    ids=["not yet", "alone", "alone with a job", "before the end", "the head's turn", "past the end"],
)
def test_a_machine_terminates_itself_when_nothing_else_would(
    heard_s: float, working: bool, ends_at: float | None, why: str
) -> None:
    assert why_terminate(NodeLiveness(now=NOW, head_silent_s=heard_s, working=working, ends_at=ends_at)) == why


class Machine:
    """A machine whose surroundings a test sets."""

    def __init__(self, *ends: float | None) -> None:
        self.now, self.hears, self.works, self.off = 0.0, True, False, 0
        self.ends = list(ends or [None])
        self.heart = HeadMonitor(
            head_answers=lambda: self.hears,
            working=lambda: self.works,
            ends_at=lambda: self.ends.pop(0) if len(self.ends) > 1 else self.ends[0],
            power_off=self._end,
            steady=lambda: self.now,
            clock=lambda: NOW + self.now,
        )

    def _end(self) -> None:
        self.off += 1

    def live(self, for_s: float) -> int:
        """How often it was powered off after so long."""
        until = self.now + for_s
        while self.now < until:
            self.heart.check()
            self.now += 5
        return self.off


def test_a_machine_whose_head_answers_stays() -> None:
    assert Machine().live(7200) == 0


def test_a_machine_without_a_head_terminates_itself_after_ten_minutes() -> None:
    machine = Machine()
    machine.live(60)
    machine.hears = False
    assert (machine.live(560), machine.live(90) > 0) == (0, True)


def test_a_head_that_answers_again_resets_the_time() -> None:
    machine = Machine()
    machine.live(60)
    machine.hears = False
    machine.live(500)
    machine.hears = True
    machine.live(60)
    machine.hears = False
    assert machine.live(500) == 0


def test_a_machine_checks_for_an_extension_before_it_terminates_itself() -> None:
    machine = Machine(NOW + 60, NOW + 7200)
    assert machine.live(3600) == 0


def test_a_machine_past_the_end_terminates_itself_even_with_a_job() -> None:
    machine = Machine(NOW + 60)
    machine.works = True
    assert (machine.live(650), machine.live(60) > 0) == (0, True)


def test_without_the_bucket_the_end_is_that_of_the_launch() -> None:
    def newest() -> str | None:
        raise StoreError("no bucket")

    assert latest_end(newest, "2026-11-22T00:00:00Z") == end_time("2026-11-22T00:00:00+00:00") == 1795305600.0


@pytest.mark.parametrize(
    ("processes", "works"),
    [
        ({"1": ("systemd", "/sbin/init"), "7": ("slurmd", "/usr/sbin/slurmd -D")}, False),
        ({"8": ("slurmstepd", "/usr/sbin/slurmstepd infinity")}, False),
        ({"8": ("slurmstepd", "/usr/sbin/slurmstepd infinity"), "9": ("slurmstepd", "slurmstepd: [12.batch]")}, True),
        ({"9": ("slurmstepd", "slurmstepd: [12.extern]")}, True),
    ],
    ids=["no step", "slurmd's own", "a job beside it", "a job"],
)
def test_a_machine_works_while_a_step_of_a_job_runs(
    tmp_path: Path, processes: dict[str, tuple[str, str]], works: bool
) -> None:
    (tmp_path / "sys").mkdir()
    for number, (comm, line) in processes.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "comm").write_text(f"{comm}\n")
        (tmp_path / number / "cmdline").write_text(line.replace(" ", "\0") + "\0\0\0")
        (tmp_path / number / "status").write_text(f"Uid:\t{os.getuid()}\t1000\t{os.getuid()}\t1000\n")
    assert has_step(tmp_path) is works


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, who starts processes of others")
@pytest.mark.parametrize(("user", "works"), [(0, True), (65534, False)], ids=["root", "a user"])
def test_a_process_that_a_user_names_like_a_step_is_none(tmp_path: Path, user: int, works: bool) -> None:
    """Else any user of a lost node would keep it alive, and have its jobs requeued."""
    with tempfile.TemporaryDirectory() as programs:
        Path(programs).chmod(0o755)
        program = Path(programs) / "slurmstepd"
        program.symlink_to("/bin/sleep")
        command = ("setpriv", f"--reuid={user}", "--clear-groups", "bash", "-c", f'exec -a "{STEP}" {program} 60')
        with subprocess.Popen(command) as named:
            (tmp_path / str(named.pid)).symlink_to(f"/proc/{named.pid}")
            try:
                until(lambda: title(named.pid) == STEP)
                assert has_step(tmp_path) is works
            finally:
                named.kill()


def title(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]


def test_a_process_whose_name_is_not_utf_8_is_no_step(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    for name in ("comm", "cmdline"):
        (tmp_path / "7" / name).write_bytes(b"caf\xe9\n")
    assert has_step(tmp_path) is False


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A scontrol whose script the test writes."""
    (tmp_path / "scontrol").touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "scontrol"


@pytest.mark.parametrize(("code", "hears"), [(0, True), (1, False)], ids=["UP", "DOWN"])
def test_the_head_is_checked_with_scontrol_ping(scontrol: Path, code: int, hears: bool) -> None:
    scontrol.write_text(f'#!/bin/sh\n[ "$*" = ping ] || exit 9\nexit {code}\n')
    assert answers("10.64.0.26") is hears


def test_a_silent_head_does_not_block_the_watcher_beyond_its_timeout(scontrol: Path) -> None:
    scontrol.write_text("#!/bin/sh\nexec sleep 60\n")
    began = time.monotonic()
    assert (slurm.responds(0.2), time.monotonic() - began < 20) == (False, True)


def test_a_thousand_nodes_do_not_check_in_the_same_second() -> None:
    seconds_of = Counter(int(first_after_s(number)) for number in range(1, 1001))
    assert (sorted(seconds_of), max(seconds_of.values()) <= 35) == (list(range(30)), True)
