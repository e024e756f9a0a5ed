"""Deploys and deletes stacks with the Pulumi engine.

`lifecycle` holds the operations (up, down, extend, upgrade) and their guards, `pulumi` runs the CLI, `backend` checks
and locks state backends, `progress` reads and shows the engine's events, `recovery` repairs the state after a kill, and
`bootstrap` prepares an account. The Pulumi programs themselves are in `corral.stacks`. Only
`recovery.resource_lookup` knows how to find a resource of each type.
"""
