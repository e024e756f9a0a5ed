"""Set up `ssh train-17` between the cluster's machines: client settings, and a key for each user.

sshd is the image's own. It may start before its settings are installed, so `Host.reload_sshd` reloads them.
Pure: the plan in, placements out. `render.access` has the keys that open the head from outside.
"""

from collections.abc import Iterable

from corral.agent.file_install import Placement
from corral.model.cluster import ClusterPlan

# A node's next machine has the same name and another host key. In a VPC no machine can pose as another: EC2 drops
# packets whose source is not the address of their interface (EC2 User Guide, "source/destination checking").
_CLIENT = """# Managed by corral. A node has another machine, with another key, after each launch.
Host {hosts}
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
    IdentityFile ~/.ssh/id_corral
    IdentityFile ~/.ssh/id_ed25519
    IdentityFile ~/.ssh/id_rsa
"""
# As Warewulf and OpenHPC do it: at the first login, by the user, in the home that all machines share.
_KEY = """# Managed by corral: a key of each user's own for ssh within the cluster, made at the first login.
if [ "$(id -u)" -ne 0 ] && [ -w "$HOME" ] && [ ! -e "$HOME/.ssh/id_corral" ] && command -v ssh-keygen >/dev/null; then
    mkdir -p -m 700 "$HOME/.ssh"
    ssh-keygen -q -t ed25519 -N "" -C corral -f "$HOME/.ssh/id_corral" </dev/null &&
        cat "$HOME/.ssh/id_corral.pub" >>"$HOME/.ssh/authorized_keys" &&
        chmod 600 "$HOME/.ssh/authorized_keys"
fi
"""


def ssh_client(plan: ClusterPlan) -> tuple[Placement, ...]:
    """The files that let users ssh between machines without a prompt."""
    hosts = " ".join(f"{queue.name}-* {queue.name}-*.{plan.dns_zone}" for queue in plan.queues)
    return (
        Placement(path="/etc/ssh/ssh_config.d/60-corral.conf", content=_CLIENT.format(hosts=hosts).encode()),
        Placement(path="/etc/profile.d/corral-ssh.sh", content=_KEY.encode()),
    )


def sshd_reads(paths: Iterable[str]) -> bool:
    """True if sshd reads any of these when it starts. It reads keys at each login."""
    return any(path.startswith("/etc/ssh/sshd_config.d/") for path in paths)
