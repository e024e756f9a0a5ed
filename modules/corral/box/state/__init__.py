"""The emulated cloud's state: the lock that every call holds, and its files in the box's directory.

`backend` is what the daemon holds, `directory` names the files, `ownership` says whose they must be, `saved_state`
writes and reads them.
"""
