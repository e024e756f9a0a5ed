"""`corral box quota`: shows and sets the service quotas of the account in the box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from corral.box import account, control
from corral.cli.commands.box.options import Directory
from corral.cli.support.options import AsJson, examples
from corral.cli.support.output import show_json, show_lines
from corral.cli.support.target_account import resolve_box_dir

EXAMPLES = examples(
    "corral box quota", "corral box quota L-417A185B 192", "corral box quota L-C4BD4855 0 --region us-west-2"
)


def quota(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="Code of the quota, e.g. L-417A185B (default: all quotas).")
    ] = None,
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="New value of the quota.")] = None,
    region: Annotated[
        str,
        typer.Option("--region", metavar="REGION", show_default=False, help=f"AWS region (default: {account.REGION})."),
    ] = account.REGION,
    dir: Directory = None,
    json: AsJson = False,
) -> None:
    """Show the service quotas of the account in the box, or set one."""
    where = resolve_box_dir(dir)
    if code is not None and value is not None:
        control.set_quota(where, code, value, region)
    held = control.quotas(where, region, code)
    if json:
        show_json(quotas_document(held))
    else:
        show_lines(map(_line, held["quotas"]))


def quotas_document(held: Mapping[str, Any]) -> dict[str, Any]:
    """The document that `--json` prints."""
    return {"schema": "corral.quotas/1", **held}


def _line(shown: Mapping[str, Any]) -> str:
    own = "" if shown["value"] == shown["default"] else f" (AWS's default is {shown['default']:g})"
    return f"{shown['code']}  {shown['service']:<17}  {shown['value']:>7g}  {shown['name']}{own}"
