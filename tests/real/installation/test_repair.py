"""Managers that come back, and those at work, repair what was lost or spoiled: on three real nodes.

What is shown here is in docs/install.md, with the figures.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from kruise.admission import certificates
from tests.support.availability import (
    DEFINITION,
    DEMO,
    MUTATING,
    SECRET,
    VALIDATING,
    Json,
    bundles,
    conversion,
    entries,
    pod,
    scale_managers,
)
from tests.support.incluster import NAMESPACE, InCluster
from tests.support.realnodes import RealNodes

pytestmark = [pytest.mark.nodes, pytest.mark.long, pytest.mark.together("installation")]

CA = "ca-cert.pem"
CONVERTED = "/apis/apps.kruise.io/v1alpha1/namespaces/demo/clonesets"


def data(nodes: RealNodes) -> dict[str, str]:
    answer = nodes.request("GET", SECRET)
    return dict(answer.body.get("data") or {}) if answer.status == 200 else {}


def spoil_bundles(nodes: RealNodes, path: str) -> None:
    """Every entry trusts somebody else."""
    stranger = base64.b64encode(certificates.issue("stranger", datetime.now(UTC)).ca_cert).decode()
    found = nodes.request("GET", path).ok()["webhooks"]
    webhooks = [{**each, "clientConfig": {**each["clientConfig"], "caBundle": stranger}} for each in found]
    nodes.request("PATCH", path, {"webhooks": webhooks}).ok()


def spoil_conversion(nodes: RealNodes) -> None:
    wrong = {"caBundle": None, "service": {"namespace": NAMESPACE, "name": "nobody", "path": "/nowhere", "port": 444}}
    nodes.request("PATCH", DEFINITION, {"spec": {"conversion": {"webhook": {"clientConfig": wrong}}}}).ok()


def expired(nodes: RealNodes) -> dict[str, str]:
    """What a Secret has whose CA's time is over."""
    past = datetime.now(UTC) - timedelta(days=3700)
    service = f"kruise-webhook-service.{NAMESPACE}.svc"
    return {name: base64.b64encode(text).decode() for name, text in certificates.issue(service, past).to_data().items()}


class Sound:
    """What an installation should be like, taken from one that is."""

    def __init__(self, running: InCluster) -> None:
        self._running = running
        self._nodes = running.nodes
        self._entries, self._conversion = entries(running.nodes), conversion(running.nodes)
        assert all(self._entries)

    def is_there(self) -> bool:
        nodes = self._nodes
        if (entries(nodes), conversion(nodes)) != (self._entries, self._conversion):
            return False
        trusted, ca = bundles(nodes), data(nodes).get(CA)
        return ca is not None and all(base64.b64decode(ca) in base64.b64decode(bundle) for bundle in trusted)

    def check(self) -> None:
        """Also as those see it who are to be served."""
        self._running.wait(self.is_there, "all is as it was installed", within=90)
        self._running.wait_ready()
        nodes = self._nodes
        asked = self._running.wait
        asked(lambda: nodes.request("POST", f"{DEMO}/pods?dryRun=All", pod("alive")).status == 201, "a pod is let in")
        asked(lambda: nodes.request("GET", CONVERTED).status == 200, "CloneSets are converted")


@contextmanager
def without_managers(running: InCluster, what: str) -> Iterator[None]:
    """Whatever is done meanwhile is put right by those who come back; says how long they took."""
    sound = Sound(running)
    scale_managers(running, 0)
    yield
    assert not sound.is_there()
    began = time.monotonic()
    scale_managers(running, 2)
    sound.check()
    print(f"{what}: all answers again {time.monotonic() - began:.1f} s after managers were asked for")


def test_a_secret_and_a_configuration_that_are_gone_come_back_with_the_managers(running: InCluster) -> None:
    # MGR-81, MGR-82, PW-50, PW-52
    nodes = running.nodes
    before = data(nodes)
    with without_managers(running, "Secret and a whole configuration deleted, a conversion spoiled"):
        nodes.request("DELETE", SECRET).ok()
        nodes.request("DELETE", MUTATING).ok()
        spoil_conversion(nodes)
    assert data(nodes)[CA] != before[CA]


def test_an_expired_ca_and_spoiled_entries_are_put_right_by_managers_that_come_back(running: InCluster) -> None:
    # MGR-81, MGR-82, PW-50
    nodes = running.nodes
    old = expired(nodes)
    with without_managers(running, "CA expired, one list of entries emptied, bundles of the other of a stranger"):
        nodes.request("PATCH", SECRET, {"data": old}).ok()
        nodes.request("PATCH", VALIDATING, {"webhooks": []}).ok()
        spoil_bundles(nodes, MUTATING)
    assert data(nodes)[CA] != old[CA]


def test_managers_at_work_put_right_what_somebody_spoils(running: InCluster) -> None:  # MGR-81, MGR-82, PW-52
    nodes = running.nodes
    sound = Sound(running)

    def emptied() -> None:
        nodes.request("PATCH", SECRET, {"data": dict.fromkeys(data(nodes))}).ok()

    def deleted() -> None:
        nodes.request("DELETE", SECRET).ok()

    def expire() -> None:
        nodes.request("PATCH", SECRET, {"data": expired(nodes)}).ok()

    spoiled: dict[str, Callable[[], object]] = {
        "entries emptied": lambda: nodes.request("PATCH", MUTATING, {"webhooks": []}).ok(),
        "bundles of a stranger": lambda: spoil_bundles(nodes, VALIDATING),
        "conversion spoiled": lambda: spoil_conversion(nodes),
        "Secret emptied": emptied,
        "Secret deleted": deleted,
        "CA expired": expire,
    }
    took: dict[str, float] = {}
    for what, spoil in spoiled.items():
        before: Json = data(nodes)
        is_secret = "Secret" in what or "CA" in what
        began = time.monotonic()
        spoil()

        def is_mended(old: Json = before, renewed: bool = is_secret) -> bool:
            return sound.is_there() and (data(nodes).get(CA) != old[CA]) == renewed

        running.wait(is_mended, what, within=90, every=0.05)
        took[what] = time.monotonic() - began
        sound.check()
    print("; ".join(f"{what}: mended after {seconds:.1f} s" for what, seconds in took.items()))
