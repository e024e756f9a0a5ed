"""`corral bootstrap`: prepares an account, once, and says what to set; or prints what a deployer may do there."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corral.cli.account import box_state, mean_account
from corral.cli.failure import ExitCode, Failure
from corral.cli.options import AsJson, BoxDirectory, InBox, Yes, examples, new_app
from corral.cli.screen import ask, show_json, waiting

if TYPE_CHECKING:
    from corral.engine.bootstrap import Done
    from corral.engine.bootstrap_steps import Wanted
    from corral.inventory.account import Session

app = new_app()
Region = Annotated[str | None, typer.Option("--region", metavar="REGION", help="Else the one of your AWS settings.")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="How the bucket's name begins, and the key's alias.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be made.")]
PrintPolicy = Annotated[bool, typer.Option("--print-policy", help="Print what a deployer needs to be allowed.")]
Account = Annotated[
    str | None, typer.Option("--account", metavar="NUMBER", help="For --print-policy: do not ask AWS whose it is.")
]
ACCOUNT_DIGITS = 12
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
    """Prepare an account, once: a bucket for Pulumi's states, a key for their secrets, roles of services, policies.

    The policies are for those who deploy; it attaches them to nobody, and says how one does. What is there is left as
    it is, so it can be run again at any time. What the credentials may not do is listed with the missing permissions,
    all at once; the rest is done. Nothing of it costs more than 1 US dollar a month (the key).
    """
    _require_name(name)
    _require_account(account)
    _mean(in_box=box, box_directory=box_dir)
    where = _region(region)
    if print_policy:
        return _print_policy(where, name, account)
    return _prepare(where, name, dry_run=dry_run, yes=yes, json=json)


def _prepare(region: str, name: str, *, dry_run: bool, yes: bool, json: bool) -> int:
    from corral.engine.bootstrap import Outcome, identity, look
    from corral.engine.bootstrap_steps import Wanted, steps
    from corral.inventory.account import open_session

    session = open_session(region)
    wanted = Wanted(account=identity(session), region=region, name=name)
    with waiting(f"looking at account {wanted.account} in {region}"):
        looked = look(session, wanted, steps())
    missing = [one for one in looked if one.outcome is Outcome.MISSING]
    if dry_run or not missing:
        done = looked
    else:
        if not yes:
            _require_yes(wanted, looked, json=json)
        done = _make(session, wanted, looked)
    if json:
        show_json(_document(wanted, done))
    else:
        _tell(wanted, done, looked if missing and not (dry_run or yes) else ())
    return _code(done)


def _make(session: Session, wanted: Wanted, looked: Sequence[Done]) -> tuple[Done, ...]:
    from corral.engine.bootstrap import make

    with waiting(f"working on account {wanted.account}"):
        return tuple(make(session, wanted, looked))


def _tell(wanted: Wanted, done: Sequence[Done], known: Sequence[Done]) -> None:
    """Shows what is not known yet, and how to go on."""
    from corral.engine.bootstrap import Outcome

    _show_all(wanted, [one for one in done if one not in known])
    if all(one.is_good or one.outcome is Outcome.MISSING for one in done):
        typer.echo("\n" + _what_to_set(wanted))


def _code(done: Sequence[Done]) -> int:
    """The exit code. Raises Failure where permissions are missing, with all of them."""
    from corral.engine.bootstrap import Outcome, missing_permissions

    if lacking := missing_permissions(done):
        hint = "ask for them, or let somebody who has them run this"
        raise Failure(f"these credentials lack {', '.join(lacking)} - {hint}", ExitCode.CANNOT_START)
    failed = [one for one in done if one.outcome in (Outcome.FAILED, Outcome.NOT_TRIED)]
    return ExitCode.FAILED if failed else ExitCode.DONE


def _show_all(wanted: Wanted, done: Sequence[Done]) -> None:
    for one in done:
        indent = "  " if one.step.needs else ""
        why = f": {one.why}" if one.why else ""
        typer.echo(f"{one.outcome.value:<10} {indent}{one.step.title(wanted)}{why}")


def _document(wanted: Wanted, done: Sequence[Done]) -> dict[str, Any]:
    return {
        "schema": "corral.bootstrap/1",
        "account": wanted.account,
        "region": wanted.region,
        "bucket": wanted.bucket,
        "key": wanted.alias,
        "backend_url": wanted.backend_url,
        "secrets_provider": wanted.secrets_provider,
        "policies": _policy_arns(wanted),
        "steps": [
            {"name": one.step.key, "outcome": one.outcome.value.replace(" ", "_"), "why": one.why or None}
            for one in done
        ],
    }


def _what_to_set(wanted: Wanted) -> str:
    return "\n".join(
        (
            "In your shell, or in your CI's settings:",
            f"  export PULUMI_BACKEND_URL='{wanted.backend_url}'",
            "At the top of stacks/base/Pulumi.ENV.yaml and of stacks/cluster/Pulumi.ENV.yaml:",
            f"  secretsprovider: {wanted.secrets_provider}",
            "`corral up` then makes the stacks with it; no passphrase is needed. Pulumi adds a line `encryptedkey:`",
            "to each of the two files: keep it in git.",
            f"To let somebody who is no administrator run corral in {wanted.region}, all of these:",
            *(f"  aws iam attach-user-policy --user-name NAME --policy-arn {arn}" for arn in _policy_arns(wanted)),
            "and to let a role of a pipeline: `aws iam attach-role-policy --role-name NAME --policy-arn ...`.",
        )
    )


def _policy_arns(wanted: Wanted) -> list[str]:
    return [wanted.policy_arn(topic) for topic in wanted.policies]


def _print_policy(region: str, name: str, account: str | None) -> int:
    from corral.engine.bootstrap_steps import Wanted

    if account is None:
        from corral.engine.bootstrap import identity
        from corral.inventory.account import open_session

        account = identity(open_session(region))
    wanted = Wanted(account=account, region=region, name=name)
    show_json({policy.name: policy.document for policy in wanted.policies.values()})
    return ExitCode.DONE


def _require_yes(wanted: Wanted, looked: Sequence[Done], *, json: bool) -> None:
    """Shows what would be made and asks. Raises where nobody can be asked, or does not want it."""
    from corral.engine.bootstrap import Outcome

    if json or not sys.stdin.isatty():
        from corral.engine.up import refuse_unasked

        raise refuse_unasked()
    _show_all(wanted, looked)
    number = sum(one.outcome is Outcome.MISSING for one in looked)
    if not ask(f"Make these {number} in account {wanted.account}, {wanted.region}?"):
        raise Failure("nothing was made")


def _require_name(name: str) -> None:
    import re

    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*[a-z0-9]", name) or len(name) > LONGEST_NAME:
        raise Failure(
            f"--name {name}: small letters, digits and hyphens, {LONGEST_NAME} characters at most - it begins the name"
            " of a bucket",
            ExitCode.WRONG_INPUT,
        )


def _require_account(account: str | None) -> None:
    if account is not None and not (len(account) == ACCOUNT_DIGITS and account.isascii() and account.isdigit()):
        raise Failure(f"--account {account}: an account has {ACCOUNT_DIGITS} digits", ExitCode.WRONG_INPUT)


def _mean(*, in_box: bool, box_directory: Path | None) -> None:
    """Points this process at the box where that is meant; one that does not run is started."""
    if in_box or box_directory is not None:
        from corral.box import control

        box = box_state(box_directory)
        if control.status(box).state != "running":
            typer.echo(f"starting the box in {box}", err=True)
            control.start(box, machines=True)
    mean_account(in_box=in_box, box_directory=box_directory)


def _region(chosen: str | None) -> str:
    from corral.catalog.regions import find_region
    from corral.inventory.account import open_session

    region = chosen or os.environ.get("AWS_REGION") or open_session(None).region_name
    if not region:
        raise Failure("no region is known - name one with --region, or set AWS_REGION", ExitCode.WRONG_INPUT)
    return find_region(region).name
