"""Where ours differs from a recording on purpose: what, and why."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

_EVICTIONS = Chosen(
    r"evict .*: \[answers\] recorded 'HTTP 403 .*', ours 'HTTP 429 ",
    "A refused eviction answers 429, which `kubectl drain` understands and tries again (PUB-91).",
)
_TAKEN_BACK = "A copy that lost its owner reference and still bears our marks is taken back."
CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "podunavailablebudget-eviction-delete": (_EVICTIONS,),
    "podunavailablebudget-max-one": (
        _EVICTIONS,
        Chosen(r"evict pod-1 \(dry run\): \[pub\.", "A dry run takes nothing (PUB-62, PUB-72)."),
    ),
    "podunavailablebudget-deployment-percent": (
        _EVICTIONS,
        Chosen(
            r"(image nginx:1\.21: roll-out with maxUnavailable 2|scale to 1): \[pub\.",
            "The ReplicaSet controller of the local cluster comes back sooner to a deletion that was refused, so no "
            "surplus pod is left; that of Kubernetes waits longer after each refusal.",
        ),
    ),
    "podunavailablebudget-update-gate": (
        _EVICTIONS,
        Chosen(
            r"protect DELETE and EVICT only, with a blank: \[answers\] recorded 'HTTP 400 .*', ours 'HTTP 400 ",
            "A list of operations with blanks is refused alike, with a text that names the annotation and its value.",
        ),
    ),
    "resourcedistribution-all-namespaces": (
        Chosen(
            r"create ResourceDistribution rd-all: \[copies\.Secret/kube-(public|system)/",
            "kube-system and kube-public are targets only where they are listed by name (RD-20, RD-63).",
        ),
        Chosen(
            r"create ResourceDistribution rd-all: \[(copies\.Secret/(demo|kruise-daemon-config)/|status\.rd-all\.)",
            "The recorded cluster had other namespaces, six of them on their way out.",
        ),
    ),
    "resourcedistribution-configmap": (
        Chosen(
            r"delete Namespace/team-6: \[",
            "A namespace without pods is gone at once on the local cluster; Kubernetes takes five seconds.",
        ),
    ),
    "resourcedistribution-conflict": (
        Chosen(
            r"(delete the hand-made ConfigMap in conf-1|annotate rd-c1 \(metadata only\)): \[",
            "When an obstacle goes, the copy is made at once, not with the next change of the distribution (RD-51).",
        ),
        Chosen(
            r"(remove the owner reference|change data of rd-c1|delete ResourceDistribution/rd-c[12])",
            _TAKEN_BACK,
        ),
    ),
    "resourcedistribution-secret-drift": (
        Chosen(r"(remove the controller owner reference|exclude b|delete ResourceDistribution rec3-rd)", _TAKEN_BACK),
    ),
}
