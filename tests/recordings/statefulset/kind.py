"""StatefulSet, as the player knows it: its pods have names, and the recordings are in v1beta1."""

from __future__ import annotations

from kruise.api.apps.statefulset import STATEFUL_SETS
from kruise.machinery.clock import Clock
from tests.recordings.kinds import RecordedKind
from tests.recordings.parsing import Json


class OneOfEachName:
    """No two pods of one name are there at once, and none takes the place of another that has not gone."""

    def __init__(self, clock: Clock) -> None:
        self._living: dict[str, str] = {}
        self.broken: list[str] = []
        self.checked = 0

    def touched(self, name: str) -> None: ...

    def deleted(self, name: str) -> None: ...

    def see_workload(self, kind: str, workload: Json) -> None: ...

    def see_pod(self, kind: str, pod: Json) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self.checked += 1
        if kind == "DELETED":
            self._living.pop(name, None)
        elif self._living.setdefault(name, uid) != uid:
            self.broken.append(f"two pods {name} at once")


KIND = RecordedKind(resource=STATEFUL_SETS, promises=OneOfEachName, names_pods=True)
