"""`corral box fault ...`: injects faults into API calls, launches and boots, lists and clears them.

`instance_faults` has the commands that act on running instances; `corral.box.faults` implements all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.box import control
from corral.cli.commands.box import instance_faults
from corral.cli.commands.box.options import Directory
from corral.cli.support.exit_codes import name_file_in_errors
from corral.cli.support.options import AsJson, examples, new_app
from corral.cli.support.output import show_json
from corral.cli.support.target_account import resolve_box_dir

app = new_app("Inject faults: make something fail as it fails on AWS.")
EXAMPLES = examples(
    "corral box fault no-capacity --type p5.48xlarge --zone use1-az1 --duration 10m",
    "corral box fault spot-notice train-1",
    "corral box fault freeze train-2",
    "corral box fault list",
    "corral box fault clear",
)
Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Instance type (default: any).")]
Zone = Annotated[
    str | None, typer.Option("--zone", metavar="ZONE", help="Zone, e.g. us-east-1a or use1-az1 (default: any).")
]
Market = Annotated[
    str | None,
    typer.Option("--market", metavar="MARKET", help="spot, on-demand, reservation or capacity-block (default: any)."),
]
Target = Annotated[str | None, typer.Option("--target", metavar="TARGET", help="Queue or node (default: any).")]
Count = Annotated[
    str | None, typer.Option("--count", metavar="N", help="Number of times to apply (default: until cleared).")
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="TIME", help="Duration, e.g. 30s, 2m or 1h (default: until cleared)."),
]
Call = Annotated[
    str,
    typer.Option(
        metavar="CALL",
        show_default=False,
        help="EC2 action or SERVICE:ACTION; * matches any text (default: RunInstances).",
    ),
]


@app.command(
    "no-capacity",
    epilog=examples(
        "corral box fault no-capacity --type p5.48xlarge --zone use1-az1",
        "corral box fault no-capacity --market spot --duration 10m",
        "corral box fault no-capacity --target train --remaining 2",
    ),
)
def no_capacity(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    remaining: Annotated[
        str | None, typer.Option(metavar="N", help="Instances that still have capacity (default: 0).")
    ] = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Run out of capacity.

    RunInstances fails, or launches fewer instances than requested.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target}
    _add(dir, "no-capacity", {**words, "remaining": remaining, "hits_left": count, "duration": duration})


@app.command(
    "fail-after-launch",
    epilog=examples(
        "corral box fault fail-after-launch --count 1",
        "corral box fault fail-after-launch --target train --reason spot --after 5s",
    ),
)
def fail_after_launch(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    after: Annotated[
        str, typer.Option(metavar="TIME", show_default=False, help="Time in state pending (default: 1s).")
    ] = "1s",
    reason: Annotated[
        str,
        typer.Option(metavar="REASON", show_default=False, help="capacity, spot or volume (default: capacity)."),
    ] = "capacity",
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Terminate instances after launch.

    EC2 accepts the launch, shows the instances as pending, then terminates them. --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "fail-after-launch", {**words, "after": after, "reason": reason})


@app.command(
    epilog=examples(
        "corral box fault throttle --count 3",
        "corral box fault throttle --call 'Describe*' --duration 30s",
        "corral box fault throttle --call '*' --duration 10s",
    )
)
def throttle(
    call: Call = "RunInstances",
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Throttle API calls.

    They fail with RequestLimitExceeded, HTTP status 503. --type, --zone, --market and --target apply to launches only.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "throttle", {**words, "call": call})


@app.command(
    epilog=examples(
        "corral box fault refuse --code VcpuLimitExceeded --market spot",
        "corral box fault refuse --call TerminateInstances --code UnauthorizedOperation --duration 2m",
        "corral box fault refuse --call route53:ChangeResourceRecordSets --code Throttling --count 2",
    )
)
def refuse(
    code: Annotated[str, typer.Option(metavar="CODE", help="Error code, e.g. VcpuLimitExceeded.")],
    call: Call = "RunInstances",
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="Error message (default: AWS's).")] = None,
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Refuse API calls with an error, such as a quota.

    --type, --zone, --market and --target apply to launches only.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "refuse", {**words, "code": code, "call": call, "message": message})


@app.command("slow-boot", epilog=examples("corral box fault slow-boot --after 90s --target train-3 --count 1"))
def slow_boot(
    after: Annotated[str, typer.Option(metavar="TIME", help="Delay before user data runs.")],
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Delay the boot of new instances.

    They start, but their user data runs only after the delay. --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "slow-boot", {**words, "after": after})


@app.command("hang-boot", epilog=examples("corral box fault hang-boot --target train --count 2"))
def hang_boot(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Hang the boot of new instances.

    They start, but their user data never runs. --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "hang-boot", words)


@app.command("mirror-error", epilog=examples("corral box fault mirror-error --target train --count 2"))
def mirror_error(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Let the package mirror answer new instances with errors.

    Virtual machines only (--machines vm), for as long as they run. --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "mirror-error", words)


@app.command(
    "delayed-visibility",
    epilog=examples(
        "corral box fault delayed-visibility --after 20s",
        "corral box fault delayed-visibility --target train --count 1",
    ),
)
def delayed_visibility(
    after: Annotated[
        str, typer.Option(metavar="TIME", show_default=False, help="Delay until EC2 shows them (default: 10s).")
    ] = "10s",
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Delay the visibility of new instances.

    Until then EC2 lists neither them nor their tags, and calls that name them fail with InvalidInstanceID.NotFound.
    --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "delayed-visibility", {**words, "after": after})


@app.command(
    "slow-termination",
    epilog=examples(
        "corral box fault slow-termination --after 8m --market capacity-block",
        "corral box fault slow-termination --type p5.48xlarge",
    ),
)
def slow_termination(
    after: Annotated[
        str, typer.Option(metavar="TIME", show_default=False, help="Time in state shutting-down (default: 5m).")
    ] = "5m",
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    target: Target = None,
    count: Count = None,
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Delay the end of instances that stop or terminate.

    Meanwhile they use the capacity of their reservation or block. --count counts instances.
    """
    words = {"type": type, "zone": zone, "market": market, "target": target, "hits_left": count, "duration": duration}
    _add(dir, "slow-termination", {**words, "after": after})


