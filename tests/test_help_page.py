"""docs/help.md is the output of the commands."""

from tools.docs.help_page import PAGE, help_of_all_commands, help_page


def test_help_page_is_up_to_date() -> None:
    hint = "run `.venv/bin/python -m tools.docs.help_page`"
    assert (hint, PAGE.read_text(encoding="utf-8")) == (hint, help_page())


def test_help_of_subcommands_is_on_the_page() -> None:
    assert {"corral box fault freeze", "corral upgrade image"} <= set(help_of_all_commands())


def test_no_help_text_is_wider_than_a_hundred_columns() -> None:
    wide = {line for text in help_of_all_commands().values() for line in text.splitlines() if len(line) > 100}
    assert {line for line in wide if not line.startswith("    corral ")} == set()


def test_help_of_every_command_has_examples() -> None:
    assert [command for command, text in help_of_all_commands().items() if "\n  Examples:\n" not in text] == ["corral"]


def test_box_commands_are_in_the_order_of_use() -> None:
    _, _, listed = help_of_all_commands()["corral box"].partition("Commands:\n")
    commands = [line.split()[0] for line in listed.partition("\n\n")[0].splitlines()]
    assert commands == ["start", "status", "env", "fault", "quota", "stop", "reset"]
