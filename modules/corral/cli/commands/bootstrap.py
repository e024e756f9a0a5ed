"""`corral bootstrap`: prepares an AWS account and prints what to set; or prints the IAM policies of its users."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.options import AsJson, BoxDirectory, InBox, Yes, examples, new_app
from corral.cli.support.output import confirm, show_json, waiting
from corral.cli.support.target_account import resolve_box_dir, use_account
from corral.plan.iam.access_policies import ACCESS
from corral.plan.iam.deployer_policy import POLICIES
from corral.plan.iam.head_documents import RUN_AS_TAG

if TYPE_CHECKING:
    from corral.engine.bootstrap.bootstrap import StepResult
    from corral.engine.bootstrap.step import BootstrapTarget
    from corral.inventory.scan import Session

app = new_app()
Region = Annotated[
    str | None, typer.Option("--region", metavar="REGION", help="AWS region (default: that of your AWS settings).")
]
Name = Annotated[
    str,
    typer.Option(
        "--name",
        metavar="NAME",
        show_default=False,
        help="Prefix of the bucket's name, and alias of the key (default: corral-state).",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be created, and create nothing.")]
PrintPolicy = Annotated[
    bool, typer.Option("--print-policy", help="Print the IAM policies of deployers, readers, users and admins.")
]
Account = Annotated[
    str | None,
    typer.Option(
        "--account", metavar="NUMBER", help="Account number for --print-policy (default: that of your credentials)."
    ),
]
ACCOUNT_DIGITS = 12
LIST_BUCKET = "s3:ListBucket"  # S3 answers the same for this missing permission and for a bucket of another account
LONGEST_NAME = 63 - len("-123456789012-ap-southeast-2")  # of a bucket. Source: S3 User Guide, bucket naming rules


@app.command(
    epilog=examples(
        "corral bootstrap --dry-run", "corral bootstrap --region us-east-1", "corral bootstrap --print-policy"
    )
)
def bootstrap(
    region: Region = None,
    name: Name = "corral-state",
    box: InBox = False,
    box_dir: BoxDirectory = None,
    dry_run: DryRun = False,
    print_policy: PrintPolicy = False,
    account: Account = None,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Prepare an AWS account for deployments.

    Creates a bucket for Pulumi's state, a KMS key for its secrets, the service-linked roles, IAM policies for
    deployers, readers, users and admins of clusters, and the Systems Manager documents by which they reach a head. It
    attaches the policies to nobody and prints the commands that do. Existing resources stay unchanged, so you can run
    it again at any time. If a permission is missing, it completes the other steps and lists all missing permissions.
    The key costs 1 USD a month; the rest is free.
    """
    _require_name(name)
    _require_account(account)
    _use_account(in_box=box, box_directory=box_dir)
    where = _region(region)
    if print_policy:
        return _print_policy(where, name, account)
    return _prepare(where, name, dry_run=dry_run, yes=yes, json=json)


def _prepare(region: str, name: str, *, dry_run: bool, yes: bool, json: bool) -> int:
    from corral.engine.bootstrap.bootstrap import StepOutcome, bootstrap_steps, inspect_steps
    from corral.engine.bootstrap.step import BootstrapTarget
    from corral.inventory.scan import open_session
    from corral.inventory.untagged import account_of

    session = open_session(region)
    target = BootstrapTarget(account=account_of(session), region=region, name=name)
    with waiting(f"looking at account {target.account} in {region}"):
        inspected = inspect_steps(session, target, bootstrap_steps())
    missing = [one for one in inspected if one.outcome is StepOutcome.MISSING]
    if dry_run or not missing:
        done = inspected
    else:
        if not yes:
            _require_yes(target, inspected, json=json)
        done = _create_missing(session, target, inspected)
    if json:
        show_json(bootstrap_document(target, done))
    else:
        _show_rest(target, done, inspected if missing and not (dry_run or yes) else ())
    return _code(done)


def _create_missing(
    session: Session, target: BootstrapTarget, inspected: Sequence[StepResult]
) -> tuple[StepResult, ...]:
    from corral.engine.bootstrap.bootstrap import create_missing

    with waiting(f"working on account {target.account}"):
        return tuple(create_missing(session, target, inspected))


def _show_rest(target: BootstrapTarget, done: Sequence[StepResult], known: Sequence[StepResult]) -> None:
    """Prints the results that were not shown before the prompt, then what to set."""
    from corral.engine.bootstrap.bootstrap import StepOutcome

    _show_all(target, [one for one in done if one not in known])
    if all(one.exists or one.outcome is StepOutcome.MISSING for one in done):
        typer.echo("\n" + _what_to_set(target))


def _code(done: Sequence[StepResult]) -> int:
    """The exit code. Raises Failure where permissions are missing, with all of them."""
    from corral.engine.bootstrap.bootstrap import StepOutcome, missing_permissions

    if lacking := missing_permissions(done):
        hint = "request them, or have an administrator run this command"
        if LIST_BUCKET in lacking:
            hint += "; if they are an administrator's, another account owns the bucket: choose another name with --name"
        raise Failure(f"the credentials lack {', '.join(lacking)} - {hint}", ExitCode.CANNOT_START)
    failed = [one for one in done if one.outcome in (StepOutcome.FAILED, StepOutcome.SKIPPED)]
    return ExitCode.FAILED if failed else ExitCode.DONE


