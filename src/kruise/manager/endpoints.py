"""What the manager serves besides webhooks: health, readiness and metrics in the open, the journal to known callers."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from kruise.machinery.client.errors import ClientError
from kruise.machinery.codec import DecodeError
from kruise.machinery.journal import AUDIENCE, NOT_KNOWN, TOKEN_HEADER
from kruise.manager.callers import CrowdError, Reviewer
from kruise.manager.refusals import typed
from kruise.manager.reports import Reports, failure

log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[str]]
"""Returns what is missing, or an empty text when all is well."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CHECK_SECONDS = 5.0
_AT_A_TIME = 500
"""Samples: about 3 ms."""


class Endpoints:
    """Serves on the given addresses until closed. An empty address switches an endpoint off."""

    def __init__(self) -> None:
        self._runners: list[web.AppRunner] = []

    async def serve(self, app: web.Application, address: str, tls: ssl.SSLContext | None = None) -> int:
        """Begin to listen, on HTTPS where there is a context; returns the port, of use where 0 asked for one."""
        host, _, port = address.rpartition(":")
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        self._runners.append(runner)
        site = web.TCPSite(runner, host.strip("[]") or None, int(port), reuse_address=True, ssl_context=tls)
        try:
            await site.start()
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {address}: {error.strerror}") from error
        bound: int = runner.addresses[0][1]
        return bound

    async def close(self) -> None:
        for runner in self._runners:
            await runner.cleanup()


class Detail(NamedTuple):
    """Something to know that makes nobody unready."""

    text: str
    is_met: bool = False


def health_app(readiness: Sequence[tuple[str, Check]], details: Callable[[], Sequence[Detail]]) -> web.Application:
    """`/healthz` answers while the process serves; `/readyz` names what is missing, and further details."""

    async def healthz(request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def readyz(request: web.Request) -> web.Response:
        lines, ready = [], True
        for name, check in readiness:
            try:
                async with asyncio.timeout(_CHECK_SECONDS):
                    missing = await check()
            except TimeoutError:
                missing = f"no answer within {_CHECK_SECONDS:g} s"
            ready = ready and not missing
            lines.append(f"[-]{name} {missing}" if missing else f"[+]{name} ok")
        lines += [f"[{'+' if detail.is_met else ' '}]{detail.text}" for detail in details()]
        return web.Response(text="\n".join(lines) + "\n", status=200 if ready else 503)

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    return app


def metrics_app(registry: CollectorRegistry) -> web.Application:
    """`/metrics`, and nothing about any object but names and numbers: this port asks nobody who they are."""

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body=typed(await exposition(registry)), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    return app


class _Piece(Collector):
    """As much as is written down at a time."""

    def __init__(self, metric: Metric, samples: Sequence[Sample]) -> None:
        self._metric = Metric(metric.name, metric.documentation, metric.type)
        self._metric.samples = list(samples)

    def collect(self) -> Iterator[Metric]:
        yield self._metric


async def exposition(registry: CollectorRegistry) -> bytes:
    """The text of all metrics. With thousands of workloads that takes a while, for which no webhook shall wait."""
    written: list[bytes] = []
    for metric in list(registry.collect()):
        # The library puts such samples behind all others; there are as many as controllers and paths.
        is_whole = any(sample.name == f"{metric.name}_created" for sample in metric.samples)
        pieces = [metric.samples] if is_whole else _pieces(metric.samples)
        for number, samples in enumerate(pieces):
            text = generate_latest(_Piece(metric, samples))
            written.append(text if number == 0 else text.split(b"\n", 2)[2])  # HELP and TYPE stand there once
            await asyncio.sleep(0)
    return b"".join(written)


def _pieces(samples: Sequence[Sample]) -> list[Sequence[Sample]]:
    return [samples[start : start + _AT_A_TIME] for start in range(0, max(len(samples), 1), _AT_A_TIME)]


def journal_app(reports: Reports, reviewer: Reviewer) -> web.Application:
    """The reports, for callers with a token, as far as their own rights go."""

    async def answer(request: web.Request) -> web.Response:
        try:
            rights = await reviewer.rights_of(_token(request.headers))
            reply = await reports.answer(request.path, request.query, rights) if rights is not None else _WHO
        except CrowdError as error:
            reply = failure(429, "TooManyRequests", str(error))
        except (ClientError, DecodeError) as error:
            log.warning("who may see the journal cannot be found out", extra={"error": str(error)})
            reply = failure(503, "ServiceUnavailable", "the API server does not say who you are and what you may see")
        return web.Response(status=reply.status, body=reply.body, headers={"Content-Type": reply.content_type})

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


_WHO = failure(
    401,
    NOT_KNOWN,
    f"the journal is shown to those who say who they are: send a bearer token, or one in {TOKEN_HEADER}, that is made "
    f"for the audience {AUDIENCE} (kubectl create token ACCOUNT --audience={AUDIENCE}), and not for the API server",
)


def _token(headers: Mapping[str, str]) -> str:
    """An API server that stands in between keeps `Authorization` for itself."""
    given = headers.get(TOKEN_HEADER, "")
    if given:
        return given.strip()
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
