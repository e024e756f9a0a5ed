"""Where the programs of jobs find the job role: the variable that the SDKs of AWS read, and the address in it."""

VARIABLE = "AWS_CONTAINER_CREDENTIALS_FULL_URI"
# Only root can bind a port below 1024, so no user can pose as this endpoint. Lustre's sockets use ports from 512 on
# (LNet, `socklnd`), old NFS clients from 665 on.
PORT = 250
PATH = "/credentials"
URI = f"http://127.0.0.1:{PORT}{PATH}"
