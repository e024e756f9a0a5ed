"""`corral box fault ...`: what goes wrong on AWS, on request. What a fault does is in the box; here it gets words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corral.box import control
from corral.cli.account import box_state
from corral.cli.options import AsJson, examples, new_app
from corral.cli.screen import show_json

app = new_app("What goes wrong on AWS, on request.")
EXAMPLES = examples(
    "corral box fault no-capacity --type p5.48xlarge --zone use1-az1 --for 10m",
    "corral box fault spot-notice train-1",
    "corral box fault hang train-2",
    "corral box fault list",
    "corral box fault clear",
)
Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir", "--box-dir", metavar="DIR", help="The state directory; else CORRAL_BOX_DIR, else one per user."
    ),
]
Which = Annotated[str, typer.Argument(metavar="WHICH", help="A node, a queue, or an instance id.")]
Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only instances of this type.")]
Zone = Annotated[str | None, typer.Option("--zone", metavar="ZONE", help="Only in this zone: us-east-1a or use1-az1.")]
Market = Annotated[
    str | None,
    typer.Option("--market", metavar="MARKET", help="Only on spot, on-demand, reservation or capacity-block."),
]
Of = Annotated[str | None, typer.Option("--of", metavar="WHICH", help="Only for this queue or node.")]
Count = Annotated[str | None, typer.Option("--count", metavar="N", help="So often; else until it is cleared.")]
Lasts = Annotated[str | None, typer.Option("--for", metavar="TIME", help="So long: 30s, 2m, 1h; else until cleared.")]


@app.command(
    "no-capacity",
    epilog=examples(
        "corral box fault no-capacity --type p5.48xlarge --zone use1-az1",
        "corral box fault no-capacity --market spot --for 10m",
        "corral box fault no-capacity --of train --room 2",
    ),
)
def no_capacity(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    room: Annotated[str | None, typer.Option(metavar="N", help="There is room for N more instances.")] = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Have no capacity: RunInstances is refused, or gives fewer instances than it might."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "room": room, "left": count, "for": lasts}
    _begin(dir, "no-capacity", words)


@app.command(
    "dies-after-launch",
    epilog=examples(
        "corral box fault dies-after-launch --count 1",
        "corral box fault dies-after-launch --of train --reason spot --after 5s",
    ),
)
def dies_after_launch(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    after: Annotated[str, typer.Option(metavar="TIME", help="How long it is pending.")] = "1s",
    reason: Annotated[str, typer.Option(metavar="REASON", help="capacity, spot or volume.")] = "capacity",
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Let instances die: they are accepted, stay pending, and are terminated. --count counts instances."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "dies-after-launch", {**words, "after": after, "reason": reason})


@app.command(
    epilog=examples(
        "corral box fault throttle --count 3",
        "corral box fault throttle --call 'Describe*' --for 30s",
        "corral box fault throttle --call '*' --for 10s",
    )
)
def throttle(
    call: Annotated[str, typer.Option(metavar="CALL", help="An action of EC2, or SERVICE:ACTION.")] = "RunInstances",
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Throttle calls: RequestLimitExceeded with HTTP status 503. --type to --of mean launches alone."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "throttle", {**words, "call": call})


@app.command(
    epilog=examples(
        "corral box fault refuse --code VcpuLimitExceeded --market spot",
        "corral box fault refuse --call TerminateInstances --code UnauthorizedOperation --for 2m",
        "corral box fault refuse --call route53:ChangeResourceRecordSets --code Throttling --count 2",
    )
)
def refuse(
    code: Annotated[str, typer.Option(metavar="CODE", help="The error that AWS gives.")],
    call: Annotated[str, typer.Option(metavar="CALL", help="An action of EC2, or SERVICE:ACTION.")] = "RunInstances",
    message: Annotated[str | None, typer.Option(metavar="TEXT", help="Its text; else AWS's own.")] = None,
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Refuse calls with an error, such as a quota or a permission. --type to --of mean launches alone."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "refuse", {**words, "code": code, "call": call, "message": message})


@app.command("slow-boot", epilog=examples("corral box fault slow-boot --after 90s --of train-3 --count 1"))
def slow_boot(
    after: Annotated[str, typer.Option(metavar="TIME", help="How long the user data wait.")],
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Boot new machines slowly: they start, and their user data wait."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "slow-boot", {**words, "after": after})


@app.command("hang-boot", epilog=examples("corral box fault hang-boot --of train --count 2"))
def hang_boot(
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Hang new machines in their boot: they start, and their user data never run."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "hang-boot", words)


@app.command(epilog=examples("corral box fault late --after 20s", "corral box fault late --of train --count 1"))
def late(
    after: Annotated[str, typer.Option(metavar="TIME", help="How long EC2 does not show them.")] = "10s",
    type: Type = None,
    zone: Zone = None,
    market: Market = None,
    of: Of = None,
    count: Count = None,
    lasts: Lasts = None,
    dir: Directory = None,
) -> None:
    """Show new instances and their tags late; until then InvalidInstanceID.NotFound for who names one."""
    words = {"type": type, "zone": zone, "market": market, "of": of, "left": count, "for": lasts}
    _begin(dir, "late", {**words, "after": after})


@app.command(
    "spot-notice",
    epilog=examples("corral box fault spot-notice train-1", "corral box fault spot-notice train --after 30s"),
)
def spot_notice(
    which: Which,
    after: Annotated[str, typer.Option(metavar="TIME", help="How long after the notice the machine ends.")] = "2m",
    dir: Directory = None,
) -> None:
    """Take spot machines back: they get the notice now, and end when its time is over."""
    _do(dir, "spot-notice", f"notice given, the end comes in {after}", of=which, after=after)


@app.command(epilog=examples("corral box fault rebalance train-1"))
def rebalance(which: Which, dir: Directory = None) -> None:
    """Recommend a rebalance: spot machines learn that they may be taken back soon."""
    _do(dir, "rebalance", "a rebalance is recommended", of=which)


@app.command(epilog=examples("corral box fault kill train-1"))
def kill(which: Which, dir: Directory = None) -> None:
    """Kill machines at once, as when their hosts break."""
    _do(dir, "kill", "killed", of=which)


@app.command(epilog=examples("corral box fault hang train-1", "corral box fault clear hang"))
def hang(which: Which, dir: Directory = None) -> None:
    """Hang machines: their processes stand still, and EC2 shows them running."""
    _do(dir, "hang", "every process stands still", of=which)


@app.command(epilog=examples("corral box fault partition train-1", "corral box fault clear partition"))
def partition(which: Which, dir: Directory = None) -> None:
    """Cut machines off: they go on, without a network."""
    _do(dir, "partition", "cut off from the network", of=which)


@app.command("kill-head", epilog=examples("corral box fault kill-head", "corral box fault kill-head dev"))
def kill_head(
    env: Annotated[str, typer.Argument(metavar="[ENV]", help="The environment; else whatever head runs.")] = "",
    dir: Directory = None,
) -> None:
    """Kill a head at once, as when its host breaks."""
    _do(dir, "kill-head", "killed", of=env)


@app.command(
    "block-end", epilog=examples("corral box fault block-end train", "corral box fault block-end train-1 --in 1m")
)
def block_end(
    which: Which,
    after: Annotated[str, typer.Option("--in", metavar="TIME", help="When AWS begins to end its instances.")] = "10m",
    dir: Directory = None,
) -> None:
    """End a capacity block early: its EndDate moves, and what runs in it ends half an hour before that."""
    _do(dir, "block-end", f"its block ends its instances in {after}", of=which, after=after)


@app.command(epilog=examples("corral box fault clear", "corral box fault clear no-capacity"))
def clear(
    kind: Annotated[str, typer.Argument(metavar="[KIND]", help="Only faults of this kind.")] = "all",
    dir: Directory = None,
) -> None:
    """End the faults in force. What has happened to instances stays."""
    count = control.clear_faults(box_state(dir), kind)
    typer.echo(f"{count} fault{'' if count == 1 else 's'} cleared" if count else "no fault was in force")


@app.command("list", epilog=examples("corral box fault list", "corral box fault list --json"))
def show(dir: Directory = None, json: AsJson = False) -> None:
    """List the faults in force, with what is left of each."""
    held = control.faults(box_state(dir))
    if json:
        faults = [{name: value for name, value in one.items() if name != "line"} for one in held]
        show_json({"schema": "corral.faults/1", "faults": faults})
    else:
        typer.echo("\n".join(str(one["line"]) for one in held) if held else "no fault is in force")


def _begin(dir: Path | None, kind: str, words: dict[str, Any]) -> None:
    given = {name: str(word) for name, word in words.items() if word is not None}
    made = control.make_fault(box_state(dir), kind, **given)
    typer.echo(f"in force: {made['line']}")


def _do(dir: Path | None, kind: str, done: str, **words: str) -> None:
    made = control.make_fault(box_state(dir), kind, **words)
    typer.echo(f"{', '.join(made['instances'])}: {done}")
