"""The commands of `corral box fault` that act at once on running instances. `corral.box.faults` implements them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corral.box import control
from corral.cli.commands.box.options import Directory
from corral.cli.support.options import examples, new_app
from corral.cli.support.target_account import resolve_box_dir

app = new_app()
Which = Annotated[str, typer.Argument(metavar="TARGET", help="Node, queue or instance id.")]


@app.command(
    "spot-notice",
    epilog=examples("corral box fault spot-notice train-1", "corral box fault spot-notice train --after 30s"),
)
def spot_notice(
    target: Which,
    after: Annotated[
        str, typer.Option(metavar="TIME", show_default=False, help="Time from notice to termination (default: 2m).")
    ] = "2m",
    dir: Directory = None,
) -> None:
    """Interrupt spot instances.

    They get the interruption notice now and terminate after the notice time.
    """
    _apply(dir, "spot-notice", f"interruption notice given, terminates in {after}", target=target, after=after)


@app.command(epilog=examples("corral box fault rebalance train-1"))
def rebalance(target: Which, dir: Directory = None) -> None:
    """Send spot instances a rebalance recommendation."""
    _apply(dir, "rebalance", "rebalance recommended", target=target)


@app.command(epilog=examples("corral box fault kill train-1"))
def kill(target: Which, dir: Directory = None) -> None:
    """Kill instances at once, as a host failure does."""
    _apply(dir, "kill", "killed", target=target)


@app.command(epilog=examples("corral box fault freeze train-1", "corral box fault clear freeze"))
def freeze(target: Which, dir: Directory = None) -> None:
    """Freeze all processes of instances.

    EC2 still shows the instances as running.
    """
    _apply(dir, "freeze", "all processes frozen", target=target)


@app.command(
    "network-cut", epilog=examples("corral box fault network-cut train-1", "corral box fault clear network-cut")
)
def network_cut(target: Which, dir: Directory = None) -> None:
    """Cut instances off from the network.

    They keep running.
    """
    _apply(dir, "network-cut", "cut off from the network", target=target)


@app.command("kill-head", epilog=examples("corral box fault kill-head", "corral box fault kill-head dev"))
def kill_head(
    env: Annotated[str, typer.Argument(metavar="ENV", show_default=False, help="Environment (default: any).")] = "",
    dir: Directory = None,
) -> None:
    """Kill a head at once, as a host failure does."""
    _apply(dir, "kill-head", "killed", target=env)


@app.command(
    "block-end", epilog=examples("corral box fault block-end train", "corral box fault block-end train-1 --in 1m")
)
def block_end(
    target: Which,
    after: Annotated[
        str,
        typer.Option(
            "--in", metavar="TIME", show_default=False, help="Time until AWS terminates the instances (default: 10m)."
        ),
    ] = "10m",
    dir: Directory = None,
) -> None:
    """End a capacity block early.

    Its EndDate moves, and AWS terminates its instances half an hour before that.
    """
    _apply(dir, "block-end", f"its capacity block terminates instances in {after}", target=target, after=after)


def _apply(dir: Path | None, kind: str, effect: str, **words: str) -> None:
    applied = control.inject_fault(resolve_box_dir(dir), kind, **words)
    typer.echo(f"{', '.join(applied['instances'])}: {effect}")