def _show_all(target: BootstrapTarget, done: Sequence[StepResult]) -> None:
    for one in done:
        indent = "  " if one.step.needs else ""
        why = f": {one.reason}" if one.reason else ""
        typer.echo(f"{one.outcome.value:<10} {indent}{one.step.title(target)}{why}")


def bootstrap_document(target: BootstrapTarget, done: Sequence[StepResult]) -> dict[str, Any]:
    """The document that `--json` prints."""
    return {
        "schema": "corral.bootstrap/2",
        "account": target.account,
        "region": target.region,
        "bucket": target.bucket,
        "key": target.alias,
        "backend_url": target.backend_url,
        "secrets_provider": target.secrets_provider,
        "policies": [target.policy_arn(topic) for topic in POLICIES],
        "access": {topic: target.policy_arn(topic) for topic in ACCESS},
        "steps": [
            {"name": one.step.key, "outcome": one.outcome.value.replace(" ", "_"), "reason": one.reason or None}
            for one in done
        ],
    }


def _what_to_set(target: BootstrapTarget) -> str:
    return "\n".join(
        (
            "Set in your shell or your CI:",
            f"  export PULUMI_BACKEND_URL='{target.backend_url}'",
            "Add to the top of stacks/base/Pulumi.ENV.yaml and stacks/cluster/Pulumi.ENV.yaml:",
            f"  secretsprovider: {target.secrets_provider}",
            "`corral up` then encrypts the stacks' secrets with this key and needs no passphrase. Pulumi adds a line",
            "`encryptedkey:` to each file: commit it.",
            f"To let a user without administrator rights run corral in {target.region}, attach all policies:",
            *(_attach(target, topic) for topic in POLICIES),
            "To let a user read the status of clusters, or also open shells, or also be root there, attach one of:",
            *(_attach(target, topic) for topic in ACCESS),
            f"A shell needs the name of its user on the head as the tag {RUN_AS_TAG} of the IAM user or role:",
            f"  aws iam tag-user --user-name NAME --tags Key={RUN_AS_TAG},Value=USER",
            "For a role: `aws iam attach-role-policy --role-name NAME --policy-arn ...`, and `aws iam tag-role`.",
        )
    )


def _attach(target: BootstrapTarget, topic: str) -> str:
    return f"  aws iam attach-user-policy --user-name NAME --policy-arn {target.policy_arn(topic)}"


def _print_policy(region: str, name: str, account: str | None) -> int:
    from corral.engine.bootstrap.step import BootstrapTarget

    if account is None:
        from corral.inventory.scan import open_session
        from corral.inventory.untagged import account_of

        account = account_of(open_session(region))
    target = BootstrapTarget(account=account, region=region, name=name)
    show_json({policy.name: policy.document for policy in target.policies.values()})
    return ExitCode.DONE


def _require_yes(target: BootstrapTarget, inspected: Sequence[StepResult], *, json: bool) -> None:
    """Shows what would be created and prompts for confirmation. Raises Failure or EngineError without one."""
    from corral.engine.bootstrap.bootstrap import StepOutcome

    if json or not sys.stdin.isatty():
        from corral.engine.lifecycle.up import no_terminal_error

        raise no_terminal_error()
    _show_all(target, inspected)
    number = sum(one.outcome is StepOutcome.MISSING for one in inspected)
    if not confirm(f"Create these {number} in account {target.account}, {target.region}?"):
        raise Failure("nothing was created")


def _require_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", name) or len(name) > LONGEST_NAME:
        raise Failure(
            f"--name {name}: invalid prefix of a bucket's name - use at most {LONGEST_NAME} lower-case letters, digits"
            " and hyphens",
            ExitCode.WRONG_INPUT,
        )


def _require_account(account: str | None) -> None:
    if account is not None and not (len(account) == ACCOUNT_DIGITS and account.isascii() and account.isdigit()):
        raise Failure(f"--account {account}: an account number has {ACCOUNT_DIGITS} digits", ExitCode.WRONG_INPUT)


def _use_account(*, in_box: bool, box_directory: Path | None) -> None:
    """Points this process at the box if --box is given, and starts the box if it does not run."""
    if in_box or box_directory is not None:
        from corral.box import client

        box = resolve_box_dir(box_directory)
        if client.status(box).state != "running":
            typer.echo(f"starting the box in {box}", err=True)
            client.start(box)
    use_account(in_box=in_box, box_directory=box_directory)


def _region(chosen: str | None) -> str:
    from corral.catalog.aws.regions import find_region
    from corral.inventory.scan import open_session

    region = chosen or os.environ.get("AWS_REGION") or open_session(None).region_name
    if not region:
        raise Failure("no AWS region is configured - add --region or set AWS_REGION", ExitCode.WRONG_INPUT)
    return find_region(region).name
