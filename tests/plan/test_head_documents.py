"""The Systems Manager documents of heads: the arguments that they allow, and who a session runs as."""

from __future__ import annotations

import re

import pytest

from corral.agent.__main__ import parser
from corral.plan.iam.head_documents import CONTROL, DOCUMENTS, QUERY, ROOT_SHELL, SHELL, SSH, HeadDocument


def allows(document: HeadDocument, arguments: str) -> bool:
    """True if the document's pattern matches, as RE2 does: `$` is the end of the text."""
    pattern = document.content["parameters"]["arguments"]["allowedPattern"]
    return "\n" not in arguments and re.search(pattern, arguments) is not None


@pytest.mark.parametrize(
    ("document", "arguments"),
    [
        (QUERY, "status"),
        (QUERY, "events --since=0 --start=0"),
        (QUERY, "history --since=1795300800 --start=250"),
        (QUERY, "job-evidence 17"),
        (QUERY, "job-evidence 17_3 --start=96"),
        (CONTROL, "apply --json"),
        (CONTROL, "drain-all --grace=120"),
        (CONTROL, "drain-all --grace=0.5 --now"),
    ],
)
def test_a_document_allows_what_its_commands_send(document: HeadDocument, arguments: str) -> None:
    assert allows(document, arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        "status",
        "events --since=0 --start=0",
        "history --since=1 --start=2",
        "job-evidence 17_3 --start=96",
        "apply --json",
        "drain-all --grace=9 --now",
    ],
)
def test_the_agent_has_the_commands_that_documents_allow(arguments: str) -> None:
    words = arguments.split()
    assert parser(words).parse_args(words).command == words[0]


@pytest.mark.parametrize("document", [QUERY, CONTROL], ids=["query", "control"])
@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "boot",
        "backup",
        "status --state-dir=/etc",
        "status; id",
        "job-evidence",
        "job-evidence 17; id",
        "job-evidence --start=0",
        "read-job /home/ada",
        "status $(id)",
        "events --since=0 & id",
        "events --since={{ssm:key}}",
        "xstatus",
        "statusx",
        "apply --json --records=/tmp",
        "status'",
    ],
)
def test_a_document_allows_nothing_else(document: HeadDocument, arguments: str) -> None:
    assert not allows(document, arguments)


@pytest.mark.parametrize("arguments", ["apply --json", "drain-all --grace=0 --now"])
def test_a_query_changes_nothing(arguments: str) -> None:
    assert not allows(QUERY, arguments)


def test_a_program_is_the_agent_with_the_arguments() -> None:
    (line,) = QUERY.content["mainSteps"][0]["inputs"]["runCommand"]
    assert "out=$(/opt/corral/bin/corral-agent {{ arguments }} 2>&3 " in line


def test_a_shell_belongs_to_the_user_of_the_callers_tag_alone() -> None:
    preferences, shell = SHELL.content["inputs"], SHELL.content["properties"]["linux"]
    assert (preferences["runAsEnabled"], preferences["runAsDefaultUser"], shell["runAsElevated"]) == (True, "", False)


def test_only_one_document_opens_a_root_shell() -> None:
    elevated = [one for one in DOCUMENTS if one.content.get("properties", {}).get("linux", {}).get("runAsElevated")]
    assert elevated == [ROOT_SHELL]


def test_ssh_reaches_the_port_of_sshd_alone() -> None:
    assert (SSH.content["properties"], "parameters" in SSH.content) == ({"portNumber": "22"}, False)


def test_no_name_is_reserved_by_aws() -> None:
    assert [one.name for one in DOCUMENTS if re.match("aws|amazon|amzn|ssm", one.name, re.IGNORECASE)] == []
