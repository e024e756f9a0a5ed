"""The LanguageRuntime service: answers the engine's calls about Python programs, and runs them in a child process.

Protocol: pulumi/proto/pulumi/language.proto, v3.259.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

from corral.engine.pulumi.language_host.program import ALREADY_REPORTED, ProgramLaunch


class LanguageService(language_pb2_grpc.LanguageRuntimeServicer):
    """The Python runtime of one engine."""

    def __init__(self, engine: str) -> None:
        self._engine = engine
        self._program: subprocess.Popen[bytes] | None = None

    def Handshake(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Receives the engine's address."""
        self._engine = request.engine_address
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The version of Pulumi's Python SDK."""
        return plugin_pb2.PluginInfo(version=version("pulumi"))

    def GetRequiredPackages(self, request: Any, context: grpc.ServicerContext) -> Any:
        """None: the engine finds providers when the program uses them."""
        return language_pb2.GetRequiredPackagesResponse()

    def GetRequiredPlugins(self, request: Any, context: grpc.ServicerContext) -> Any:
        """None, as above."""
        return language_pb2.GetRequiredPluginsResponse()

    def InstallDependencies(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        """Nothing to do: programs run in the environment that corral is installed in."""
        return iter(())

    def RuntimeOptionsPrompts(self, request: Any, context: grpc.ServicerContext) -> Any:
        """None: there are no options."""
        return language_pb2.RuntimeOptionsResponse()

    def GetProgramDependencies(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The SDKs in use, for `pulumi about`."""
        names = ("pulumi", "pulumi-aws")
        found = [language_pb2.DependencyInfo(name=name, version=version(name)) for name in names]
        return language_pb2.GetProgramDependenciesResponse(dependencies=found)

    def About(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The interpreter."""
        return language_pb2.AboutResponse(executable=sys.executable, version=sys.version.split()[0])

    def Cancel(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Ends the program."""
        if self._program:
            self._program.terminate()
        return empty_pb2.Empty()

    def Run(self, request: Any, context: grpc.ServicerContext) -> Any:
        """The outcome of the program; `bail` if it has reported its error itself."""
        status = self._run(_launch(request, self._engine), request)
        if status == ALREADY_REPORTED:
            return language_pb2.RunResponse(bail=True)
        return language_pb2.RunResponse(error=f"the program ended with exit status {status}" if status else "")

    def _run(self, launch: ProgramLaunch, request: Any) -> int:
        environment = {
            **os.environ,
            "PULUMI_CONFIG": json.dumps(dict(request.config)),
            "PULUMI_CONFIG_SECRET_KEYS": json.dumps(list(request.configSecretKeys)),
        }
        command = [
            os.environ.get("CORRAL_PYTHON", sys.executable),  # what the engine started this process with
            "-u",
            "-m",
            "corral.engine.pulumi.language_host.program",
            launch.to_json(),
            *request.args,
        ]
        # The child's standard input closes when this process ends, even after a kill.
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE) as self._program:
            return self._program.wait()


def _launch(request: Any, engine: str) -> ProgramLaunch:
    folder = request.info.program_directory or request.pwd
    return ProgramLaunch(
        program=str(Path(folder, request.info.entry_point or ".")),
        folder=request.pwd or folder,
        root=request.info.root_directory,
        monitor=request.monitor_address,
        engine=engine,
        organization=request.organization,
        project=request.project,
        stack=request.stack,
        parallel=max(request.parallel, 1),
        dry_run=request.dryRun,
    )
