"""Shared by several commands: options, output, exit codes, error messages, account selection, calls to the head."""
