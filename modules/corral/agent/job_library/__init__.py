"""Modules that training programs import. Each is one file of the standard library alone, for Python 3.9 or later.

A job script copies it into the job's directory, so that containers and other Pythons find it, too.
"""
