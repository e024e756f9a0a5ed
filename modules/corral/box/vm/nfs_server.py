"""The settings of the NFS server that serves an EFS file system at the address of its mount target. Pure.

Source: NFS-Ganesha's documentation, ganesha-core-config(8), ganesha-export-config(8), ganesha-vfs-config(8); EFS User
Guide, "NFS support" (NFSv4.1, no locks before version 4, root is not squashed).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class NfsExport:
    """A directory, served at an address. `state`: where the server keeps its clients. `tools`: its root directory."""

    address: str
    directory: Path
    state: Path
    tools: Path


def server_settings(export: NfsExport) -> str:
    """The text of ganesha.conf."""
    modules = export.tools / "usr/lib/x86_64-linux-gnu/ganesha"
    return f"""NFS_CORE_PARAM {{
    Bind_addr = {export.address};
    NFS_Port = 2049;
    Protocols = 4;
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Plugins_Dir = "{modules}";
    mount_path_pseudo = true;
    allow_set_io_flusher_fail = true;
}}
NFSv4 {{
    Graceless = true;
    Lease_Lifetime = 30;
    Minor_Versions = 1, 2;
    RecoveryRoot = "{export.state}";
    Only_Numeric_Owners = true;
    UseGetpwnam = true;
}}
EXPORT {{
    Export_Id = 1;
    Path = "{export.directory}";
    Pseudo = "/";
    Access_Type = RW;
    Squash = no_root_squash;
    Protocols = 4;
    Transports = TCP;
    SecType = sys;
    FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = EVENT; }}
"""
