"""A load balancer before login nodes: people come by ssh alone, a lost node is no alarm, and nothing of it remains.

They use what `corral ssh-config` prints and nothing else: no credentials of AWS, no known hosts, the real OpenSSH.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from canaries import ACCOUNT, Secret, locations
from clusters import UP_IN_S, Cluster, tag
from people import Person, make_key

import boxes
from corral.box.vpc.capabilities import probe_host
from corral.plan.iam.deployer_policy import deployer_policies
from deployer_actions import called_actions, denied, seen_actions, uncalled
from life import begin
from steps import step

pytestmark = [pytest.mark.pulumi, pytest.mark.box, pytest.mark.slurm, pytest.mark.long]
ENTRY, SERVICE, HOST_KEY = "dev-login", "elasticloadbalancing:", "host key of login nodes"
BALANCER = "      load_balancer: {allow: [203.0.113.0/24]}\n"
SPEC = """    login:
      count: 2
{balancer}    access:
      users:
        ada: {{uid: 2000, ssh_keys: ['{ada}']}}
        bo: {{uid: 2001, ssh_keys: ['{bo}']}}
"""
BOOTS_IN_S = 120.0


def test_people_come_through_a_load_balancer(tmp_path_factory: pytest.TempPathFactory) -> None:
    assert probe_host().users, probe_host().problem
    directory = tmp_path_factory.mktemp("balanced")
    with boxes.running_box(directory / "box", machines=True) as box:
        cluster = Cluster(life=begin(directory, box), name="dev")
        come_up(cluster, directory)
        people = [person(cluster, directory, name) for name in ("ada", "bo")]
        work(people)
        secret = look_for_the_host_key(cluster)
        keep_others_out(people[0], directory)
        lose_a_login_node(cluster, people[0])
        take_the_balancer_away(cluster, people[0])
        cluster.life.done("down", "dev")
        with step("nothing of the load balancer is left"):
            assert parts_left(cluster) == []
        with step("a cluster that is gone leaves the host key of its login nodes nowhere"):
            assert locations(cluster, secret, ()) == {HOST_KEY: ()}
        called = {one for one in called_actions(cluster.life.box.dir) if one.startswith(SERVICE)}
        with step("every call on load balancers is allowed by the deployer's policies"):
            policies = deployer_policies(account="123456789012", region="us-east-1")
            assert denied(policies, called) == []
        with step("every allowed action on load balancers is called or has its reason"):
            assert uncalled([one for one in seen_actions() if one.startswith(SERVICE)], called) == []


def come_up(cluster: Cluster, directory: Path) -> None:
    """The cluster with two login nodes behind a load balancer, and two people."""
    keys = {name: make_key(directory, name) for name in ("ada", "bo", "stranger")}
    with cluster.spec.open("a") as spec:
        spec.write(SPEC.format(balancer=BALANCER, ada=keys["ada"], bo=keys["bo"]))
    cluster.life.done("up", "dev")
    cluster.until(lambda: cluster.on_head("sinfo", "--noheader"), UP_IN_S)
    cluster.until(lambda: all(is_ready(cluster, name) for name in ("login-1", "login-2")), BOOTS_IN_S)


def node(cluster: Cluster, name: str) -> str | None:
    """The instance that is the login node of this name."""
    return next((one["InstanceId"] for one in cluster.machines() if tag(one, "corral:login") == name), None)


def is_ready(cluster: Cluster, name: str) -> bool:
    """Whether the login node has its people and its host key."""
    look = "id ada && test -e /etc/ssh/corral_host_ed25519_key && sinfo --noheader"
    return bool(cluster.on(node(cluster, name), "sh", "-c", look))


def person(cluster: Cluster, directory: Path, name: str) -> Person:
    """A person to whom somebody has handed the printed entries."""
    config = directory / f"{name}.ssh"
    config.write_text(cluster.life.corral("ssh-config", "dev", "--box", "--user", name).out)
    return with_file(config, directory / name)


def with_file(config: Path, key: Path) -> Person:
    """Whoever has these entries and this key, and knows no host."""
    nothing = ("-o", "UserKnownHostsFile=/dev/null", "-o", "GlobalKnownHostsFile=/dev/null", "-o", "BatchMode=yes")
    return Person(options=("-F", str(config), "-i", str(key), *nothing))


def work(people: list[Person]) -> None:
    """Each person, as themselves."""
    with step("each person logs in as themselves, by the entry of the load balancer"):
        assert [one.on(ENTRY, "id -un") for one in people] == ["ada", "bo"]
    with step("who comes again is on the same login node, with Slurm"):
        shown = {people[0].on(ENTRY, "hostname -s; sinfo --noheader --format=%R") for _ in range(2)}
        assert shown in ({"login-1\ntrain"}, {"login-2\ntrain"})


def look_for_the_host_key(cluster: Cluster) -> Mapping[str, Secret]:
    """The key that both login nodes show, which has to be theirs alone."""
    shared, first = "/etc/ssh/corral_host_ed25519_key", "/etc/ssh/ssh_host_ed25519_key"  # it was that of the first one
    lines = cluster.on(node(cluster, "login-1"), "cat", shared).splitlines()
    # The line with the private part; others hold the public part.
    found = {HOST_KEY: Secret(lines[4].encode(), (ACCOUNT, f"machine: {shared}", f"machine: {first}"))}
    with step("the host key of login nodes is where it belongs and nowhere else"):
        assert locations(cluster, found, ()) == {HOST_KEY: found[HOST_KEY].locations}
    return found


def keep_others_out(ada: Person, directory: Path) -> None:
    """Whoever else tries."""
    config = directory / "ada.ssh"
    with step("sshd offers keys and nothing else, no password"):
        done = ada.run(ENTRY, "true")
        assert done.returncode == 0, done.stderr
        refused = with_file(config, directory / "stranger").run(ENTRY, "true")
        assert (refused.returncode, refused.stderr.strip().rpartition(": ")[2]) == (
            255,
            "Permission denied (publickey).",
        )
    with step("root and the image's user are refused, also with a person's key"):
        tried = [ada.run(f"{user}@{ENTRY}", "true").returncode for user in ("root", "admin", "debian")]
        assert tried == [255, 255, 255]
    with step("a host with another key is refused before anything is sent"):
        fake = directory / "fake.ssh"
        key = (directory / "stranger.pub").read_text().split()[1]
        lines = (
            f"    KnownHostsCommand /bin/echo {ENTRY} ssh-ed25519 {key}" if "KnownHostsCommand" in line else line
            for line in config.read_text().splitlines()
        )
        fake.write_text("\n".join(lines) + "\n")
        refused = with_file(fake, directory / "ada").run(ENTRY, "true")
        assert (refused.returncode, "Host key verification failed." in refused.stderr) == (255, True)


def lose_a_login_node(cluster: Cluster, ada: Person) -> None:
    """The login node that she works on is lost, and replaced."""
    mine = ada.on(ENTRY, "hostname")
    lost = node(cluster, mine)
    cluster.life.client("ec2").terminate_instances(InstanceIds=[lost])
    cluster.until(lambda: node(cluster, mine) is None)
    with step("the same entry leads to the other login node, which shows the same host key"):
        cluster.until(lambda: ada.run(ENTRY, "true").returncode == 0)
        assert ada.on(ENTRY, "hostname") != mine
    cluster.life.done("up", "dev")
    cluster.until(lambda: is_ready(cluster, mine), BOOTS_IN_S)
    other = node(cluster, "login-2" if mine == "login-1" else "login-1")
    with step("the replaced one is a target again, and the lost one is none"):
        assert node(cluster, mine) != lost
        assert targets(cluster) == {node(cluster, mine), other}
    cluster.life.client("ec2").terminate_instances(InstanceIds=[other])
    with step("her entry leads to it without a question when it is the only one"):
        cluster.until(lambda: ada.run(ENTRY, "hostname").stdout.strip() == mine)


def targets(cluster: Cluster) -> set[str]:
    """The instances that the load balancer sends people to."""
    elbv2 = cluster.life.client("elbv2")
    (group,) = elbv2.describe_target_groups()["TargetGroups"]
    found = elbv2.describe_target_health(TargetGroupArn=group["TargetGroupArn"])["TargetHealthDescriptions"]
    return {one["Target"]["Id"] for one in found if one["TargetHealth"]["State"] == "healthy"}


def take_the_balancer_away(cluster: Cluster, ada: Person) -> None:
    """The line of the spec is removed."""
    name = ada.on(ENTRY, "hostname")
    cluster.spec.write_text(cluster.spec.read_text().replace(BALANCER, ""))
    cluster.life.done("up", "dev")
    with step("without its line, up deletes the load balancer, and nobody comes that way"):
        assert [one for one in parts_left(cluster) if one.startswith("elbv2/")] == []
        cluster.until(lambda: ada.run(ENTRY, "true").returncode == 255)
    with step("login nodes stay, with host keys of their own"):
        look = "test -e /etc/ssh/corral_host_ed25519_key || sinfo --noheader --format=%R"
        assert cluster.until(lambda: cluster.on(node(cluster, name), "sh", "-c", look)) == "train"


def parts_left(cluster: Cluster) -> list[str]:
    """What the account has of the load balancer."""
    held = cluster.life.inventory()
    found = [kind for kind in held if kind.startswith("elbv2/")]
    return found + [kind for kind, ids in held.items() if "login" in str(ids)]
