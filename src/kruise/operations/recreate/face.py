"""What verbs, status and `why` must know of a ContainerRecreateRequest."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress
from kruise.machinery.documents import Json, name_of, value_at
from kruise.operations.recreate import causes


def progress(document: Json) -> Progress:
    """Done when every container has been recreated; containers count as replicas do elsewhere."""
    name = name_of(document)
    wanted = len({str(item.get("name")) for item in value_at(document, ("spec", "containers"), ())})
    states = value_at(document, ("status", "containerRecreateStates"), [])
    done = sum(state.get("phase") == "Succeeded" for state in states)
    seen = Progress(wanted=wanted, expected=wanted, updated=done, ready=done, available=done, total=wanted)
    phase = value_at(document, ("status", "phase"), "")
    if phase != "Completed":
        return seen.waiting(f"{done} of {wanted} containers have been recreated...")
    message = value_at(document, ("status", "message"), "")
    failed = [f"{state['name']}: {state['message']}" for state in states if state.get("phase") == "Failed"]
    if message or done < wanted:
        why = message or "; ".join(failed) or "the others were not touched"
        return seen.failed(f'request "{name}": {done} of {wanted} containers recreated: {why}')
    return seen.done(f'request "{name}": all {wanted} containers recreated')


FACE = Face(
    resource=resource(GROUP, "v1beta1", "containerrecreaterequests", "ContainerRecreateRequest"),
    versions=("v1alpha1", "v1beta1"),
    short_names=("crr",),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    runs_to_end=True,
    progress=progress,
    causes=causes.CAUSES,
)
