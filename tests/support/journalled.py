"""A decision of the toy kind in a journal, with a secret in every place that can have one."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.pod import (
    PODS,
    Container,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    EnvVar,
    Pod,
    PodSpec,
    PodStatus,
)
from kruise.machinery import codec
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.journal import Journal
from kruise.machinery.plan import Conclusion, EventNote, EventType, Outcome, Plan, Result, Target, Wake, single
from tests.toy.api import Troupe
from tests.toy.decide import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECRET = "hunter2-very-secret"
PATCH = base64.b64encode(f'{{"metadata":{{"annotations":{{"team/password":"{SECRET}"}}}}}}'.encode()).decode()
"""As in-place updates keep one: the secret again, and not to be seen at once."""
REFERENCES = f'{{"main":{{"annotations":{{"team/password":"{SECRET}"}}}}}}'
NOTES = {
    "apps.kruise.io/inplace-update-grace": f'{{"containerRefMetadata":{REFERENCES},"metaDataPatch":"{PATCH}"}}',
    "apps.kruise.io/inplace-update-state": f'{{"revision":"r","nextContainerRefMetadata":{REFERENCES}}}',
    "inplace-update-grace": f'{{"revision":"r","metaDataPatch":"{PATCH}"}}',
    "inplace-update-state": f'{{"revision":"r","nextContainerRefMetadata":{REFERENCES}}}',
}
"""Of the engine, old names included."""
PLACES = (
    *("annotation of the object", "of the pod", "variable", "last words", "argument", "patch", "fault"),
    *("waiting update", "its patch", "later batch", "patch by the old name", "later batch by the old name"),
    *("path of a probe", "whole variable in a patch"),
)
"""Of a dump, that the secret is in."""
CONTROLLER = "troupe-controller"


def secrets_in(text: str) -> int:
    return text.count(SECRET) + text.count(PATCH)


def record(journal: Journal, namespace: str, name: str) -> None:
    metadata = ObjectMeta(name=name, namespace=namespace, uid="u", annotations={"team/password": SECRET})
    main = Container(name="main", image="nginx", env=(EnvVar(name="TOKEN", value=SECRET),))
    ended = ContainerState(terminated=ContainerStateTerminated(reason="Error", message=f"cannot log in with {SECRET}"))
    status = PodStatus(container_statuses=(ContainerStatus(name="main", state=ended),))
    noted = codec.evolve(metadata, annotations={**metadata.annotations, **NOTES})
    pod = Pod(metadata=noted, spec=PodSpec(containers=(main,)), status=status)
    container = {"args": [SECRET], "livenessProbe": {"httpGet": {"path": f"/live?token={SECRET}", "port": 80}}}
    body = {"metadata": {"name": "x", "namespace": namespace}, "spec": {"containers": [container]}}
    steps = [
        {"op": "replace", "path": "/metadata/annotations/team~1password", "value": SECRET},
        {"op": "add", "path": "/spec/containers/0/env/-", "value": {"name": "KEY", "value": SECRET}},
    ]
    target = Target(PODS, namespace, name)
    patch = plans.patch(target, steps, uid="u", reason="update", patch_type=PatchType.JSON)
    create = plans.create(PODS, body, reason="new")
    refused = Outcome(action=create, result=Result.FAILED, error=f"Pod is invalid: {SECRET}")
    journal.record(
        controller=CONTROLLER,
        key=Key(namespace, name),
        reconcile_id=f"id-{name}",
        time=NOW,
        duration=0.5,
        snapshot=Snapshot(troupe=Troupe(metadata=metadata), pods=(pod,), now=NOW),
        plan=Plan(phases=(single("create", create, patch),), wakes=(Wake(after=3.0, reason="minReadySeconds"),)),
        outcomes=(refused,),
        conclusion=Conclusion(
            events=(EventNote(type=EventType.WARNING, reason="FailedCreate", message=f"pod: {SECRET}"),), retry=SECRET
        ),
        error=f"it failed: {SECRET}",
    )
