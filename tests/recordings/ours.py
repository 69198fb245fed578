"""Our cluster in the words of a recording: the same aspects, with names, times and ids put out of sight."""

from __future__ import annotations

import re

from kruise.faces.kstatus import RECONCILING, STALLED
from tests.recordings.parsing import Json
from tests.recordings.recorded import ID_LABEL, TIMESTAMP, Picture

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_IMAGE_ID = re.compile(r'sim://([^"\\\s]+)')


class Names:
    """Revision hashes by the order of their first sight, pods by the order of creation."""

    def __init__(self, *, names_pods: bool = False) -> None:
        self._names_pods = names_pods
        self.hashes: dict[str, str] = {}
        self.raw_revisions: list[str] = []
        self.pods: list[str] = []

    def see_revision(self, kind: str, revision: Json) -> None:
        name = revision["metadata"]["name"]
        hashed = name.rpartition("-")[2]
        if kind == "ADDED" and hashed not in self.hashes:
            self.hashes[hashed] = f"rev-{len(self.hashes) + 1}"
            self.raw_revisions.append(name)

    def see_pod(self, kind: str, pod: Json) -> None:
        name = pod["metadata"]["name"]
        if kind == "ADDED" and name not in self.pods:
            self.pods.append(name)

    def plain(self, text: str) -> str:
        for hashed, plain in self.hashes.items():
            text = text.replace(hashed, plain)
        text = _TIME.sub("<time>", text)
        return _IMAGE_ID.sub(r"<imageID \1>", text)

    def without_pods(self, text: str) -> str:
        if self._names_pods:
            return text
        for name in self.pods:
            text = text.replace(name, "pod-N")
        return text


def pod_picture(pod: Json, names: Names) -> Picture:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    labels = {key: names.plain(value) for key, value in metadata.get("labels", {}).items()}
    annotations = {key: names.plain(value) for key, value in metadata.get("annotations", {}).items()}
    if ID_LABEL in labels:
        labels[ID_LABEL] = "<id>"
    picture: Picture = {
        "timestamp of the state": annotations.pop(TIMESTAMP, None),
        "labels": labels,
        "annotations": annotations,
        "finalizers": metadata.get("finalizers", []),
        "owners": [f"{owner['kind']}/{owner['name']}" for owner in metadata.get("ownerReferences", ())],
        "generation": metadata.get("generation", 1),
        "terminating": "deletionTimestamp" in metadata,
        "images": {container["name"]: container["image"] for container in spec["containers"]},
        "gates": [gate["conditionType"] for gate in spec.get("readinessGates", ())],
        "phase": status.get("phase"),
    }
    for condition in status.get("conditions", ()):
        told = (condition["status"], condition.get("reason", ""), condition.get("message", ""))
        if (condition["type"], condition["status"]) == ("Ready", "True"):
            told = ("True", "", "")  # the simulated nodes leave an old message behind
        picture[f"condition {condition['type']}"] = told
    for container in status.get("containerStatuses", ()):
        picture[f"container {container['name']}"] = {
            "image": container["image"],
            "restartCount": str(container["restartCount"]),
            "ready": str(container["ready"]),
        }
    return picture


def workload_picture(workload: Json, names: Names) -> Json:
    spec: Json = {key: value for key, value in workload["spec"].items() if key != "template"}
    status: Json = {}
    for key, value in workload.get("status", {}).items():
        status[key] = names.plain(value) if isinstance(value, str) else value
    if status.get("updatedAvailableReplicas") == 0:
        del status["updatedAvailableReplicas"]  # the original leaves a zero out
    conditions = {
        condition["type"]: tuple(condition.get(key, "") for key in ("status", "reason", "message"))
        for condition in status.pop("conditions", ())
        if condition["type"] not in (RECONCILING, STALLED)  # which the original does not have
    }
    return {
        "generation": workload["metadata"]["generation"],
        "spec": spec,
        "status": status,
        "conditions": {
            kind: tuple(names.without_pods(names.plain(word)) for word in told) for kind, told in conditions.items()
        },
    }


def revision_picture(revision: Json, names: Names) -> Json:
    metadata = revision["metadata"]
    return {
        "labels": {key: names.plain(value) for key, value in metadata["labels"].items()},
        "annotations": metadata.get("annotations", {}),
        "revision": revision["revision"],
        "owned": bool(metadata.get("ownerReferences")),
    }


def claim_picture(claim: Json) -> Json:
    metadata = claim["metadata"]
    spec = {key: value for key, value in claim["spec"].items() if key != "volumeName"}
    return {
        "labels": {**metadata["labels"], **({ID_LABEL: "<id>"} if ID_LABEL in metadata["labels"] else {})},
        "owners": [owner["kind"] for owner in metadata.get("ownerReferences", ())],
        "terminating": "deletionTimestamp" in metadata,
        "spec": spec,
    }
