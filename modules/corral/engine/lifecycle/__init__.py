"""The operations on an environment - up, down, extend, upgrade - and the checks before each."""
