"""What verbs, status and `why` must know of a NodeImage."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.faces.face import Face, Pods, resource
from kruise.faces.progress import Progress, number
from kruise.machinery.documents import Json, name_of, value_at
from kruise.machinery.wording import plural
from kruise.operations.images import causes as pulls


def progress(document: Json) -> Progress:
    """Done when the node has every image that it is asked for."""
    images = value_at(document, ("spec", "images"), {}) or {}
    wanted = sum(len(entry.get("tags") or ()) for entry in images.values())
    there, failed = number(document, "status", "succeeded"), number(document, "status", "failed")
    seen = Progress(wanted=wanted, expected=wanted, updated=there, ready=there, available=there, total=there + failed)
    node = f'node "{name_of(document)}"'
    if there + failed < wanted:
        return seen.waiting(f"{there} of {plural(wanted, 'image')} are there...")
    if failed:
        return seen.failed(f"{node}: {failed} of {plural(wanted, 'image')} could not be pulled")
    return seen.done(f"{node} has what it is asked for: {plural(wanted, 'image')}")


FACE = Face(
    resource=resource(GROUP, "v1beta1", "nodeimages", "NodeImage", namespaced=False),
    versions=("v1alpha1", "v1beta1"),
    is_ours=True,
    template=None,
    selector=None,
    replicas=None,
    pods=Pods.NONE,
    runs_to_end=True,
    progress=progress,
    causes=pulls.CAUSES,
)
