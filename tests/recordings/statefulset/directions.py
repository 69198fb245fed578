"""What the words of the StatefulSet recordings leave open."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.recordings.directions import Directions


def _volume(name: str, storage_class: str, claim: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "claimRef": {"namespace": "demo", "name": claim},
            "hostPath": {"path": f"/{name}"},
        },
    }


def _class(name: str, *, grows: bool) -> Mapping[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "example.com/none",
        "allowVolumeExpansion": grows,
    }


_GROWN = (
    '{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],'
    '"storageClassName":"grow","resources":{"requests":{"storage":"3Gi"}}}}],'
    '"updateStrategy":{"rollingUpdate":{"partition":2}}}}'
)
_IMAGE = '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:1.26"}]'


def _counts(compatible: int, ready: int) -> str:
    told = {"compatibleReadyReplicas": ready, "compatibleReplicas": compatible, "volumeClaimName": "data"}
    return json.dumps([told])


def _reported(size: str, claim: str) -> str:
    body = json.dumps({"status": {"capacity": {"storage": size}}})
    return f"#### the storage side reports capacity {size} for {claim} (merge): {body}"


GAPS: Mapping[str, tuple[str, ...]] = {
    "statefulset-autoresize-pvc": (
        f"+20.9 {_reported('2Gi', 'data-web-1')}",
        f'+20.9 StatefulSet/web {{"status":{{"volumeClaims":{_counts(3, 2)}}}}}',
        f"+22.9 {_reported('2Gi', 'data-web-0')}",
        f'+22.9 StatefulSet/web {{"status":{{"volumeClaims":{_counts(3, 3)}}}}}',
        f"+24.5 #### grow to 3Gi with partition 2 (merge): {_GROWN}",
        '+24.5 StatefulSet/web {"metadata":{"generation":3},"spec":{"updateStrategy":{"rollingUpdate":'
        '{"partition":2}}}}',
        f'+24.6 StatefulSet/web {{"status":{{"observedGeneration":3,"volumeClaims":{_counts(1, 0)}}}}}',
        f"+24.9 #### set image to nginx:1.26 (json): {_IMAGE}",
        '+24.9 StatefulSet/web {"metadata":{"generation":4}}',
        '+24.9 ControllerRevision/web-rev-2 ADDED {"labels":{"app":"web","controller.kubernetes.io/hash":"rev-2"},'
        '"revision":2}',
        '+25.0 StatefulSet/web {"status":{"updatedAvailableReplicas":null,"updatedReadyReplicas":null,'
        '"observedGeneration":4,"updateRevision":"web-rev-2","updatedReplicas":0}}',
        f"+26.8 {_reported('3Gi', 'data-web-2')}",
    )
}
"""Steps, and what they led to, that a log leaves out. The list of steps and the rest of the log tell them."""

DIRECTIONS: Mapping[str, Directions] = {
    "statefulset-autoresize-pvc": Directions(
        objects=[
            _class("grow", grows=True),
            _class("fixed", grows=False),
            *(_volume(f"volume-{number}", "grow", f"data-web-{number}") for number in range(3)),
        ],
    ),
    "statefulset-inplace-grace": Directions(glances={3: 1.5}),
    "statefulset-maxunavailable-parallel": Directions(waits={1: 5.0}),  # minReadySeconds, and never early
    "statefulset-pvc-retain": Directions(
        together=frozenset({2, 4}),
        objects=[_volume(f"volume-{number}", "manual", f"data-web-{number}") for number in range(3)],
    ),
    "statefulset-reserveordinals": Directions(together=frozenset({4})),
}
