"""The manager: all controllers and webhooks in one process, started and stopped in order.

Start: endpoints and the HTTPS server listen first (lists of older stored versions need `/convert`), then certificates
and registrations are brought into step, then watches fill the stores; controllers begin when this replica leads.
Nothing here gives up because something is missing: it waits, and readiness says for what.

Stop: no new work, writes in flight end, events are flushed, the lease is given back; webhooks are answered until
callers have found another replica, then the server finishes what it answers, connections close.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from kruise.admission.certificates import issue
from kruise.admission.tls import ServingCertificate
from kruise.api.meta import key_of
from kruise.feature import Feature
from kruise.kinds import face_of
from kruise.machinery.apply import Applier
from kruise.machinery.cache import Cache
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import ClientError
from kruise.machinery.client.transport import Transport
from kruise.machinery.clock import Clock
from kruise.machinery.controller import RECONCILE, Controller, Outside
from kruise.machinery.election import FencedTransport, LeaderElector, LeadershipLostError
from kruise.machinery.events import EventRecorder
from kruise.machinery.journal import Journal
from kruise.machinery.limiter import TokenBucket, WriteLimiter
from kruise.machinery.metrics import Metrics
from kruise.machinery.queue import Backoff
from kruise.machinery.spec import ControllerSpec
from kruise.manager import old_lease
from kruise.manager.callers import Reviewer
from kruise.manager.endpoints import Detail, Endpoints, health_app, journal_app, metrics_app
from kruise.manager.options import Options, Role
from kruise.manager.reports import Reports, Subjects
from kruise.manager.rollouts import Rollouts, is_measured
from kruise.manager.webhooks import Webhooks

log = logging.getLogger(__name__)

FIELD_MANAGER = "kruise-manager"
"""What the owner of the fields that the manager writes is called, also where no User-Agent tells it."""
_VERSION_RETRY_SECONDS = 2.0
_EVENT_FLUSH_SECONDS = 5.0
_HISTORY_CHECK_SECONDS = 10.0
_COLLECT_EVERY = (50_000, 20, 20)


class HistoryLostError(RuntimeError):
    """What this process knows is of no use with the server that answers now; only a new process can begin anew."""


class AdmissionSide(Protocol):
    """What answers the API server: `Webhooks` over HTTPS, or functions in the process of a local cluster."""

    async def start(self) -> None: ...

    async def run(self) -> None: ...

    async def leave(self) -> None:
        """Answer for as long as somebody may still ask."""

    async def stop(self) -> None: ...

    async def ready(self) -> str:
        """What is missing; empty where nothing is."""

    def leadership_changed(self) -> None: ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionParts:
    """What the admission side of a manager is made of."""

    options: Options
    features: Sequence[Feature]
    client: Client
    cache: Cache
    applier: Applier
    clock: Clock
    metrics: CollectorRegistry
    server_version: Callable[[], Any]
    leads: Callable[[], bool]
    """Whether this replica leads, or nobody is elected."""
    certificate: ServingCertificate
    """To be kept fresh: the journal is served with it, too."""


def https_webhooks(parts: AdmissionParts) -> AdmissionSide:
    return Webhooks(
        parts.options,
        parts.features,
        client=parts.client,
        cache=parts.cache,
        applier=parts.applier,
        clock=parts.clock,
        metrics=parts.metrics,
        server_version=parts.server_version,
        leads=parts.leads,
        certificate=parts.certificate,
    )


class Manager:
    """One replica. `run` ends when `stop` is set, or raises what ended it early (`LeadershipLostError`)."""

    def __init__(
        self,
        options: Options,
        features: Sequence[Feature],
        transport: Transport,
        *,
        clock: Clock,
        random: Random,
        admission: Callable[[AdmissionParts], AdmissionSide] = https_webhooks,
    ) -> None:
        self._options = options
        self._features = features
        self._transport = transport
        self._clock = clock
        self._random = random
        self.registry = CollectorRegistry()
        self._metrics = Metrics(self.registry)
        self._rollouts = Rollouts(self.registry, clock=clock, per_workload=options.metrics_per_workload)
        self.journal = Journal(on_plan=self._rollouts.decided)
        self.reports = Reports(self.journal, self._subjects, self._waiting)
        self._client = Client(transport, clock=clock, field_manager=FIELD_MANAGER)
        self._cache = Cache(self._client, clock=clock, namespace=options.namespace, seed=random.getrandbits(32))
        self._server_version: Any = None
        self._endpoints = Endpoints()
        self._certificate = ServingCertificate()
        self._recorders: list[EventRecorder] = []
        self._controllers: list[Controller[Any]] = []
        self._is_ending = False
        self.serving = asyncio.Event()
        """Webhooks answer: what is written from now on passes admission."""
        self._elector = self._make_elector() if options.elect else None
        # Whatever a controller writes, events included, passes the fence; webhooks answer on every replica.
        fenced = FencedTransport(transport, self._elector.fence) if self._elector else transport
        self._leader_client = Client(fenced, clock=clock, field_manager=FIELD_MANAGER)
        self._applier = Applier(
            self._leader_client, self._cache, clock=clock, limiter=self._make_limiter(), metrics=self._metrics
        )
        self._webhooks = admission(self._admission_parts()) if options.role is not Role.CONTROLLERS else None

    def _make_elector(self) -> LeaderElector:
        options = self._options
        return LeaderElector(
            self._client,
            identity=f"{socket.gethostname()}_{self._random.getrandbits(64):016x}",
            namespace=options.lease_namespace,
            name=options.lease_name,
            clock=self._clock,
            random=self._random,
            lease_duration=options.lease_duration,
            renew_deadline=options.renew_deadline,
            retry_period=options.retry_period,
            on_change=self._on_leadership,
        )

    def _on_leadership(self, leads: bool) -> None:
        self._metrics.is_leader.set(leads)
        if self._webhooks is not None:
            self._webhooks.leadership_changed()

    def _leads(self) -> bool:
        """A replica with the role `webhook` stands for no election: nobody of its kind leads."""
        if self._elector is None or self._options.role is Role.WEBHOOK:
            return True
        return self._elector.fence.may_send_for > 0

    def _make_limiter(self) -> WriteLimiter:
        options, bucket = self._options, None
        if options.qps > 0:
            burst = max(1, options.burst or int(options.qps))
            bucket = TokenBucket(rate=options.qps, burst=burst, clock=self._clock)
        return WriteLimiter(clock=self._clock, bucket=bucket)

    def _make_backoff(self) -> Backoff:
        options, overall = self._options, None
        if options.retry_qps > 0:
            overall = TokenBucket(rate=options.retry_qps, burst=max(1, options.retry_burst), clock=self._clock)
        return Backoff(base=options.retry_base_delay, maximum=options.retry_max_delay, overall=overall)

    def _admission_parts(self) -> AdmissionParts:
        return AdmissionParts(
            options=self._options,
            features=self._features,
            client=self._client,
            cache=self._cache,
            applier=Applier(self._client, self._cache, clock=self._clock),
            clock=self._clock,
            metrics=self.registry,
            server_version=lambda: self._server_version,
            leads=self._leads,
            certificate=self._certificate,
        )

    async def run(self, stop: asyncio.Event) -> None:
        for notice in self._options.notices:
            log.warning(notice)
        background: list[asyncio.Task[None]] = []
        work: list[asyncio.Task[None]] = []
        ending = asyncio.create_task(_until(stop), name="stop")
        leaves = False
        try:
            await self._serve()
            background.append(_task(self._cache.run(), "watches"))
            background.append(_task(self._watch_history(), "history"))
            if self._webhooks is not None:
                background.append(_task(self._webhooks.run(), "webhooks"))
            if self._options.role is not Role.WEBHOOK:
                work.append(_task(self._work(), "controllers"))
            done, _ = await asyncio.wait({ending, *background, *work}, return_when=asyncio.FIRST_COMPLETED)
            leaves = all(_ended_in_order(task) for task in done)
            for task in done:
                task.result()
        finally:
            log.info("shutting down")
            self._is_ending = True
            await self._end_work([ending, *work], leaves=leaves)
            if self._webhooks is not None:
                await self._webhooks.stop()
            await _end(background)
            await self._endpoints.close()
            await self._transport.close()
            log.info("ended")

    async def _end_work(self, work: Sequence[asyncio.Task[None]], *, leaves: bool) -> None:
        """Another replica can lead at once, however long webhooks are answered here."""
        if self._webhooks is None or not leaves:
            await _end(work)
            return
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_end(work), name="end")
            tasks.create_task(self._webhooks.leave(), name="leave")

    async def _ready(self) -> str:
        assert self._webhooks is not None
        return "this process ends" if self._is_ending else await self._webhooks.ready()

    async def _serve(self) -> None:
        options = self._options
        if options.health_address:
            checks = [("webhook-ready", self._ready)] if self._webhooks is not None else []
            await self._endpoints.serve(health_app(checks, self._details), options.health_address)
        if options.metrics_address:
            await self._endpoints.serve(metrics_app(self.registry), options.metrics_address)
        if options.journal_address and options.role is not Role.WEBHOOK:
            await self._serve_journal()
        if self._webhooks is not None:
            await self._webhooks.start()
        self.serving.set()

    async def _serve_journal(self) -> None:
        options = self._options
        if self._webhooks is None:
            # Nobody keeps a certificate here. One that nobody can check is as good as none to an API server in
            # between: it checks no certificate of a pod.
            try:
                self._certificate.use(issue("localhost", self._clock.now()))
            except OSError as error:
                log.error(
                    "no journal is served: its certificate cannot be loaded without a writable temporary directory "
                    "(TMPDIR). Controllers work all the same",
                    extra={"address": options.journal_address, "error": str(error)},
                )
                return
        app = journal_app(self.reports, Reviewer(self._client, clock=self._clock, namespace=options.own_namespace))
        await self._endpoints.serve(app, options.journal_address, self._certificate.context)

    def _details(self) -> list[Detail]:
        """What does not make this replica unready, but explains why nothing may be moving."""
        details = [Detail(f"waiting for {kind}: {why}") for kind, why in self._cache.waiting_for.items()]
        if self._elector is not None:
            text = f"lease {self._options.lease_name} is held by {self._elector.holder or 'nobody'}"
            details.append(Detail(text, is_met=self._elector.is_leading))
        return details

    def _subjects(self) -> Subjects:
        return {spec.name: spec.subject for feature in self._features for spec in feature.controllers(self._options)}

    def _waiting(self) -> list[dict[str, Any]]:
        """Every delayed pass, what it waits for, and for how long still."""
        return [
            {"controller": controller.spec.name, "key": str(wait.key), "seconds": wait.due_in, "reason": wait.reason}
            for controller in self._controllers
            for wait in controller.queue.waiting()
        ]

    async def _watch_history(self) -> None:
        """A server whose versions went back was restored from a backup, or is another one: the stores cannot follow."""
        while not (lost := [kind for kind in self._cache.status() if kind.history_lost]):  # noqa: ASYNC110
            await asyncio.sleep(_HISTORY_CHECK_SECONDS)
        raise HistoryLostError(
            f"the API server's history went back for {', '.join(str(kind.resource) for kind in lost)}"
        )

    async def _work(self) -> None:
        self._server_version = await self._ask_version()
        self._controllers = self._make_controllers()
        if self._elector is None:
            options = self._options
            await old_lease.forget(self._client, options.lease_namespace, options.lease_name, clock=self._clock)
            self._metrics.is_leader.set(1)
            await self._lead()
        else:
            await self._elector.run(self._lead)

    async def _ask_version(self) -> Any:
        while True:
            try:
                return await self._client.server_version()
            except ClientError as error:
                log.warning("waiting for the API server", extra={"error": str(error)})
                await asyncio.sleep(_VERSION_RETRY_SECONDS)

    def _make_controllers(self) -> list[Controller[Any]]:
        options = self._options
        controllers = []
        for feature in self._features:
            for spec in feature.controllers(options):
                recorder = EventRecorder(self._leader_client, component=spec.name, clock=self._clock)
                self._recorders.append(recorder)
                controllers.append(
                    Controller(
                        spec,
                        cache=self._cache,
                        applier=self._applier,
                        recorder=recorder,
                        clock=self._clock,
                        journal=self.journal,
                        metrics=self._metrics,
                        backoff=self._make_backoff(),
                        gates=options.gates,
                        server_version=self._server_version,
                        seed=self._random.getrandbits(64),
                        sync_timeout=None,
                        outside=self._outside(spec),
                    )
                )
        return controllers

    def _outside(self, spec: ControllerSpec[Any]) -> Outside | None:
        return spec.outside(self._leader_client, self._cache, self._clock) if spec.outside is not None else None

    async def _lead(self) -> None:
        recording = [_task(recorder.run(), "events") for recorder in self._recorders]
        try:
            self._follow_rollouts()
            async with asyncio.TaskGroup() as tasks:
                for controller in self._controllers:
                    tasks.create_task(self._control(controller), name=controller.spec.name)
                    if self._options.sync_period:
                        tasks.create_task(self._resync(controller), name=f"{controller.spec.name}-resync")
                await asyncio.get_running_loop().create_future()  # leads until cancelled, also without controllers
        finally:
            self._rollouts.forget()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_EVENT_FLUSH_SECONDS):
                    await asyncio.gather(*(recorder.flush() for recorder in self._recorders))
            await _end(recording)

    def _follow_rollouts(self) -> None:
        for spec in (controller.spec for controller in self._controllers):
            face = face_of(spec.subject.group, spec.subject.kind)
            if face is not None and is_measured(face):
                self._rollouts.follow(face, spec.name, self._cache.store(spec.subject))

    async def _control(self, controller: Controller[Any]) -> None:
        # The watches may lag behind what the leader before has written.
        await self._cache.fresh_relist(resources=controller.resources)
        await controller.run()

    async def _resync(self, controller: Controller[Any]) -> None:
        while True:
            await asyncio.sleep(self._options.sync_period)
            for obj in self._cache.store(controller.spec.subject).list():
                controller.queue.add(key_of(obj), reason="sync period")


def tune_collection() -> None:
    """For a process that is nothing but a manager. What is alive now stays for ever: later collections need not look
    at it, and objects of the stores are untracked."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)


