"""What is wrong with a job: evidence -> findings, each with what to do first -> terminal and JSON.

Pure. `evidence` joins what the head reports with what the environment and a forecast say; `rules` has a function for
each kind of finding; `diagnose` orders them, and drops what another one explains.
"""
