"""Where ours differs from a recording on purpose: what, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

_PAUSED = Chosen(
    r"\[spec\.updateStrategy\] .*'paused': False",
    "What somebody wrote stays as it was written: `paused: false` is not taken out of the spec.",
)

CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "statefulset-autoresize-pvc": (
        Chosen(
            r"\[answer\] step [23] .*ours 422 .*while claims grow",
            "The refusal names the field and the remedy; the original prints the whole claim as a Go value.",
        ),
        Chosen(
            r"\[spec\.volumeClaimTemplates\] as printed ",
            "What somebody wrote stays as it was written: no empty status or time is added to a template.",
        ),
    ),
    "statefulset-inplaceonly": (
        Chosen(
            r"\[answer\] step 2 .*only allowed to update images in spec for InPlaceOnly, but found add /containers/",
            "The refusal names the field, and says the same as for a CloneSet.",
        ),
        _PAUSED,
        Chosen(
            r"\[condition FailedUpdatePod\] after step 5 ",
            "A pod that cannot be updated in place is told by a condition; the original only logs it.",
        ),
    ),
    "statefulset-ordered-lifecycle": (
        Chosen(
            r"\[status\.currentReplicas\] after step 2 ",
            "A pod that is prepared for its update counts as moved (ST-13), in every pass and with any order.",
        ),
        Chosen(
            r"\[(status|pod|events)[^\]]*\] (after step 3 |StatefulSet/web|as printed|Pod web-1)",
            "A pod whose hook lets it go is updated, also with OrderedReady (ST-106).",
        ),
    ),
    "statefulset-reserveordinals": (
        Chosen(
            r"\[answer\] step 5 .*must not end before it begins",
            "The refusal names the entry of the list.",
        ),
    ),
    "statefulset-specified-delete": (
        Chosen(
            r"\[pod turn of deletion\] after step 3 ",
            "Both labels come within the moment in which changes are gathered; of two, the highest ordinal goes first "
            "(ST-90).",
        ),
        _PAUSED,
        Chosen(
            r"\[events\] StatefulSet/web (Normal Successful|Warning Failed)Delete ",
            "A pod that is terminating is not deleted a second time (ST-90).",
        ),
    ),
    "statefulset-unordered-order": (_PAUSED,),
}
