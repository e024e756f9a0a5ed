"""A file system on a machine that shows a directory, and takes its time for data.

Arguments: PID TARGET SOURCE REQUEST_S MIB_PER_S. PID is a process of the machine, in whose mounts it appears. Each
read, write and flush takes REQUEST_S, and its bytes at MIB_PER_S. It speaks FUSE's protocol (linux/fuse.h, 7.31) with
the kernel itself, so it needs root and no library.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH106, PTH108, PTH123, PTH208, T201
from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
import sys
import threading
import time

REQUEST_S, MIB_PER_S = (float(one) for one in sys.argv[4:6])
HEADER, REPLY = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
FOREVER, BIG_WRITES = 1 << 20, 1 << 5
READ_BYTES = 1 << 20 | 1 << 16


class Directory:
    """The nodes of the source directory, by their numbers in FUSE."""

    def __init__(self, source: str) -> None:
        self._paths, self._numbers = {1: source}, {source: 1}
        self._lock = threading.Lock()

    def path(self, node: int, name: bytes = b"") -> str:
        path = self._paths[node]
        return f"{path}/{os.fsdecode(name)}" if name else path

    def number(self, path: str) -> int:
        with self._lock:
            if path not in self._numbers:
                self._numbers[path] = len(self._paths) + 1
                self._paths[self._numbers[path]] = path
            return self._numbers[path]

    def rename(self, old: str, new: str) -> None:
        with self._lock:
            os.rename(old, new)
            moved = self._numbers.pop(old, None)
            if moved is not None:
                self._paths[moved], self._numbers[new] = new, moved

    def entry(self, path: str) -> bytes:
        about = attributes(os.lstat(path))
        return struct.pack("<QQQQII", self.number(path), 0, 0, 0, 0, 0) + about


def attributes(found: os.stat_result) -> bytes:
    times = [int(one) for one in (found.st_atime, found.st_mtime, found.st_ctime)]
    about = (found.st_mode, found.st_nlink, found.st_uid, found.st_gid, 0, 4096, 0)
    return struct.pack("<6Q10I", found.st_ino, found.st_size, found.st_blocks, *times, 0, 0, 0, *about)


def wait(size: int) -> None:
    time.sleep(REQUEST_S + size / (MIB_PER_S * (1 << 20)))


def answer(directory: Directory, code: int, node: int, owner: tuple[int, int], body: bytes) -> bytes:
    """The answer to a request. Raises OSError."""
    names = body.split(b"\0")
    match code:
        case 26:  # INIT
            return struct.pack("<IIIIHHIIHHI7I", 7, 31, 1 << 17, BIG_WRITES, 8, 8, 1 << 17, 1, 0, 0, 0, *[0] * 7)
        case 1:  # LOOKUP
            return directory.entry(directory.path(node, names[0]))
        case 3:  # GETATTR
            return struct.pack("<QII", 0, 0, 0) + attributes(os.lstat(directory.path(node)))
        case 4:  # SETATTR
            valid, _, _, size, _, access, change, *_, mode, _, uid, gid, _ = struct.unpack("<II6Q8I", body[:88])
            path = directory.path(node)
            if valid & 1:
                os.chmod(path, stat.S_IMODE(mode))
            if valid & 6:
                os.chown(path, uid if valid & 2 else -1, gid if valid & 4 else -1)
            if valid & 8:
                os.truncate(path, size)
            if valid & 32 and not valid & 256:
                os.utime(path, (access, change))
            return struct.pack("<QII", 0, 0, 0) + attributes(os.lstat(path))
        case 9:  # MKDIR
            mode, umask = struct.unpack("<II", body[:8])
            path = directory.path(node, body[8:].split(b"\0")[0])
            os.mkdir(path)
            os.chmod(path, mode & ~umask & 0o7777)
            os.chown(path, *owner)
            return directory.entry(path)
        case 10 | 11:  # UNLINK, RMDIR
            path = directory.path(node, names[0])
            os.unlink(path) if code == 10 else os.rmdir(path)
            return b""
        case 12 | 45:  # RENAME, RENAME2
            (target,) = struct.unpack("<Q", body[:8])
            old, new = body[8 if code == 12 else 16 :].split(b"\0")[:2]
            directory.rename(directory.path(node, old), directory.path(target, new))
            return b""
        case 14:  # OPEN
            (flags,) = struct.unpack("<I", body[:4])
            return struct.pack("<QII", os.open(directory.path(node), flags & ~(os.O_CREAT | os.O_NOFOLLOW)), 0, 0)
        case 35:  # CREATE
            flags, mode, umask, _ = struct.unpack("<IIII", body[:16])
            path = directory.path(node, body[16:].split(b"\0")[0])
            file = os.open(path, flags | os.O_CREAT, mode & ~umask & 0o7777)
            os.chown(path, *owner)
            return directory.entry(path) + struct.pack("<QII", file, 0, 0)
        case 15:  # READ
            file, offset, size = struct.unpack("<QQI", body[:20])
            wait(size)
            return os.pread(file, size, offset)
        case 16:  # WRITE
            file, offset, size = struct.unpack("<QQI", body[:20])
            wait(size)
            path = directory.path(node)  # O_APPEND is the kernel's matter
            with open(path, "r+b", buffering=0) as out:
                return struct.pack("<II", os.pwrite(out.fileno(), body[40 : 40 + size], offset), 0)
        case 20:  # FSYNC
            wait(0)
            return b""
        case 18:  # RELEASE
            os.close(struct.unpack("<Q", body[:8])[0])
            return b""
        case 27:  # OPENDIR
            return struct.pack("<QII", 0, 0, 0)
        case 28:  # READDIR
            _, offset, size = struct.unpack("<QQI", body[:20])
            return listing(directory, node, offset, size)
        case 17:  # STATFS
            return struct.pack("<5Q4I6I", FOREVER, FOREVER, FOREVER, FOREVER, FOREVER, 4096, 255, 4096, 0, *[0] * 6)
        case 25 | 29 | 30 | 38:  # FLUSH, RELEASEDIR, FSYNCDIR, DESTROY
            return b""
        case _:
            raise OSError(errno.ENOSYS, "not here")


def listing(directory: Directory, node: int, offset: int, size: int) -> bytes:
    path, out = directory.path(node), b""
    for number, name in enumerate([".", "..", *sorted(os.listdir(path))][offset:], offset + 1):
        found, text = os.lstat(f"{path}/{name}"), os.fsencode(name)
        one = struct.pack("<QQII", found.st_ino, number, len(text), stat.S_IFMT(found.st_mode) >> 12) + text
        one += bytes(-len(one) % 8)
        if len(out) + len(one) > size:
            break
        out += one
    return out


def serve(device: int, directory: Directory) -> None:
    while True:
        try:
            request = os.read(device, READ_BYTES)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
                continue
            return  # it is unmounted
        _, code, unique, node, uid, gid, *_ = HEADER.unpack(request[: HEADER.size])
        if code in (2, 36, 42):  # FORGET, INTERRUPT, BATCH_FORGET
            continue
        try:
            body, number = answer(directory, code, node, (uid, gid), request[HEADER.size :]), 0
        except OSError as error:
            body, number = b"", -(error.errno or errno.EIO)
        try:
            os.write(device, REPLY.pack(REPLY.size + len(body), number, unique) + body)
        except OSError:  # who waited has been killed
            continue


def mount(device: int, pid: str, target: str) -> None:
    """Mount it, in a child with the machine's mounts."""
    namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    child = os.fork()
    if child:
        if os.waitpid(child, 0)[1]:
            sys.exit(1)
        return
    libc = ctypes.CDLL(None, use_errno=True)
    failed = libc.setns(namespace, 0)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions"
    failed = failed or libc.mount(b"slow", target.encode(), b"fuse.slow", 6, options.encode())  # MS_NOSUID, MS_NODEV
    if failed:
        print(os.strerror(ctypes.get_errno()), file=sys.stderr)
    os._exit(1 if failed else 0)


def main() -> None:
    pid, target, source = sys.argv[1:4]
    device = os.open("/dev/fuse", os.O_RDWR)
    directory = Directory(source)
    threads = [threading.Thread(target=serve, args=(device, directory)) for _ in range(8)]
    mount(device, pid, target)
    print("mounted", flush=True)
    for one in threads:
        one.start()


if __name__ == "__main__":
    main()