@app.command("request-tags-only", epilog=examples("corral box fault request-tags-only"))
def request_tags_only(duration: Duration = None, dir: Directory = None) -> None:
    """Replace the tags of launch templates by those of requests.

    AWS does not document whether they are joined, as they are otherwise.
    """
    _add(dir, "request-tags-only", {"duration": duration})


@app.command("stale-tags", epilog=examples("corral box fault stale-tags --duration 1h"))
def stale_tags(duration: Duration = None, dir: Directory = None) -> None:
    """List deleted resources in the tagging API.

    GetResources goes on listing what it has listed since the fault began.
    """
    _add(dir, "stale-tags", {"duration": duration})


@app.command(
    "new-image",
    epilog=examples("corral box fault new-image", "corral box fault new-image --snapshot-gib 120"),
)
def new_image(
    snapshot_gib: Annotated[
        str | None, typer.Option(metavar="GIB", help="Size of the root snapshots (default: as before).")
    ] = None,
    dir: Directory = None,
) -> None:
    """Publish newer machine images.

    The public parameters name them; `corral upgrade image` moves a cluster to them. Cannot be cleared.
    """
    size = {"snapshot_gib": snapshot_gib} if snapshot_gib is not None else {}
    done = control.inject_fault(resolve_box_dir(dir), "new-image", **size)
    typer.echo(f"newer images in {', '.join(done['regions'])}")


@app.command("disabled-region", epilog=examples("corral box fault disabled-region ap-east-1"))
def disabled_region(
    region: Annotated[str, typer.Argument(metavar="REGION", help="Region that accounts have to enable.")],
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Disable a region in the account.

    Its services do not accept the account's credentials, as long as nobody has enabled the region.
    """
    _add(dir, "disabled-region", {"region": region, "duration": duration})


@app.command(
    "service-control-policy",
    epilog=examples("corral box fault service-control-policy deny-p5.json"),
)
def service_control_policy(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Policy as JSON, as for aws organizations.")],
    duration: Duration = None,
    dir: Directory = None,
) -> None:
    """Limit all callers by a policy of an AWS organization.

    A policy with denials only limits what FullAWSAccess allows; one that allows actions replaces it. Each policy must
    allow a call.
    """
    with name_file_in_errors(file):
        text = file.read_text(encoding="utf-8")
    _add(dir, "service-control-policy", {"name": file.stem, "policy": text, "duration": duration})


app.registered_commands += instance_faults.app.registered_commands  # in the order of the help page


@app.command("list", epilog=examples("corral box fault list", "corral box fault list --json"))
def show(dir: Directory = None, json: AsJson = False) -> None:
    """List the active faults and what remains of each."""
    held = control.faults(resolve_box_dir(dir))
    if json:
        faults = [{name: value for name, value in one.items() if name != "line"} for one in held]
        show_json({"schema": "corral.faults/2", "faults": faults})
    else:
        typer.echo("\n".join(str(one["line"]) for one in held) if held else "no active faults")


@app.command(epilog=examples("corral box fault clear", "corral box fault clear no-capacity"))
def clear(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", show_default=False, help="Kind of fault (default: all).")
    ] = "all",
    dir: Directory = None,
) -> None:
    """Clear the active faults.

    Does not undo what has happened to instances.
    """
    count = control.clear_faults(resolve_box_dir(dir), kind)
    typer.echo(f"{count} fault{'' if count == 1 else 's'} cleared" if count else "no active faults")


def _add(dir: Path | None, kind: str, words: dict[str, Any]) -> None:
    given = {name: str(word) for name, word in words.items() if word is not None}
    added = control.inject_fault(resolve_box_dir(dir), kind, **given)
    typer.echo(f"active: {added['line']}")
