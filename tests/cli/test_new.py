"""`corral new`: files, output, errors, and prompts on a terminal."""

from __future__ import annotations

import os
import pty
import resource
import subprocess
import termios
from pathlib import Path

import pytest
from calls import CORRAL, HOME, REPOSITORY, clean_environment, corral, on_terminal


def run_on_terminal(directory: Path, *answers: str) -> tuple[int, str]:
    """The exit code and output of `corral new DIR` on a terminal with these lines as input."""
    master, slave = pty.openpty()
    silent = termios.tcgetattr(slave)
    silent[3] &= ~termios.ECHO  # input before the first prompt would be echoed before it
    termios.tcsetattr(slave, termios.TCSANOW, silent)
    os.write(master, "".join(answers).encode())
    with subprocess.Popen(
        [*CORRAL, "new", str(directory)],
        cwd=REPOSITORY,
        env=clean_environment(HOME, TERM="xterm-256color"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    ) as command:
        os.close(slave)
        shown = b"".join(iter(lambda: _read(master), b""))
    os.close(master)
    return command.returncode, shown.decode().replace("\r\n", "\n")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # the last writer has ended
        return b""


def line_of(directory: Path, file: str, beginning: str) -> str:
    """The first line of this stack file with this start."""
    lines = (directory / "stacks" / file).read_text().splitlines()
    return next(line.strip() for line in lines if line.strip().startswith(beginning))


def test_it_writes_both_projects_with_one_environment(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*") if file.is_file()) == [
        "stacks/base.schema.json",
        "stacks/base/Pulumi.dev.yaml",
        "stacks/base/Pulumi.yaml",
        "stacks/base/__main__.py",
        "stacks/cluster.schema.json",
        "stacks/cluster/Pulumi.dev.yaml",
        "stacks/cluster/Pulumi.yaml",
        "stacks/cluster/__main__.py",
    ]


def test_environment_is_the_template_with_the_line_for_editors(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    written = (tmp_path / "stacks/cluster/Pulumi.dev.yaml").read_text()
    assert written == (REPOSITORY / "stacks/cluster/Pulumi.dev.yaml").read_text()


def test_it_shows_what_it_wrote_and_what_is_to_be_done(tmp_path: Path) -> None:
    done = corral("new", str(tmp_path), "--like", "train", "--name", "run1", "--region", "eu-west-1")
    there = "ap-northeast-1, ap-northeast-2, ap-south-1, ap-southeast-2, ap-southeast-3, ca-central-1, eu-north-1"
    assert (done.returncode, done.stdout) == (
        0,
        f"""\
wrote {tmp_path}/stacks/base/Pulumi.run1.yaml
wrote {tmp_path}/stacks/cluster/Pulumi.run1.yaml
- queue train: p5.48xlarge is not offered in eu-west-1 - available in {there}, eu-west-2, sa-east-1, us-east-1,\
 us-east-2, us-west-1, us-west-2
- queue train: set the id of your capacity-block in euw1-az1 instead of cr-0123456789abcdef0
- queue train: set the id of your reservation in euw1-az1 instead of cr-0fedcba9876543210
- set your own bucket instead of s3://corral-example-corpus/tokens
- set your own bucket instead of s3://corral-example-results
- set your own email address instead of ml-team@example.com
next: cd {tmp_path}, edit stacks/*/Pulumi.run1.yaml, corral plan run1
""",
    )


@pytest.mark.parametrize("like", ["dev", "train", "mixed"])
def test_new_project_can_be_planned(like: str, tmp_path: Path) -> None:
    corral("new", str(tmp_path), "--like", like, "--name", "mine", "--region", "us-east-2", "--max-nodes", "3")
    done = corral("plan", "mine", "--project", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_catalog_of_the_directory_is_used(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text("[instances.x")
    done = corral("new", str(tmp_path))
    assert (done.returncode, done.stderr.startswith("catalog.toml: is not TOML: ")) == (2, True)


def test_all_errors_are_reported_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    wrong = ("--like", "tran", "--name", "My", "--region", "us-east", "--instance-type", "p5.48", "--bucket", "mine")
    done = corral("new", str(tmp_path / "mine"), *wrong)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (
        2,
        """\
corral: --like: unknown template 'tran' - did you mean 'train'?
corral: --name: 'My' is not a valid name - use lowercase letters, digits and hyphens, a letter first, no hyphen last
corral: --region: 'us-east' is not in the catalog - did you mean 'us-east-1' or 'us-east-2'?
corral: --instance-type: 'p5.48' is not in the catalog - did you mean 'p5.48xlarge'?
corral: --bucket: 'mine' is not an S3 URL - write it like s3://bucket/prefix
""",
        [],
    )


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


def test_stacks_directory_without_a_project_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "stacks").mkdir()
    done = corral("new", str(tmp_path), "--name", "other")
    assert (done.returncode, done.stderr) == (
        4,
        f"corral: {tmp_path}/stacks exists without base/Pulumi.yaml and cluster/Pulumi.yaml: nothing was"
        " written - choose another directory\n",
    )


def test_adding_an_environment_changes_no_other_file(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    (tmp_path / "stacks/base.schema.json").write_text("{}")
    (tmp_path / "stacks/cluster/__main__.py").write_text("mine()\n")
    before = contents(tmp_path)
    corral("new", str(tmp_path), "--like", "train", "--name", "other")
    after = contents(tmp_path)
    assert (sorted({*after} - {*before}), {name: after[name] for name in before} == before) == (
        ["stacks/base/Pulumi.other.yaml", "stacks/cluster/Pulumi.other.yaml"],
        True,
    )


def test_added_environment_can_be_planned(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    corral("new", str(tmp_path), "--name", "other")
    done = corral("plan", "other", "--project", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


def test_existing_environment_is_left_alone(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    before = contents(tmp_path)
    done = corral("new", str(tmp_path), "--region", "us-west-2")
    assert (done.returncode, done.stderr, contents(tmp_path) == before) == (
        4,
        f"corral: {tmp_path}/stacks/base/Pulumi.dev.yaml and {tmp_path}/stacks/cluster/Pulumi.dev.yaml already"
        " exist: nothing was written - `--name NAME` adds an environment with another name\n",
        True,
    )


def test_existing_base_is_left_alone(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    (tmp_path / "stacks/cluster/Pulumi.dev.yaml").unlink()
    done = corral("new", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        4,
        f"corral: {tmp_path}/stacks/base/Pulumi.dev.yaml already exists: nothing was written - `--name NAME` adds an"
        " environment with another name\n",
    )


def test_failed_addition_leaves_no_file(tmp_path: Path) -> None:
    corral("new", str(tmp_path))
    before = contents(tmp_path)
    most = len(before["stacks/base/Pulumi.dev.yaml"]) + 20  # bytes: too few for the cluster's file, as on a full disk
    done = corral(
        "new",
        *(str(tmp_path), "--name", "other"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
    )
    assert (done.returncode, contents(tmp_path) == before) == (1, True)


def test_terminal_gets_prompts(tmp_path: Path) -> None:
    code, shown = run_on_terminal(tmp_path, "lab\n", "eu-west-2\n", "\n", "2\n", "s3://lab\n")
    assert (code, [question for question in shown.split(": ") if question.endswith("]")]) == (
        0,
        [
            "name [dev]",
            "region [us-east-1]",
            "instance type of queue train [p4d.24xlarge]",
            "maximum nodes [4]",
            "data [s3://corral-example-corpus/tokens]",
        ],
    )


def test_answers_are_written(tmp_path: Path) -> None:
    run_on_terminal(tmp_path, "lab\n", "eu-west-2\n", "p5.48xlarge\n", "2\n", "s3://lab\n")
    cluster = "cluster/Pulumi.lab.yaml"
    assert [line_of(tmp_path, cluster, one) for one in ("aws:region", "- name: train", "nodes", "s3")] == [
        "aws:region: eu-west-2",
        "- name: train",
        "nodes: {min: 0, max: 2}",
        "s3: s3://lab",
    ]


def test_enter_accepts_the_default(tmp_path: Path) -> None:
    run_on_terminal(tmp_path, *"\n\n\n\n\n")
    written = (tmp_path / "stacks/cluster/Pulumi.dev.yaml").read_text()
    assert written == (REPOSITORY / "stacks/cluster/Pulumi.dev.yaml").read_text()


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            ("My Lab\n", "lab\n", *"\n\n\n\n"),
            "'My Lab' is not a valid name - use lowercase letters, digits and hyphens",
        ),
        (
            ("\n", "us-east\n", *"\n\n\n\n"),
            "'us-east' is not in the catalog - did you mean 'us-east-1' or 'us-east-2'?",
        ),
        ((*"\n\n\n", "many\n", "3\n", "\n"), "'many' is not a number - write digits"),
    ],
)
def test_invalid_answer_is_prompted_for_again(answers: tuple[str, ...], message: str, tmp_path: Path) -> None:
    code, shown = run_on_terminal(tmp_path, *answers)
    assert (code, message in shown) == (0, True)


def test_end_of_input_writes_nothing(tmp_path: Path) -> None:
    code, shown = run_on_terminal(tmp_path, "lab\n", "\x04")
    assert (code, shown.splitlines()[-1], list(tmp_path.iterdir())) == (
        4,
        "corral: cancelled: nothing was written",
        [],
    )


def test_yes_skips_prompts_on_a_terminal(tmp_path: Path) -> None:
    assert "[us-east-1]" not in on_terminal("new", str(tmp_path), "--yes")
