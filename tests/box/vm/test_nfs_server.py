"""The settings of a file system's NFS server."""

from __future__ import annotations

from pathlib import Path

from corral.box.vm.nfs_server import NfsExport, server_settings


def test_settings_export_the_directory_at_its_address() -> None:
    export = NfsExport(
        address="10.64.1.77",
        directory=Path("/box/file-systems/fs-1"),
        state=Path("/box/nfs/10.64.1.77"),
        tools=Path("/tools"),
    )
    assert (
        server_settings(export)
        == """NFS_CORE_PARAM {
    Bind_addr = 10.64.1.77;
    NFS_Port = 2049;
    Protocols = 4;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Plugins_Dir = "/tools/usr/lib/x86_64-linux-gnu/ganesha";
    mount_path_pseudo = true;
    allow_set_io_flusher_fail = true;
}
NFSv4 {
    Graceless = true;
    Lease_Lifetime = 30;
    Minor_Versions = 1, 2;
    RecoveryRoot = "/box/nfs/10.64.1.77";
    Only_Numeric_Owners = true;
    UseGetpwnam = true;
}
EXPORT {
    Export_Id = 1;
    Path = "/box/file-systems/fs-1";
    Pseudo = "/";
    Access_Type = RW;
    Squash = no_root_squash;
    Protocols = 4;
    Transports = TCP;
    SecType = sys;
    FSAL { Name = VFS; }
}
LOG { Default_Log_Level = EVENT; }
"""
    )
