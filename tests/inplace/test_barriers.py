"""Containers that wait for their turn, told apart from those that cannot start (CLP-8, CLP-10)."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import Pod
from kruise.inplace import keys
from kruise.inplace.barriers import waits_for_turn
from kruise.machinery import codec
from kruise.model import podstates

Json = dict[str, Any]
BARRIER = {"configMapKeyRef": {"name": "web-barrier", "key": "p_0"}}
NO_KEY, NO_MAP = "couldn't find key p_0 in ConfigMap demo/web-barrier", 'configmap "web-barrier" not found'


def pod(reason: str, message: str, reference: Json | None) -> Pod:
    env = [{"name": keys.BARRIER_ENV, "valueFrom": reference}] if reference is not None else []
    status = {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}
    document = {
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"containers": [{"name": "main", "image": "nginx:1", "env": env}]},
        "status": {"phase": "Pending", "containerStatuses": [status]},
    }
    return codec.convert(document, Pod)


@pytest.mark.parametrize(
    ("reason", "message", "reference", "waits"),
    [
        ("CreateContainerConfigError", NO_KEY, BARRIER, True),
        ("CreateContainerConfigError", NO_MAP, BARRIER, True),
        ("CreateContainerConfigError", 'secret "password" not found', BARRIER, False),
        ("CreateContainerConfigError", NO_KEY, None, False),
        ("CreateContainerConfigError", NO_KEY, {"configMapKeyRef": {"name": "web-barrier", "key": "first"}}, False),
        ("CrashLoopBackOff", NO_KEY, BARRIER, False),
        ("ContainerCreating", "", BARRIER, False),
    ],
)
def test_who_waits_for_its_turn(reason: str, message: str, reference: Json | None, waits: bool) -> None:
    found = pod(reason, message, reference)
    assert waits_for_turn(found, found.status.container_statuses[0]) is waits


def test_a_pod_that_starts_in_order_is_in_no_trouble() -> None:
    """A forecast would call its revision broken."""
    assert podstates.trouble(pod("CreateContainerConfigError", NO_KEY, BARRIER)) == ""
    assert podstates.trouble(pod("CreateContainerConfigError", "no secret", BARRIER)) != ""
