"""`rollout restart` (KK-3): a change of the template that means nothing but new pods."""

from __future__ import annotations

from datetime import datetime

from kruise.faces.face import Face, Restart
from kruise.machinery.documents import Json, edited, name_of, value_at, with_value
from kruise.machinery.times import format_time
from kruise.verbs import environment
from kruise.verbs.errors import VerbError
from kruise.verbs.lookup import pod_spec, template_path

VARIABLE = "RESTARTED_AT"
ANNOTATION = "kubectl.kubernetes.io/restartedAt"


def change(kind: Face, document: Json, now: datetime) -> Json:
    named, time = f'{kind.resource.group_resource} "{name_of(document)}"', format_time(now)
    if kind.restart is None:
        raise VerbError(f"{named} restarting is not supported")
    if kind.restart is Restart.ANNOTATION:
        if kind.paused is not None and value_at(document, kind.paused, False):
            raise VerbError(f"can't restart paused {kind.singular} (run rollout resume first): {named}")
        return with_value(document, (*template_path(kind, document), "metadata", "annotations", ANNOTATION), time)
    if _policy(document) == "InPlaceOnly":
        raise VerbError(
            f"{named} updates its pods in place only, and a restart needs new pods: set "
            "spec.updateStrategy.rollingUpdate.podUpdatePolicy to InPlaceIfPossible or ReCreate first"
        )
    edits = environment.Edits(({"name": VARIABLE, "value": time},))

    def edit(spec: Json) -> None:
        # Init containers run again with the new pod anyway.
        for container in spec.get("containers") or ():
            container["env"] = environment.updated(container.get("env") or [], edits)

    return edited(document, pod_spec(kind, document), edit)


def _policy(document: Json) -> str:
    """A DaemonSet has another word for it."""
    rolling = value_at(document, ("spec", "updateStrategy", "rollingUpdate"), {})
    return str(rolling.get("podUpdatePolicy") or rolling.get("rollingUpdateType") or "")


def notes(kind: Face, document: Json) -> list[str]:
    """What whoever restarts has to know."""
    if kind.restart is not Restart.ENVIRONMENT:
        return []
    said = [f"the pods are recreated: {VARIABLE} changes in the environment of every container"]
    if _policy(document).startswith("InPlace"):
        said.append("an in-place update cannot change the environment, so this update is not done in place")
    if kind.paused is not None and value_at(document, kind.paused, False):
        said.append(f"it is paused: nothing happens before kruise rollout resume {kind.word}/{name_of(document)}")
    return said
