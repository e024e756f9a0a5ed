"""One module per command with its options and calls. A module is imported when its command runs."""
