"""`corral box quota`: the quotas of the account in the box. They are kept in the box; here they get words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from corral.box import control
from corral.cli.account import box_state
from corral.cli.box_fault import Directory
from corral.cli.options import AsJson, examples
from corral.cli.screen import show_json, show_lines

EXAMPLES = examples(
    "corral box quota", "corral box quota L-417A185B 192", "corral box quota L-C4BD4855 0 --region us-west-2"
)


def quota(
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="The quota's code, such as L-417A185B.")] = None,
    value: Annotated[str | None, typer.Argument(metavar="[VALUE]", help="What the account has from now on.")] = None,
    region: Annotated[str, typer.Option("--region", metavar="REGION", help="In which region.")] = control.REGION,
    dir: Directory = None,
    json: AsJson = False,
) -> None:
    """Show the quotas of the account, or set one."""
    where = box_state(dir)
    if code is not None and value is not None:
        control.set_quota(where, code, value, region)
    held = control.quotas(where, region, code)
    if json:
        show_json(quotas_document(held))
    else:
        show_lines(map(_line, held["quotas"]))


def quotas_document(held: Mapping[str, Any]) -> dict[str, Any]:
    """What `--json` prints of quotas that the box told."""
    return {"schema": "corral.quotas/1", **held}


def _line(shown: Mapping[str, Any]) -> str:
    own = "" if shown["value"] == shown["default"] else f" (AWS's default is {shown['default']:g})"
    return f"{shown['code']}  {shown['service']:<17}  {shown['value']:>7g}  {shown['name']}{own}"
