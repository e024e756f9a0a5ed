"""The box's process: its WSGI application, the overrides of moto, and how commands start and stop it.

Commands use it through `corral.box.client`; `corral.box.__main__` is its entry point. What it keeps is in `state`.
"""
