"""What virtual machines are made of: tools, image, accelerator, command line, package mirror and NFS server.

`preparation` finds or builds it once per user, `virtual_host` starts machines of it for the supervisor. The processes
themselves live in `vpc.virtual_machines`, and which instances should run is decided in `machines`.
"""
