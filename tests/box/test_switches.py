"""The switches of a box: options of `box start`, kept by the box, and shown by it."""

from __future__ import annotations

from pathlib import Path

import pytest

import boxes
from corral.box import client
from corral.box.provider import PluginMissing, find_official, install, sdk_version
from corral.box.state.directory import StateDirectory
from corral.box.switches import Behaviour, Machines, Provider, Switches, parse_switches


def test_a_switch_that_is_not_given_keeps_its_value() -> None:
    kept = Switches(provider=Provider.OFFICIAL, machines=Machines.NONE)
    given = {"provider": None, "machines": "namespace"}
    assert parse_switches(given, kept) == Switches(provider=Provider.OFFICIAL, machines=Machines.NAMESPACE)


def test_a_value_that_no_switch_has_is_refused() -> None:
    with pytest.raises(ValueError, match="'container' is not a valid Machines"):
        parse_switches({"machines": "container"}, Switches())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"speed": "20"}, "--speed 20 needs --behaviour aws-like"),
        ({"behaviour": "aws-like", "speed": "0"}, "a speed is a whole number from 1 to 1000, not 0"),
    ],
    ids=["of an instant box", "no speed"],
)
def test_a_speed_is_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_switches(given, Switches())


def test_a_box_that_is_instant_again_has_no_speed() -> None:
    kept = Switches(behaviour=Behaviour.AWS_LIKE, speed=20)
    assert parse_switches({"behaviour": "instant"}, kept) == Switches()


def test_an_aws_like_box_starts_again_with_its_speed(state_directory: Path) -> None:
    boxes.start(state_directory, speed=20)
    client.stop(state_directory)
    again = client.start(state_directory)
    assert (again.switches.behaviour, again.switches.speed) == (Behaviour.AWS_LIKE, 20)


def test_a_box_starts_again_with_the_switches_of_its_last_start(state_directory: Path) -> None:
    client.start(state_directory, machines=Machines.NONE)
    client.stop(state_directory)
    again = client.start(state_directory)
    assert (again.switches.machines, again.no_machines_reason) == (
        Machines.NONE,
        "the box was started with --machines none",
    )


def test_a_stopped_box_reports_its_switches(state_directory: Path) -> None:
    boxes.start(state_directory)
    client.stop(state_directory)
    assert client.status(state_directory).switches == Switches(machines=Machines.NONE)


def test_damaged_switches_are_those_of_a_new_box(state_directory: Path) -> None:
    state_directory.mkdir()
    (state_directory / "switches.json").write_text('{"machines": "container"')
    assert client.status(state_directory).switches == Switches()


def test_other_switches_than_those_of_the_running_box_are_refused(state_directory: Path) -> None:
    boxes.start(state_directory)
    with pytest.raises(client.BoxError) as raised:
        client.start(state_directory, machines=Machines.NAMESPACE)
    assert str(raised.value) == (
        f"the box in {state_directory} runs with --machines none - `corral box stop`, then start it with"
        " --machines namespace"
    )


def test_aws_own_provider_that_is_not_installed_is_named_with_the_ways_to_get_it(
    state_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "PULUMI_HOME"):
        monkeypatch.setenv(name, str(state_directory / "empty"))
    with pytest.raises(client.BoxError) as raised:
        client.start(state_directory, provider=Provider.OFFICIAL)
    assert str(raised.value) == (
        f"AWS's own provider is not installed - run `pulumi plugin install resource aws {sdk_version()}`, or"
        " `make official-provider` in corral's source directory"
    )


@pytest.mark.parametrize(
    ("installed", "found"),
    [
        (("cache", "pulumi"), "pulumi/plugins/resource-aws-v{version}"),  # Pulumi's is the true one
        (("cache",), "cache/corral/official-provider-1"),
    ],
    ids=["Pulumi's", "built"],
)
def test_aws_own_provider_is_the_one_of_pulumi_or_the_one_that_was_built(
    tmp_path: Path, installed: tuple[str, ...], found: str
) -> None:
    directories = {
        "pulumi": tmp_path / f"pulumi/plugins/resource-aws-v{sdk_version()}",
        "cache": tmp_path / "cache/corral/official-provider-1",
    }
    for name in installed:
        directories[name].mkdir(parents=True)
        (directories[name] / "pulumi-resource-aws").touch(mode=0o755)
    environ = {"PULUMI_HOME": str(tmp_path / "pulumi"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert find_official(environ).parent == tmp_path / found.format(version=sdk_version())


def test_the_plugin_of_a_box_is_not_taken_for_aws_own(tmp_path: Path) -> None:
    install(tmp_path)  # as in a shell with the variables of `corral box env`
    with pytest.raises(PluginMissing):
        find_official({"PULUMI_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")})


def test_stacks_stay_with_the_provider_that_deployed_them(state_directory: Path) -> None:
    boxes.start(state_directory)
    client.stop(state_directory)
    stack = StateDirectory(state_directory).stack_states / "corral-base/dev.json"
    stack.parent.mkdir(parents=True)
    stack.touch()
    with pytest.raises(client.BoxError, match="were deployed with --provider stand-in, not official - run `corral box"):
        client.start(state_directory, provider=Provider.OFFICIAL)