def reconcile_fields() -> dict[str, str]:
    """The running reconcile, for log lines."""
    context = RECONCILE.get()
    if context is None:
        return {}
    return {"controller": context.controller, "object": str(context.key), "reconcile_id": context.reconcile_id}


def open_protection_log(directory: str) -> None:
    """Refusals of deletions are also kept in a file of their own. Without a place for it the manager works all the
    same: they are in the ordinary log, too."""
    path = Path(directory) / "protection.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = logging.FileHandler(path, delay=False)
    except OSError as error:
        log.warning("no protection log", extra={"path": str(path), "error": os.strerror(error.errno or 0)})
        return
    logging.getLogger("kruise.protection").addHandler(handler)


def _task(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    return asyncio.create_task(work, name=name)


async def _until(stop: asyncio.Event) -> None:
    await stop.wait()


def _ended_in_order(task: asyncio.Task[None]) -> bool:
    """What this process knows is still true: it was asked to end, or another replica leads now."""
    return not task.cancelled() and isinstance(task.exception(), LeadershipLostError | None)


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel and wait. What a task raised while it ended has been reported where it arose, or by the first to end."""
    for task in tasks:
        task.cancel()
    for task in tasks:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait({task})
            if not task.cancelled() and (error := task.exception()) is not None:
                log.debug("task ended with an error", extra={"task": task.get_name(), "error": str(error)})
