"""The box's process: its WSGI application, the emulated cloud's state, its files on disk, and its lifecycle.

Commands use it through `corral.box.client`. Nothing here is specific to an AWS service.
"""
