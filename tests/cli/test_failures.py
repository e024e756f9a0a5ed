"""What users see when something is wrong: a sentence, a documented exit code, never a traceback."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml
from calls import CORRAL, REPOSITORY, clean_environment, corral

from corral.cli.failure import SPOKEN, exit_code_of
from corral.cli.options import seconds_of

Ended = tuple[int, str]
DECLARED = f"{REPOSITORY}/stacks/cluster declares dev, mixed, train"
UNKNOWN = f"corral: there is no environment 'deb': {DECLARED} - did you mean 'dev'?\n"
NO_PULUMI = {"PATH": "/usr/bin:/bin"}


def ended(done: subprocess.CompletedProcess[str]) -> Ended:
    """Exit code and stderr, which must hold no traceback."""
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of one's own, with the shipped stacks."""
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "project" / "stacks")
    return tmp_path / "project"


def test_outside_of_a_project(tmp_path: Path) -> None:
    assert ended(corral("plan", "dev", cwd=tmp_path)) == (
        2,
        f"corral: no corral project here: {tmp_path} and the directories above it hold no stacks/cluster"
        " - go to one, or name it with --project DIR\n",
    )


def test_named_directory_that_is_no_project(tmp_path: Path) -> None:
    assert ended(corral("plan", "dev", "--project", str(tmp_path))) == (
        2,
        f"corral: {tmp_path} is no corral project: it holds no stacks/cluster - name the directory above stacks/\n",
    )


