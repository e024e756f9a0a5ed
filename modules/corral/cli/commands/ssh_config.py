"""`corral ssh-config`: prints the ssh configuration for login nodes, their load balancer, or the head."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from corral.catalog.loader.suggestions import suggestion
from corral.cli.support.exit_codes import ExitCode, Failure
from corral.cli.support.head_lookup import find_ways
from corral.cli.support.host_keys import common_host_key
from corral.cli.support.options import BoxDirectory, Environment, InBox, Machine, Project, examples, new_app
from corral.cli.support.project import find_environment
from corral.cli.support.target_account import targeted_box
from corral.engine.pulumi.projects import box_image
from corral.inventory.resources import AwsResource
from corral.inventory.scan import open_session
from corral.model.cluster import LOGIN
from corral.plan.cluster import plan_image
from corral.render.access import balancer_entry, session_proxy, ssh_config_entry
from corral.spec.yaml.stack_files import read_environment

# A machine has bash, and perhaps nothing like netcat. Whichever side ends first ends the other: ssh waits for the end
# of its command's output, and a refused ssh leaves its sshd waiting for two minutes.
TO_SSHD = "exec 3<>/dev/tcp/127.0.0.1/22; cat <&3 & cat <&0 >&3 & wait -n; kill $(jobs -pr) 2>/dev/null"
app = new_app()
User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Person in access (default: the image's user)."),
]


@app.command(
    epilog=examples("corral ssh-config dev >> ~/.ssh/config", "corral ssh-config dev --user ada", "ssh dev-head")
)
def ssh_config(
    env: Environment,
    user: User = None,
    to: Machine = None,
    project: Project = None,
    box: InBox = False,
    box_dir: BoxDirectory = None,
) -> None:
    """Print an ~/.ssh/config entry for each login node and for their load balancer, or for the head without any.

    `ssh ENV-login-1` or `ssh ENV-head` then connects through Session Manager. An entry names the current
    instance: print it again after that is replaced. Requires your key in access.ssh_keys of the spec, or in
    access.users with --user, and the AWS CLI with its session-manager-plugin (see `corral doctor`). The box needs
    neither.

    `ssh ENV-login` connects through the load balancer and needs only the entry, which has its host key: you can hand
    it to somebody without AWS credentials.
    """
    directory = find_environment(project, env)
    spec = read_environment(directory, env)
    people = spec.cluster.access.users
    if user and user not in people and not spec.cluster.access.directory:
        hint = suggestion(user, people) if people else "declare them there"
        raise Failure(f"access.users of {env} has no {user!r} - {hint}", ExitCode.WRONG_INPUT)
    _, gates, balancer = find_ways(env, project, to, in_box=box, box_directory=box_dir)
    target = targeted_box(box_dir)
    profile = box_image(os.environ) if target else None
    login = user or plan_image(spec.cluster.image, profile).default_user
    proxies = {
        name: _box_proxy(env, name, directory.absolute(), target.dir) if target else session_proxy(spec.base.region)
        for name in gates
    }
    entries = [
        ssh_config_entry(f"{spec.cluster.name}-{name}", login, machine.id, proxies[name])
        for name, machine in gates.items()
    ]
    if balancer:
        host = f"{spec.cluster.name}-{LOGIN}"
        key = common_host_key(env, {machine.id: proxies[name] for name, machine in gates.items()}, host)
        address, proxy = _way_to(balancer, spec.base.region, target.dir if target else None)
        entries.append(balancer_entry(host, address, user, key, proxy))
    typer.echo("".join(entries), nl=False)


def _way_to(balancer: AwsResource, region: str, box_dir: Path | None) -> tuple[str, str | None]:
    """The address of the load balancer; in the box one of its private ones, with the command that reaches it."""
    if box_dir is None:
        return balancer.address or "", None
    described = {"Name": "description", "Values": [f"ELB {balancer.id.partition(':loadbalancer/')[2]}"]}
    ec2 = open_session(region, quick=True).client("ec2")
    interface = ec2.describe_network_interfaces(Filters=[described])["NetworkInterfaces"][0]
    words = (str(box_dir), interface["VpcId"], interface["PrivateIpAddress"], "22")
    command = shlex.join([sys.executable, "-P", "-m", "corral.box.dial", *words])
    return interface["PrivateIpAddress"], command.replace("%", "%%")


def _box_proxy(env: str, name: str, project: Path, box_dir: Path) -> str:
    """The command that connects ssh to the sshd of a machine, as Session Manager's plugin would on AWS."""
    chosen = ("--to", name, "--project", str(project), "--box-dir", str(box_dir))
    # `-P`: ssh starts it in any directory, such as a clone of somebody's that has a package `corral`.
    program = (sys.executable, "-P", "-m", "corral.cli")
    command = shlex.join([*program, "connect", env, *chosen, "--", "bash", "-c", TO_SSHD])
    return command.replace("%", "%%")  # ssh's own sign of a variable
