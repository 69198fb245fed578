"""Causes that only PodProbeMarker knows."""

from __future__ import annotations

from kruise.machinery.causes import MINUTE, Act, Meaning

NOTHING_TO_PROBE = Meaning(
    code="nothing-to-probe",
    says="no pod that runs matches the selector",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)
NOT_INITIALIZED = Meaning(
    code="not-initialized", says="it is probed as soon as its init containers are done", act=Act.NOBODY
)
NO_SUCH_CONTAINER = Meaning(
    code="no-such-container",
    says="the pod has no container of the name that a probe names",
    act=Act.SOMEBODY,
    field="spec.probes[].containerName",
    patience=0,
)
NO_SUCH_PORT = Meaning(
    code="no-such-port",
    says="its container has no port of the name that a probe names, so that probe is left out",
    act=Act.SOMEBODY,
    field="spec.probes[].probe",
    patience=0,
)
NODE_NOT_TOLD = Meaning(code="node-not-told", says="its node is about to be told of the probes", act=Act.NOBODY)
NO_NODE_PROBE = Meaning(
    code="no-node-probe", says="its node has no NodePodProbe yet", act=Act.SOMEBODY, patience=MINUTE
)
NO_RESULT = Meaning(
    code="no-probe-result",
    says="the daemon of its node has not reported a result",
    act=Act.SOMEBODY,
    patience=MINUTE,
)
CANNOT_RUN = Meaning(
    code="probe-cannot-run",
    says="a probe cannot be made in its container at all, so it never has a result",
    act=Act.SOMEBODY,
    field="spec.probes[].probe",
    patience=0,
)

CONDITION_TAKEN = Meaning(
    code="condition-taken",
    says="another marker writes the same condition of the pod",
    act=Act.SOMEBODY,
    field="spec.probes[].podConditionType",
    patience=0,
)

CAUSES = (
    NOTHING_TO_PROBE,
    NOT_INITIALIZED,
    NO_SUCH_CONTAINER,
    NO_SUCH_PORT,
    NODE_NOT_TOLD,
    NO_NODE_PROBE,
    NO_RESULT,
    CANNOT_RUN,
    CONDITION_TAKEN,
)