def test_current_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    call = f"rmdir {gone}; exec {sys.executable} -m corral.cli plan dev"
    done = subprocess.run(
        ["sh", "-c", call], cwd=gone, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended(done) == (
        2,
        "corral: the current directory cannot be used: No such file or directory"
        " - go to another one, or name the project with --project DIR\n",
    )


def test_unknown_environment_is_told_with_the_nearest() -> None:
    assert ended(corral("plan", "deb")) == (2, UNKNOWN)


@pytest.mark.parametrize("command", ["render", "up", "down", "status"])
def test_unknown_environment_is_told_alike_by_all(command: str, tmp_path: Path) -> None:
    more = ("--out", str(tmp_path / "out")) if command == "render" else ()
    assert ended(corral(command, "deb", *more)) == (2, UNKNOWN)


def test_all_mistakes_of_a_spec_are_told_at_once(project: Path) -> None:
    file = project / "stacks/cluster/Pulumi.dev.yaml"
    content = yaml.safe_load(file.read_text())
    spec = content["config"]["corral-cluster:spec"]
    spec["queues"][0]["instance_type"] = "p4d.24xlargo"
    spec["head"]["instance_type"] = "m7i.2xlarg"
    spec["lifetim"] = {}
    file.write_text(yaml.safe_dump(content))
    code, told = ended(corral("plan", "dev", cwd=project))
    paths = sorted(line.split(": ")[1] for line in told.splitlines())
    assert (code, paths) == (2, ["head.instance_type", "lifetim", "queues[0].instance_type"])


def test_spec_that_is_not_yaml(project: Path) -> None:
    (project / "stacks/cluster/Pulumi.dev.yaml").write_text("config: [")
    code, told = ended(corral("plan", "dev", cwd=project))
    assert (code, told.split(": ")[0]) == (2, "stacks/cluster/Pulumi.dev.yaml")


def test_out_that_is_a_file(tmp_path: Path) -> None:
    file = tmp_path / "out"
    file.touch()
    told = f"corral: --out {file}: {file} is a file - name a directory\n"
    assert ended(corral("render", "dev", "--out", str(file))) == (2, told)


def test_out_below_a_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    told = f"corral: --out {file / 'a' / 'b'}: {file} is a file - name a directory\n"
    assert ended(corral("render", "dev", "--out", str(file / "a" / "b"))) == (2, told)


def test_out_that_cannot_be_written() -> None:
    code, told = ended(corral("render", "dev", "--out", "/sys/corral"))
    assert (code, told.startswith("corral: /sys/corral: ")) == (1, True)


def test_page_of_a_timeline_that_cannot_be_written_is_told_before_anything_is_asked(tmp_path: Path) -> None:
    page = tmp_path / "missing" / "life.html"
    told = ended(corral("timeline", "dev", "--html", str(page)))
    assert told == (1, f"corral: {page}: No such file or directory\n")


def test_page_of_a_timeline_that_fails_later_leaves_no_file(tmp_path: Path) -> None:
    code, _ = ended(
        corral("timeline", "dev", "--html", str(tmp_path / "life.html"), "--box-dir", str(tmp_path / "box"))
    )
    assert (code, list(tmp_path.iterdir())) == (3, [])


@pytest.mark.parametrize("seconds", ["nan", "inf", "86401", "-1"])
def test_grace_that_is_no_time_is_a_wrong_input(seconds: str) -> None:
    assert corral("down", "dev", "--grace", seconds).returncode == 2


@pytest.mark.parametrize("since", ["999999d", "999999d999999h"])
def test_time_before_all_clusters_is_ten_years_ago(since: str) -> None:
    assert seconds_of("--since", since) == 3650 * 86_400


def test_foreign_file_in_the_way_stops_before_anything_is_written(tmp_path: Path) -> None:
    (tmp_path / "cluster.json").write_text("mine")
    code, told = ended(corral("render", "dev", "--out", str(tmp_path)))
    assert (code, "did not write, or that were changed since: cluster.json - nothing was written" in told) == (4, True)
    assert [file.name for file in tmp_path.iterdir()] == ["cluster.json"]


def test_disk_that_is_full(tmp_path: Path) -> None:
    call = f'mount -t tmpfs -o size=8k none "$1" && exec {sys.executable} -m corral.cli render dev --out "$1/out"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    sentence = f"no space is left on the disk of {tmp_path}/out (0 KiB are free) - free some and run the command again"
    assert ended(done) == (1, f"corral: {tmp_path}/out: {sentence}\n")


def test_up_begins_nothing_where_machines_would_fill_the_disk(tmp_path: Path) -> None:
    call = (
        f'mount -t tmpfs -o size=24m none "$1" && {sys.executable} -m corral.cli up dev --yes --box-dir "$1"; ls "$1"'
    )
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    free = f"nothing was started: 24,576 KiB are free on the disk of {tmp_path}, the box's machines need 256 MiB"
    assert (done.stdout, done.stderr.partition(" - ")[0]) == ("", f"corral: {free}")


def test_new_on_a_full_disk_leaves_nothing_that_stops_the_next(tmp_path: Path) -> None:
    corral_new = f'{sys.executable} -m corral.cli new "$1/mine"'
    call = f'mount -t tmpfs -o size=16k none "$1" && {corral_new}; ls -A "$1/mine" >&2; umount "$1"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", call, "sh", str(tmp_path)]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=clean_environment(tmp_path), capture_output=True, text=True, check=False
    )
    told = ended(done)[1]
    assert (told.count("\n"), " no space is left on the disk of " in told) == (1, True)


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "dev"), ("plan", "dev", "--json")], ids=" ".join)
def test_output_that_cannot_be_written(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = corral(*arguments, stdout=full)
    assert ended(done) == (1, "corral: output: no space is left on the disk - free some and run the command again\n")


@pytest.mark.parametrize("arguments", [("--help",), ("plan", "dev"), ("plan", "dev", "--json")], ids=" ".join)
def test_reader_that_went_away_is_not_talked_to(arguments: tuple[str, ...]) -> None:
    ear, mouth = os.pipe()
    os.close(ear)
    done = corral(*arguments, stdout=mouth)
    os.close(mouth)
    assert ended(done) == (1, "")


def test_closed_stderr_changes_no_exit_code(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = corral("plan", "dev", cwd=tmp_path, stderr=full)
    assert done.returncode == 2


def test_no_home_is_no_obstacle_to_planning() -> None:
    assert ended(corral("plan", "dev", environment=clean_environment(None))) == (0, "")


@pytest.mark.parametrize("command", ["status", "sweep"])
def test_box_that_does_not_run(command: str, tmp_path: Path) -> None:
    done = corral(command, "dev", "--box", "--box-dir", str(tmp_path))
    assert ended(done) == (3, f"corral: no box runs in {tmp_path} - start it with `corral box start`\n")


@pytest.mark.parametrize("command", ["status", "sweep"])
def test_box_that_stops_while_it_is_asked(command: str, tmp_path: Path) -> None:
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    settings |= {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "CORRAL_BOX_DIR": str(tmp_path)}
    environment = clean_environment(tmp_path, PULUMI_BACKEND_URL=f"file://{tmp_path}", **settings)
    assert ended(corral(command, "dev", environment=environment)) == (
        3,
        "corral: the box does not answer: its daemon has stopped or was killed\n"
        "  `corral box start` starts it; it continues from the state that it saved\n"
        "  then run the same command again: it continues where this one stopped\n",
    )


@pytest.mark.parametrize("content", ["", '{"version": 3', "[]", "{}"])
def test_sweep_takes_no_damaged_state_for_a_stack_that_is_down(content: str, tmp_path: Path) -> None:
    file = tmp_path / ".pulumi/stacks/corral-base/dev.json"
    file.parent.mkdir(parents=True)
    file.write_text(content)
    file.with_name("dev.json.bak").write_text('{"version": 3, "checkpoint": {}}')
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "PULUMI_BACKEND_URL": f"file://{tmp_path}"}
    assert ended(corral("sweep", "dev", "--delete", "--yes", environment=clean_environment(tmp_path, **settings))) == (
        2,
        f"corral: which stacks live cannot be read\n  damaged: {file}\n"
        f"  whole, but for the last thing that was done: cp {file}.bak {file}\n",
    )


def test_no_credentials(tmp_path: Path) -> None:
    code, told = ended(corral("status", "dev", environment=clean_environment(tmp_path)))
    assert (code, told.startswith("corral: no AWS credentials were found - sign in")) == (3, True)


def test_account_that_cannot_be_reached(tmp_path: Path) -> None:
    settings = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_MAX_ATTEMPTS": "1"}
    environment = clean_environment(tmp_path, AWS_ENDPOINT_URL="http://127.0.0.1:9", **settings)
    code, told = ended(corral("status", "dev", environment=environment))
    assert (code, told.startswith("corral: AWS cannot be reached: ")) == (3, True)


class Portal(BaseHTTPRequestHandler):
    """Answers everybody with a page to sign in."""

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
def test_a_portal_in_between_is_told(command: str, tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Portal) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        settings = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "COLUMNS": "250"}
        done = corral(*command.split(), environment=clean_environment(tmp_path, **settings))
        server.shutdown()
    told = f"what answers at {url} is not AWS: it answers with a page for browsers (200) - a proxy or portal"
    assert (done.returncode, told in done.stdout + done.stderr) == (3, True)


