"""Admission of CloneSets (CS-30 to CS-52).

Names in `podsToDelete` are looked up live (v1alpha1 only, CS-47): a store that lags behind would refuse a pod that has
just come, and the webhook need not keep every pod in memory for a question that is rarely asked.
"""

from __future__ import annotations

from kruise.admission.decisions import HandlerView, NeedsReads
from kruise.api.apps.cloneset import CloneSetSpec
from kruise.api.apps.conversion.cloneset import convert
from kruise.api.core.field_errors import FieldError, invalid
from kruise.api.native.pod import PODS, Pod
from kruise.machinery.ownership import is_controlled_by
from kruise.machinery.plan import Target
from kruise.workloads.cloneset.advice import warnings_of
from kruise.workloads.cloneset.defaults import defaulted
from kruise.workloads.cloneset.validation import PODS_TO_DELETE, problems
from kruise.workloads.cloneset.wire import Reading, read
from kruise.workloads.shared.admission import Admission, Judgement
from kruise.workloads.shared.validation import Candidate


def _judged(asked: Judgement[Reading]) -> NeedsReads | tuple[FieldError, ...]:
    found = problems(asked.new, asked.old, allow_privileged=asked.allow_privileged)
    if found or not asked.new.reading.is_v1alpha1:
        return found
    return _pods_to_delete(asked.new, asked.old, asked.view)


def _pods_to_delete(
    new: Candidate[Reading], old: Candidate[Reading] | None, view: HandlerView
) -> NeedsReads | tuple[FieldError, ...]:
    """Names that were not there before must be pods of this very CloneSet."""
    known = old.reading.scale.pods_to_delete if old is not None else ()
    added = [name for name in new.reading.scale.pods_to_delete if name not in known]
    targets = {name: Target(PODS, new.namespace, name) for name in added}
    unread = tuple(target for target in targets.values() if not view.was_read(target))
    if unread:
        return NeedsReads(targets=unread)
    uid = str((new.body.get("metadata") or {}).get("uid", ""))
    return tuple(
        invalid(PODS_TO_DELETE, name, complaint)
        for name, target in targets.items()
        if (complaint := _complaint(name, view.live(target), uid))
    )


def _complaint(name: str, pod: Pod | None, uid: str) -> str:
    if pod is None:
        return f'find pod {name} failed: Pod "{name}" not found'
    if not uid or not is_controlled_by(pod, uid):
        return f"find pod {name} owner is not this CloneSet"
    if pod.metadata.deletion_timestamp is not None:
        return f"pod {name} is being deleted already"
    return ""


ADMISSION: Admission[Reading] = Admission(
    convert=convert,
    stored_spec=CloneSetSpec,
    read=read,
    defaulted=defaulted,
    warnings=warnings_of,
    problems=_judged,
)
default, judge, handlers = ADMISSION.default, ADMISSION.judge, ADMISSION.handlers
