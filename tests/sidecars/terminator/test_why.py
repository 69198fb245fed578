"""What `why` says of pods that wait for the order of their containers, or for their sidecars to end."""

from __future__ import annotations

from typing import Any

from kruise.api.native.pod import Pod
from kruise.machinery import codec
from kruise.machinery.causes import Act
from kruise.reasons.diagnosis import Place, diagnose
from kruise.reasons.links import Link
from tests.sidecars.launch_priority.test_launch_priority import seen
from tests.sidecars.terminator.test_terminator import DONE, NOW, SIDE, pod


def told(found: Pod) -> list[Link]:
    return list(diagnose(found, min_ready_seconds=0, now=NOW, place=Place()))


def on_a_node(found: Pod) -> Pod:
    document: dict[str, Any] = codec.decode(codec.encode(found), dict[str, Any])
    document["spec"]["nodeName"] = "n"
    return codec.convert(document, Pod)


def test_whom_a_container_waits_for() -> None:  # CLP-16
    links = [link for link in told(on_a_node(seen(0, 10, started=(1,), missing=(0,)))) if link.code == "launch-order"]
    assert [link.message for link in links] == ["container c0 (priority 0) starts when c1 (priority 10) is ready"]
    assert links[0].act is Act.NOBODY
    opening = told(on_a_node(seen(0, 10, ready=(1,), missing=(0,))))
    assert [link.message for link in opening] == ["container c0 (priority 0) may start"]


def test_a_container_that_failed_for_good_is_named() -> None:  # CLP-16
    failed = told(on_a_node(seen(0, 10, ended={1: 3}, missing=(0,), policy="Never")))
    assert failed[0].message == "container c0 (priority 0) never starts: c1 failed, and is not started again"
    assert "kubectl delete pod p" in failed[0].remedy
    assert failed[0].act is Act.SOMEBODY
    again = told(on_a_node(seen(0, 10, ended={1: 3}, missing=(0,), policy="OnFailure")))
    assert "starts when c1 (priority 10) is ready" in again[0].message


def test_other_configuration_that_is_missing_stays_an_error() -> None:
    plain = on_a_node(seen(None, None, missing=(0,)))
    assert told(plain)[0].code == "container-error"


def test_which_sidecar_keeps_a_pod() -> None:  # JST-4
    links = told(pod(DONE, SIDE))
    assert [link.code for link in links] == ["sidecar-runs"]
    assert links[0].message == "its main containers are done, and sidecars still run: side"
    assert "sidecar-termination-u" in links[0].remedy
