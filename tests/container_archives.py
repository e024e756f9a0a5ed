"""Archives that stand in for enroot's and Pyxis's sources: the same layout, small, compiled by the same script."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Mapping

from corral.model.containers import ContainerRuntime, ContainersPlan, SourcePlan

# The targets and variables that build.sh uses.
ENROOT = {
    "deps/Makefile": "libbsd:\n\t@touch libbsd.made\n.PHONY: libbsd\n",
    "Makefile": """all: | deps
\t@test -e deps/libbsd.made && test -e deps/dist/makeself/bin/enroot-makeself
deps:
\t@echo "there is no network" >&2; exit 1
.PHONY: all deps
install: all
\tinstall -D -m 755 enroot $(prefix)/bin/enroot
\tinstall -d $(prefix)/share/enroot/hooks.d $(sysconfdir)/enroot/hooks.d
\ttouch $(prefix)/share/enroot/hooks.d/50-slurm-pmi.sh $(prefix)/share/enroot/hooks.d/50-slurm-pytorch.sh
""",
    "enroot": "#!/bin/sh\necho stand-in\n",
}
# A plugin with Pyxis's option, which tells the task of it.
PYXIS = {
    "Makefile": "spank_pyxis.so: plugin.c\n\t@$(CC) $(CPPFLAGS) -shared -fPIC -o $@ plugin.c\n",
    "plugin.c": """#include <stdio.h>
#include <slurm/spank.h>
SPANK_PLUGIN(pyxis, 1)
static char named[256];
static int image(int value, const char *text, int remote)
{
    snprintf(named, sizeof named, "%s", text);
    return 0;
}
int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    return *named ? spank_setenv(spank, "TASK_IN", named, 1) : 0;
}
int slurm_spank_init(spank_t spank, int count, char **words)
{
    struct spank_option option = {"container-image", "IMAGE", "of the container", 1, 0, image};
    return spank_option_register(spank, &option);
}
""",
}


def archive(directory: str, files: Mapping[str, str]) -> bytes:
    """A tar.gz with these files in this directory."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as tar:
        for name, text in files.items():
            entry = tarfile.TarInfo(f"{directory}/{name}")
            entry.size, entry.mode = len(text.encode()), 0o755 if name == "enroot" else 0o644
            tar.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


def source(name: str, version: str, content: bytes) -> SourcePlan:
    """The plan of an archive, with its hash."""
    return SourcePlan(
        name=name,
        version=version,
        url=f"https://example.com/{name}.tar.gz",
        sha256=hashlib.sha256(gzip.decompress(content)).hexdigest(),
    )


CONTENTS = {"enroot": archive("enroot-1.0", ENROOT), "pyxis": archive("pyxis-2.0", PYXIS)}
SOURCES = (source("enroot", "1.0", CONTENTS["enroot"]), source("pyxis", "2.0", CONTENTS["pyxis"]))
CONTAINERS = ContainersPlan(runtime=ContainerRuntime.PYXIS, sources=SOURCES)
ARCHIVES: Mapping[str, bytes] = {one.path: CONTENTS[one.name] for one in SOURCES}
