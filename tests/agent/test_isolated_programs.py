"""What root runs of the agent, started in a user's directory: it runs none of the modules that the user left there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from corral.agent.config.file_placements import PROGRAMS, placements_for
from corral.model.enums import Role
from corral.render import agent_bundle, user_data
from render.plans import boot_facts, dev

# Modules that the programs import, or that Python imports by itself.
PLANTED = ("argparse.py", "contextlib.py", "json.py", "logging.py", "sitecustomize.py", "corral/__init__.py")
JOB_ROLE = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
FETCH = "import argparse, contextlib, json, logging\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A machine with the agent, and a directory with the modules of a user, which name themselves in the file `ran`."""
    for name in PLANTED:
        file = tmp_path / "user" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"with open({str(tmp_path / 'ran')!r}, 'a') as ran:\n    ran.write({f'{name} '!r})\n")
    for directory in ("bin", "dev", "var/log", "opt/corral/agent"):
        (tmp_path / directory).mkdir(parents=True)
    subprocess.run(["tar", "-xz", "-C", str(tmp_path / "opt/corral/agent")], input=agent_bundle(), check=True)
    (tmp_path / "opt/corral/fetch.py").write_text(FETCH)
    for name in ("poweroff", "sleep"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\n")
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "ran").touch()
    return tmp_path


def program(name: str) -> str:
    """The text of a program, which then only prints how it is used."""
    placed = {one.path: one.content.decode() for one in placements_for({}, Role.COMPUTE, None)}
    return re.sub(r"(python3 .*?)( \|\| exit)?$", r"\1 --help\2", placed[f"/opt/corral/bin/{name}"], flags=re.MULTILINE)


def boot_script(role: Role) -> str:
    """The text of the boot script, whose agent then only prints how it is used."""
    files = yaml.safe_load(user_data(dev(), role, boot_facts()))["write_files"]
    text = next(one["content"] for one in files if one["path"] == "/opt/corral/boot.sh")
    return str(text).replace(f" --role {role.value}", " --help")


SCRIPTS = {
    **{name: program(name) for name, text in PROGRAMS.items() if "python3" in text},
    **{f"boot {role.value}": boot_script(role) for role in Role},
}


def run(home: Path, script: str) -> str:
    """What a script printed, or its boot logged: started in the user's directory, which is on Python's path too."""
    for path in ("/opt/corral", "/run/corral", "/var/log", "/var/lib", "/dev/console"):
        script = script.replace(path, f"{home}{path}")
    done = subprocess.run(
        ["sh", "-c", script, "sh", "prolog"],
        cwd=home / "user",
        env={"PATH": f"{home}/bin:/usr/bin:/bin", "PYTHONPATH": f"{home}/user", "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return done.stdout + "".join(file.read_text() for file in (home / "var/log").iterdir())


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_module_of_the_working_directory_runs(home: Path, name: str) -> None:
    printed = run(home, SCRIPTS[name])
    assert ("usage: " in printed, (home / "ran").read_text()) == (True, "")


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_isolation_one_runs(home: Path, name: str) -> None:
    """Or the test above would see nothing."""
    run(home, SCRIPTS[name].replace(" -I ", " "))
    assert (home / "ran").read_text() != ""


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_python_is_isolated(name: str) -> None:
    assert re.findall(r"python3(?! -I )", SCRIPTS[name]) == []


def test_a_command_of_root_over_ssh_does_not_use_the_job_role() -> None:
    """sshd gives each session the job role, root's too, and its policy denies what the agent reads."""
    shown = PROGRAMS["corral-agent"].replace("exec /usr/bin/python3 -I", "exec printenv #")
    done = subprocess.run(
        ["sh", "-c", f"{shown}\n"],
        env={"PATH": "/usr/bin:/bin", JOB_ROLE: "http://job"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, JOB_ROLE in done.stdout) == (0, False)
