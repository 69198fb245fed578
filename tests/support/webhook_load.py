"""Somebody who makes, changes and deletes pods and CloneSets all the time, each write through the webhooks, and notes
what failed.

    with WebhookLoad(cluster, "load") as load:
        ...                      # upgrade something
    assert load.failures == []
"""

from __future__ import annotations

import dataclasses
import threading
import time
from types import TracebackType
from typing import Any, Self

from tests.support.incluster import clone_set
from tests.support.realcluster import ControlPlane

Json = dict[str, Any]
PODS = "/api/v1/namespaces/{}/pods"
CLONE_SETS = "/apis/apps.kruise.io/v1beta1/namespaces/{}/clonesets"
OLDER_CLONE_SETS = "/apis/apps.kruise.io/v1alpha1/namespaces/{}/clonesets"
_PAUSE = 0.02


@dataclasses.dataclass(frozen=True)
class Failure:
    began: float
    ended: float
    what: str
    code: int
    message: str


class WebhookLoad:
    """Pods have a scheduler that there is none of: they cost a write, and no container."""

    def __init__(self, cluster: ControlPlane, namespace: str, *, clients: int = 3, timeout: float = 40.0) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._timeout = timeout
        self._stop = threading.Event()
        self._counting = threading.Lock()
        self._threads = [threading.Thread(target=self._go_on, args=(number,)) for number in range(clients)]
        self.failures: list[Failure] = []
        self.slowest = 0.0
        self.requests = 0
        self.successes_in_a_row = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def __str__(self) -> str:
        return f"{self.requests} requests, {len(self.failures)} failed, slowest {self.slowest:.2f} s"

    def _go_on(self, number: int) -> None:
        turn = 0
        while not self._stop.is_set():
            turn += 1
            name = f"load-{number}-{turn}"
            self._live_through(PODS, name, _pod(name), {"metadata": {"annotations": {"turn": str(turn)}}})
            body = clone_set(name, replicas=0)
            self._live_through(CLONE_SETS, name, body, {"spec": {"minReadySeconds": turn}})
            # Written in one version and stored in another: the conversion webhook is asked.
            self._ask("LIST", "GET", OLDER_CLONE_SETS.format(self._namespace))

    def _live_through(self, path: str, name: str, body: Json, patch: Json) -> None:
        path = path.format(self._namespace)
        if self._ask(f"create {name}", "POST", path, body):
            self._ask(f"change {name}", "PATCH", f"{path}/{name}", patch)
            self._ask(f"delete {name}", "DELETE", f"{path}/{name}?gracePeriodSeconds=0")

    def _ask(self, what: str, method: str, path: str, body: Json | None = None) -> bool:
        began = time.monotonic()
        try:
            answer = self._cluster.request(method, path, body, timeout=self._timeout)
            code, message = answer.status, str(answer.body)
        except OSError as error:
            code, message = 0, f"{type(error).__name__}: {error}"
        ended = time.monotonic()
        is_good = 200 <= code < 300
        with self._counting:
            self.requests += 1
            self.slowest = max(self.slowest, ended - began)
            self.successes_in_a_row = self.successes_in_a_row + 1 if is_good else 0
            if not is_good:
                self.failures.append(Failure(began, ended, what, code, message[:300]))
        # Those who answer share the machine with whoever asks.
        self._stop.wait(_PAUSE)
        return is_good


def _pod(name: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {"app": "load"}},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": "nginx:1.25"}]},
    }
