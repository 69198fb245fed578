"""Where ours differs from a recording on purpose: what, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

_QUICK = Chosen(
    r'\[status\] NodeImage/node\d: \{"desired": \d\} does not come',
    "A pull of less than a second is one write, with its end (DMN-31).",
)
_ONCE = Chosen(
    r"\[events\] Pod/p Normal KruiseProbe\w+ .*: recorded \d+ times, ours [01] times",
    "A result is told when it changes, and once: probes of one container do not overwrite each other (PRB-9).",
)

CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "imagelistpulljob-good-and-bad": (
        Chosen(
            r"\[(status|spec)\] (ImageListPullJob/l|ImagePullJob/l-of-busybox:\S+|NodeImage/node\d): .*does not",
            "A pull that fails for good ends at once, before one that brings an image: nobody pauses after the last "
            "attempt (DMN-38).",
        ),
    ),
    "imagepulljob-backoff": (
        _QUICK,
        Chosen(
            r"\[(status|end)\] ImagePullJob/jd: ",
            "The daemon reports a deadline when it is over, and the job counts that before it gives up itself (DMN-38, "
            "IPJ-41).",
        ),
        Chosen(
            r"\[events\] NodeImage/node\d Warning PullImageFailed .*: recorded 2 times, ours 1 times",
            "The recording counts the events of another one with them.",
        ),
    ),
    "imagepulljob-digest-podselector": (
        _QUICK,
        Chosen(r"\[\w+\] (ImagePullJob/j|NodeImage/node3)\b", "An image by its digest is pulled (DMN-43)."),
    ),
    "imagepulljob-three-nodes": (_QUICK,),
    "imagepulljob-two-jobs": (
        _QUICK,
        Chosen(
            r'\[status\] ImagePullJob/j1: \{"active": 1, .*progress 0\.0%',
            "A job keeps what it has reached when another asks for the image again.",
        ),
        Chosen(
            r'\[spec\] NodeImage/node1: .*"version": 1',
            "A job keeps what it has reached when another asks for the image again.",
        ),
    ),
    "nodeimage-by-hand": (
        _QUICK,
        Chosen(
            r'(\[status\] NodeImage/node3: .*"version": 1|\[events\] NodeImage/node3 Normal PullImageSucceed)',
            "Of two versions that follow at once only the newer is pulled (DMN-33).",
        ),
    ),
    "containerrecreaterequest-crash-after-restart": (
        Chosen(
            r'\[annotations\] ContainerRecreateRequest/r: \{"crr\.apps\.kruise\.io/sync-container-statuses": "\[\]"\}',
            "The last known statuses stay while no container runs (CRR-31).",
        ),
    ),
    "containerrecreaterequest-exited-container": (
        Chosen(
            r"\[(status|end)\] ContainerRecreateRequest/r: ",
            "A container that will not start again ends the request at once, with the reason.",
        ),
    ),
    "containerrecreaterequest-one-waits-for-another": (
        Chosen(
            r'\[labels\] ContainerRecreateRequest/r2: .*"crr\.apps\.kruise\.io/active": "true".*"touched"',
            "The next request begins when the one before is done, so a later change finds it over (CRR-41).",
        ),
    ),
    "containerrecreaterequest-prestop": (
        Chosen(
            r"\[status\] ContainerRecreateRequest/r: ",
            "Simulated nodes start a container again before the hooks of the others are over.",
        ),
        Chosen(
            r"\[events\] Pod/p Warning FailedPreStopHook ",
            "A hook that fails is told in plain words, and one that is a request is sent (DMN-58).",
        ),
    ),
    "podprobemarker-exec": (
        Chosen(r"\[annotations\] Pod/p: \{\} does not come", "Marks stay while the result is not known (NPP-13)."),
        Chosen(r"\[end\] PodProbeMarker/m: ", "matchedPods follows when pods go (PPM-28)."),
    ),
    "podprobemarker-tcp-http": (
        _ONCE,
        Chosen(
            r"\[(conditions|status)\] (Pod/p|NodePodProbe/node1): (?!.*m#tcp)",
            "All probes of a container are reported together, from the first time (PRB-9).",
        ),
    ),
    "podprobemarker-two-markers": (
        _ONCE,
        Chosen(
            r"\[(spec|status)\] NodePodProbe/node1: \{\} does not come",
            "Markers whose names end alike are independent: deleting one leaves the probes of the other (PPM-23).",
        ),
    ),
}
