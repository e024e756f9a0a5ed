"""Errors as users see them: a sentence, a documented exit code, never a traceback."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from calls import CORRAL, REPOSITORY, clean_environment, corral

from corral.cli.support.crash_report import write_crash_report
from corral.cli.support.exit_codes import EXIT_CODES, exit_code_of
from corral.cli.support.options import seconds_of

Outcome = tuple[int, str]
DECLARED = f"{REPOSITORY}/stacks/cluster declares dev, mixed, train"
UNKNOWN = f"corral: unknown environment 'deb': {DECLARED} - did you mean 'dev'?\n"
NO_PULUMI = {"PATH": "/usr/bin:/bin"}


def outcome(done: subprocess.CompletedProcess[str]) -> Outcome:
    """Exit code and stderr; asserts that stderr has no traceback."""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with the shipped stacks."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "project" / "stacks")
    return tmp_path / "project"


def test_outside_of_a_project(tmp_path: Path) -> None:
    assert outcome(corral("plan", "dev", cwd=tmp_path)) == (
        2,
        f"corral: no corral project: neither {tmp_path} nor a parent directory holds stacks/cluster"
        " - change to a project, or add --project DIR\n",
    )


def test_project_option_without_a_project(tmp_path: Path) -> None:
    assert outcome(corral("plan", "dev", "--project", str(tmp_path))) == (
        2,
        f"corral: {tmp_path} is not a corral project: it has no stacks/cluster"
        " - give the directory that holds stacks/\n",
    )


def test_deleted_current_directory(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    call = f"rmdir {gone}; exec {sys.executable} -m corral.cli plan dev"
    done = subprocess.run(
        ["sh", "-c", call], cwd=gone, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert outcome(done) == (
        2,
        "corral: the current directory cannot be read: No such file or directory"
        " - change to another one, or add --project DIR\n",
    )


def test_unknown_environment_is_reported_with_a_suggestion() -> None:
    assert outcome(corral("plan", "deb")) == (2, UNKNOWN)


@pytest.mark.parametrize("command", ["render", "up", "down", "status"])
def test_unknown_environment_is_reported_alike_by_all_commands(command: str, tmp_path: Path) -> None:
    more = ("--out", str(tmp_path / "out")) if command == "render" else ()
    assert outcome(corral(command, "deb", *more)) == (2, UNKNOWN)


def test_all_errors_of_a_spec_are_reported_at_once(project: Path) -> None:
    file = project / "stacks/cluster/Pulumi.dev.yaml"
    content = yaml.safe_load(file.read_text())
    spec = content["config"]["corral-cluster:spec"]
    spec["queues"][0]["instance_type"] = "p4d.24xlargo"
    spec["head"]["instance_type"] = "m7i.2xlarg"
    spec["lifetim"] = {}
    file.write_text(yaml.safe_dump(content))
    code, message = outcome(corral("plan", "dev", cwd=project))
    paths = sorted(line.split(": ")[1] for line in message.splitlines())
    assert (code, paths) == (2, ["head.instance_type", "lifetim", "queues[0].instance_type"])


def test_spec_that_is_not_yaml(project: Path) -> None:
    (project / "stacks/cluster/Pulumi.dev.yaml").write_text("config: [")
    code, message = outcome(corral("plan", "dev", cwd=project))
    assert (code, message.split(": ")[0]) == (2, "stacks/cluster/Pulumi.dev.yaml")


def test_out_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.touch()
    message = f"corral: --out {file}: {file} is a file - give a directory\n"
    assert outcome(corral("render", "dev", "--out", str(file))) == (2, message)


def test_out_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    message = f"corral: --out {file / 'a' / 'b'}: {file} is a file - give a directory\n"
    assert outcome(corral("render", "dev", "--out", str(file / "a" / "b"))) == (2, message)


def test_out_that_cannot_be_written() -> None:
    code, message = outcome(corral("render", "dev", "--out", "/sys/corral"))
    assert (code, message.startswith("corral: /sys/corral: ")) == (1, True)


def test_unwritable_timeline_page_is_reported_before_any_call(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "timeline.html"
    message = outcome(corral("timeline", "dev", "--html", str(page)))
    assert message == (1, f"corral: {page}: No such file or directory\n")


def test_failed_timeline_leaves_no_page(tmp_path: Path) -> None:
    code, _ = outcome(
        corral("timeline", "dev", "--html", str(tmp_path / "timeline.html"), "--box-dir", str(tmp_path / "box"))
    )
    assert (code, list(tmp_path.iterdir())) == (3, [])


@pytest.mark.parametrize("seconds", ["nan", "inf", "86401", "-1"])
def test_invalid_grace_is_wrong_input(seconds: str) -> None:
    assert corral("down", "dev", "--grace", seconds).returncode == 2


@pytest.mark.parametrize("since", ["999999d", "999999d999999h"])
def test_time_before_all_clusters_is_ten_years_ago(since: str) -> None:
    assert seconds_of("--since", since) == 3650 * 86_400


def test_foreign_file_in_out_stops_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("mine")
    code, message = outcome(corral("render", "dev", "--out", str(tmp_path)))
    assert (code, "did not write, or that have changed since: cluster.json - nothing was written" in message) == (
        4,
        True,
    )
    assert [file.name for file in tmp_path.iterdir()] == ["cluster.json"]


def test_full_disk(tmp_path: Path) -> None:
    call = f'mount -t tmpfs -o size=8k none "$1" && exec {sys.executable} -m corral.cli render dev --out "$1/out"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    sentence = f"no space left on the disk of {tmp_path}/out (0 KiB free) - free some space and run the command again"
    assert outcome(done) == (1, f"corral: {tmp_path}/out: {sentence}\n")


def test_up_starts_nothing_if_machines_would_fill_the_disk(tmp_path: Path) -> None:
    up = f"{sys.executable} -m corral.cli up dev --yes"
    call = f'mount -t tmpfs -o size=24m,mode=700 none "$1" && {up} --box-dir "$1"; ls "$1"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    free = f"nothing was started: the disk of {tmp_path} has 24,576 KiB free, the box's machines need 256 MiB"
    assert (done.stdout, done.stderr.partition(" - ")[0]) == ("", f"corral: {free}")


def test_new_on_a_full_disk_leaves_no_files(tmp_path: Path) -> None:
    corral_new = f'{sys.executable} -m corral.cli new "$1/mine"'
    call = f'mount -t tmpfs -o size=16k none "$1" && {corral_new}; ls -A "$1/mine" >&2; umount "$1"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    message = outcome(done)[1]
    assert (message.count("\n"), " no space left on the disk of " in message) == (1, True)


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "dev"), ("plan", "dev", "--json")], ids=" ".join)
def test_output_that_cannot_be_written(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = corral(*arguments, stdout=full)
    assert outcome(done) == (
        1,
        "corral: output: no space left on the disk - free some space and run the command again\n",
    )


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "dev"), ("plan", "dev", "--json")], ids=" ".join)
def test_closed_stdout_reader_gets_no_error(arguments: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = corral(*arguments, stdout=writer)
    os.close(writer)
    assert outcome(done) == (1, "")


def test_closed_stderr_changes_no_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = corral("plan", "dev", cwd=tmp_path, stderr=full)
    assert done.returncode == 2


def test_plan_works_without_a_home_directory() -> None:
    assert outcome(corral("plan", "dev", environment=clean_environment(None))) == (0, "")


@pytest.mark.parametrize("command", ["status", "cleanup"])
def test_stopped_box(command: str, tmp_path: Path) -> None:
    done = corral(command, "dev", "--box", "--box-dir", str(tmp_path))
    assert outcome(done) == (3, f"corral: no box runs in {tmp_path} - start it with `corral box start`\n")


BOX_DOWN = (
    "corral: the box does not answer: its daemon has stopped or was killed\n"
    "  run `corral box start`; the box resumes from its saved state\n"
    "  then run the same command again to continue\n"
)


def with_box_at(port: int, directory: Path) -> dict[str, str]:
    """The environment of a command whose box is said to listen on this port."""
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    settings |= {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "CORRAL_BOX_DIR": str(directory)}
    return clean_environment(directory, PULUMI_BACKEND_URL=f"file://{directory}", **settings)


@pytest.mark.parametrize("command", ["status", "cleanup"])
def test_box_that_does_not_answer(command: str, tmp_path: Path) -> None:
    assert outcome(corral(command, "dev", environment=with_box_at(9, tmp_path))) == (3, BOX_DOWN)


class HangUp(BaseHTTPRequestHandler):
    """A server that ends each connection without an answer, as a box does that is killed during a call."""

    def do_POST(self) -> None:
        """Answer nothing."""

    do_GET = do_POST

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize("command", ["status", "cleanup"])
def test_box_that_hangs_up(command: str, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), HangUp) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = corral(command, "dev", environment=with_box_at(server.server_port, tmp_path))
        server.shutdown()
    assert outcome(done) == (3, BOX_DOWN)


@pytest.mark.parametrize("content", ["", '{"version": 3', "[]", "{}"])
def test_cleanup_does_not_treat_a_damaged_state_as_down(content: str, tmp_path: Path) -> None:
    file = tmp_path / ".pulumi/stacks/corral-base/dev.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    file.with_name("dev.json.bak").write_text('{"version": 3, "checkpoint": {}}')
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    assert outcome(
        corral("cleanup", "dev", "--delete", "--yes", environment=clean_environment(tmp_path, **settings))
    ) == (
        2,
        f"corral: the deployed stacks cannot be read\n  damaged: {file}\n"
        f"  to restore the state before the last operation: cp {file}.bak {file}\n",
    )


def test_no_credentials(tmp_path: Path) -> None:
    code, message = outcome(corral("status", "dev", environment=clean_environment(tmp_path)))
    assert (code, message.startswith("corral: no AWS credentials were found - sign in")) == (3, True)


def test_unreachable_account(tmp_path: Path) -> None:
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    environment = clean_environment(tmp_path, AWS_ENDPOINT_URL="http://127.0.0.1:9", **settings)
    code, message = outcome(corral("status", "dev", environment=environment))
    assert (code, message.startswith("corral: AWS cannot be reached: ")) == (3, True)


class Portal(BaseHTTPRequestHandler):
    """Answers every request with a sign-in page."""

    def answer(self) -> None:
        body = b"<html><body>Sign in to HotelWifi</body></html>"
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, format: str, *arguments: object) -> None:
        return


@pytest.mark.parametrize(
    "command",
    ["check dev --only images", "plan dev --prices live", "status dev", "timeline dev"],
    ids=lambda words: words.split()[0],
)
def test_captive_portal_is_reported(command: str, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "COLUMNS": "250"}
        done = corral(*command.split(), environment=clean_environment(tmp_path, **settings))
        server.shutdown()
    message = f"{url} is not AWS: it answers with a page for browsers (200) - check for a proxy or portal"
    assert (done.returncode, message in done.stdout + done.stderr) == (3, True)


def test_cleanup_without_a_state_backend_is_refused(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
    code, message = outcome(corral("cleanup", "dev", environment=environment))
    assert (code, "PULUMI_BACKEND_URL is not set" in message) == (2, True)


@pytest.mark.parametrize("command", ["up", "down"])
def test_missing_project_is_reported_before_the_missing_terminal(command: str, tmp_path: Path) -> None:
    code, message = outcome(corral(command, "dev", "--box", cwd=tmp_path, stdin=subprocess.DEVNULL))
    assert (code, message.partition(":")[2].startswith(" no corral project: ")) == (2, True)


@pytest.mark.parametrize("command", ["up", "down"])
def test_invalid_file_is_reported_before_the_missing_terminal(command: str, project: Path) -> None:
    (project / "stacks/cluster/Pulumi.dev.yaml").write_text("config: [")
    code, message = outcome(corral(command, "dev", cwd=project, stdin=subprocess.DEVNULL))
    assert (code, "stacks/cluster/Pulumi.dev.yaml" in message, "cannot ask for confirmation" in message) == (
        2,
        True,
        False,
    )


def test_up_without_pulumi_starts_no_box(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, **NO_PULUMI)
    code, message = outcome(corral("up", "dev", "--yes", "--box-dir", str(tmp_path / "box"), environment=environment))
    assert (code, message.partition(":")[2].startswith(" Pulumi CLI not found")) == (1, True)
    assert not (tmp_path / "box").exists()


def test_down_without_a_box_starts_none(tmp_path: Path) -> None:
    done = corral("down", "dev", "--box-dir", str(tmp_path / "box"), stdin=subprocess.DEVNULL)
    message = f"cluster dev is not up, nothing to delete: the box in {tmp_path}/box has never been used\n"
    assert (outcome(done), done.stdout) == ((0, ""), message)
    assert not (tmp_path / "box").exists()


def test_down_without_a_box_has_a_json_document(tmp_path: Path) -> None:
    done = corral("down", "dev", "--json", "--box-dir", str(tmp_path / "box"))
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"schema": "corral.down/2", "retained": [], "deleted": [], "drained": None},
    )


def test_missing_argument_is_wrong_input() -> None:
    assert corral("plan").returncode == 2


def test_internal_error_is_one_line_and_writes_a_crash_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path))
    code = exit_code_of(broken)
    file = next(tmp_path.glob("crash-*.txt"))
    message = f"corral: internal error: ZeroDivisionError: division by zero - please report it with {file}\n"
    assert (code, capsys.readouterr().err) == (1, message)
    assert "Traceback" in file.read_text()


def test_a_crash_report_does_not_follow_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for second in range(60):
        stamp = datetime.now(UTC) + timedelta(seconds=second)
        (tmp_path / f"crash-{stamp:%Y%m%dT%H%M%S}-{os.getpid()}.txt").symlink_to(tmp_path / "precious")
    sentence = write_crash_report(ZeroDivisionError())
    written = Path(sentence.rpartition(" ")[2])
    assert (stat.S_IMODE(written.stat().st_mode), (tmp_path / "precious").exists()) == (0o600, False)


def test_a_crash_report_is_not_written_where_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.setenv("CORRAL_STATE_DIR", str(shared))
    monkeypatch.setenv("TMPDIR", str(shared))
    monkeypatch.setattr(tempfile, "tempdir", None)
    written = Path(write_crash_report(ZeroDivisionError()).rpartition(" ")[2])
    assert (written.parent.parent, stat.S_IMODE(written.parent.stat().st_mode)) == (shared, 0o700)


@pytest.mark.parametrize("name", EXIT_CODES)
def test_exceptions_matched_by_name_exist(name: str) -> None:
    module, _, kind = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), kind), Exception)


def test_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert (exit_code_of(interrupted), capsys.readouterr().err) == (130, "corral: interrupted\n")


def test_interrupt_of_a_running_command_is_shown(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        command = subprocess.Popen(
            [*CORRAL, "status", "dev"],
            cwd=REPOSITORY,
            env=clean_environment(tmp_path, **settings),
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs of a shell ignore SIGINT
        )
        with server.accept()[0]:
            command.send_signal(signal.SIGINT)
            message = command.communicate()[1]
    assert (command.returncode, message.strip()) == (130, "corral: interrupted")


def test_script_and_module_have_the_same_output() -> None:
    script = Path(sys.executable).with_name("corral")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == subprocess.run([*CORRAL, "--version"], capture_output=True, text=True, check=True).stdout
