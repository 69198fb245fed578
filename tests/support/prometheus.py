"""A real Prometheus, and the checker that comes with it: Debian's package."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.support.kubebuild import MissingPrerequisiteError
from tests.support.ports import free_port
from tests.support.waiting import eventually

Json = dict[str, Any]


def program(name: str) -> str:
    if found := shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/bin"))):
        return found
    raise MissingPrerequisiteError([f"{name} not found on PATH: `apt-get install --no-install-recommends prometheus`"])


def promtool(*arguments: str | Path) -> str:
    """What it says; AssertionError where it finds something wrong."""
    done = subprocess.run([program("promtool"), *arguments], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


class Prometheus:
    def __init__(self, address: str, session: aiohttp.ClientSession) -> None:
        self._address = address
        self._session = session

    async def get(self, path: str, **parameters: str) -> Any:
        async with self._session.get(f"{self._address}{path}", params=parameters) as answer:
            document = await answer.json()
        assert document["status"] == "success", document.get("error")
        return document["data"]

    async def ask(self, query: str) -> list[tuple[Json, float]]:
        """Labels and value of each series, as of now."""
        found = await self.get("/api/v1/query", query=query)
        return [(one["metric"], float(one["value"][1])) for one in found["result"]]

    async def value(self, query: str) -> float:
        found = await self.ask(query)
        assert len(found) == 1, f"{query}: {found}"
        return found[0][1]


@contextlib.asynccontextmanager
async def prometheus(directory: Path, configuration: Json) -> AsyncIterator[Prometheus]:
    """One that runs with this configuration, until the end of the block."""
    file = directory / "prometheus.yaml"
    file.write_text(yaml.safe_dump(configuration))
    promtool("check", "config", file)
    port = free_port()
    with (directory / "prometheus.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            program("prometheus"),
            f"--config.file={file}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession() as session:
            found = Prometheus(f"http://127.0.0.1:{port}", session)

            async def is_ready() -> None:
                try:
                    await found.get("/api/v1/status/buildinfo")
                except aiohttp.ClientError as error:
                    raise AssertionError(str(error)) from error

            await eventually(is_ready)
            yield found
    finally:
        process.terminate()
        await process.wait()
