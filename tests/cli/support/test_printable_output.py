"""What corral prints has no sequence for terminals but its own, whoever wrote the text."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from calls import REPOSITORY, corral
from rich.text import Text

from corral.cli.support.exit_codes import print_error
from corral.cli.support.output import show, show_json, show_lines
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.status import find_status
from corral.report.account.status_view import status_view
from worked_example import RoundPrices

HOSTILE = "q\x1b]0;owned\x9c\x9b2J\u202e"
SHOWN = r"q\x1b]0;owned\x9c\x9b2J\u202e"


def _table(text: str) -> None:
    tags = {"corral:base": "dev", "corral:cluster": "dev", "corral:queue": text, "corral:offer": text}
    node = AwsResource(kind=ResourceKind.INSTANCE, id="i-1", tags=tags, state="running", type="m7i.large")
    status = find_status([node], "dev", "dev", "us-east-1", None, RoundPrices())
    show(status_view(status, datetime.now(UTC)))


@pytest.mark.parametrize(
    "prints", [lambda text: show([Text(text)]), _table, lambda text: show_lines([text]), print_error]
)
def test_text_of_others_is_printable(prints: Callable[[str], None], capsys: pytest.CaptureFixture[str]) -> None:
    prints(HOSTILE)
    out, err = capsys.readouterr()
    assert (SHOWN in out + err, (out + err).replace("\n", "").isprintable()) == (True, True)


def test_the_lines_of_an_error_stay_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("a: wrong\nb: \x1b[1mwrong", prefix="")
    assert capsys.readouterr().err == "a: wrong\nb: \\x1b[1mwrong\n"


def test_a_document_is_printable_and_keeps_its_texts(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"queue": [HOSTILE, "\x7f \x85 é 東 \U000e0001 \udcff"]}
    show_json(document)
    out = capsys.readouterr().out
    assert (out.replace("\n", "").isprintable(), "é 東" in out, json.loads(out)) == (True, True, document)


@pytest.mark.parametrize("env", ["trian", "dev"])
def test_what_a_clone_names_its_files_is_printable(tmp_path: Path, env: str) -> None:
    shutil.copytree(REPOSITORY / "stacks", tmp_path / "stacks")
    (tmp_path / "stacks/cluster/Pulumi.train\x1b[2J.yaml").write_text("config: {}\n")
    (tmp_path / "stacks/cluster/Pulumi.dev.yaml").write_text(
        'config: {aws:region: us-east-1, corral-cluster:spec: {"a\\x9b2J": 1}}\n'
    )
    done = corral("plan", env, cwd=tmp_path)
    assert (done.returncode, done.stderr.replace("\n", "").isprintable()) == (2, True)