def test_sweep_does_not_guess_which_stacks_live(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
    code, told = ended(corral("sweep", "dev", environment=environment))
    assert (code, "PULUMI_BACKEND_URL is not set" in told) == (2, True)


@pytest.mark.parametrize("command", ["up", "down"])
def test_outside_of_a_project_is_told_before_that_nobody_can_be_asked(command: str, tmp_path: Path) -> None:
    code, told = ended(corral(command, "dev", "--box", cwd=tmp_path, stdin=subprocess.DEVNULL))
    assert (code, told.partition(":")[2].startswith(" no corral project here: ")) == (2, True)


@pytest.mark.parametrize("command", ["up", "down"])
def test_file_that_cannot_be_understood_is_told_before_that_nobody_can_be_asked(command: str, project: Path) -> None:
    (project / "stacks/cluster/Pulumi.dev.yaml").write_text("config: [")
    code, told = ended(corral(command, "dev", cwd=project, stdin=subprocess.DEVNULL))
    assert (code, "stacks/cluster/Pulumi.dev.yaml" in told, "nobody can be asked" in told) == (2, True, False)


def test_up_without_pulumi_starts_no_box(tmp_path: Path) -> None:
    environment = clean_environment(tmp_path, **NO_PULUMI)
    code, told = ended(corral("up", "dev", "--yes", "--box-dir", str(tmp_path / "box"), environment=environment))
    assert (code, told.partition(":")[2].startswith(" no Pulumi CLI was found")) == (1, True)
    assert not (tmp_path / "box").exists()


def test_down_where_no_box_ever_was_says_so_and_starts_none(tmp_path: Path) -> None:
    done = corral("down", "dev", "--box-dir", str(tmp_path / "box"), stdin=subprocess.DEVNULL)
    told = f"cluster dev: is not up, nothing to take down: nothing was ever made in the box in {tmp_path}/box\n"
    assert (ended(done), done.stdout) == ((0, ""), told)
    assert not (tmp_path / "box").exists()


def test_down_where_no_box_ever_was_is_a_document_too(tmp_path: Path) -> None:
    done = corral("down", "dev", "--json", "--box-dir", str(tmp_path / "box"))
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"schema": "corral.down/1", "kept": [], "erased": [], "drained": None},
    )


def test_missing_argument_is_wrong_input() -> None:
    assert corral("plan").returncode == 2


def test_unforeseen_error_is_one_line_and_its_traceback_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> int:
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setenv("CORRAL_STATE_DIR", str(tmp_path))
    code = exit_code_of(broken)
    file = next(tmp_path.glob("crash-*.txt"))
    told = f"corral: this is a mistake in corral: ZeroDivisionError: division by zero - details are in {file}; "
    assert (code, capsys.readouterr().err) == (1, f"{told}please report it with that file\n")
    assert "Traceback" in file.read_text()


@pytest.mark.parametrize("name", SPOKEN)
def test_exception_that_is_known_by_name_exists(name: str) -> None:
    module, _, kind = name.rpartition(".")
    assert issubclass(getattr(importlib.import_module(module), kind), Exception)


def test_interrupt_is_130(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert (exit_code_of(interrupted), capsys.readouterr().err) == (130, "corral: interrupted\n")


def test_interrupt_of_a_command_at_work_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        settings = {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
        command = subprocess.Popen(
            [*CORRAL, "status", "dev"],
            cwd=REPOSITORY,
            env=clean_environment(tmp_path, **settings),
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored below a shell's background jobs
        )
        with server.accept()[0]:
            command.send_signal(signal.SIGINT)
            told = command.communicate()[1]
    assert (command.returncode, told.strip()) == (130, "corral: interrupted")


def test_commands_say_the_same_by_script_and_by_module() -> None:
    script = Path(sys.executable).with_name("corral")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == subprocess.run([*CORRAL, "--version"], capture_output=True, text=True, check=True).stdout
