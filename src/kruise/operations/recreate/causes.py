"""Causes that only ContainerRecreateRequest knows: why a request is not done yet."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

NO_DAEMON = Meaning(
    code="node-daemon",
    says="the daemon of the pod's node has not taken the request up",
    act=Act.SOMEBODY,
)
ANOTHER_REQUEST = Meaning(
    code="another-request",
    says="another request for the pod is ahead",
    act=Act.NOBODY,
    waits_for_others=True,
)
UNREADY_GRACE = Meaning(
    code="unready-grace",
    says="the pod's traffic drains before its containers are stopped",
    act=Act.NOBODY,
    field="spec.strategy.unreadyGracePeriodSeconds",
    is_wanted=True,
)
STOPPING = Meaning(
    code="container-stops",
    says="a container is being stopped, its hook included",
    act=Act.NOBODY,
    field="spec.strategy.terminationGracePeriodSeconds",
)
IN_ORDER = Meaning(
    code="container-order",
    says="the container before it has to be recreated first",
    act=Act.NOBODY,
    field="spec.strategy.orderedRecreate",
    waits_for_others=True,
)
STARTING = Meaning(
    code="container-restarts",
    says="a container was stopped, and has not been started and ready for long enough",
    act=Act.NOBODY,
    field="spec.strategy.minStartedSeconds",
)
NOT_ON_NODE = Meaning(
    code="container-missing",
    says="the node has no such container",
    act=Act.SOMEBODY,
)
NOT_RECREATED = Meaning(
    code="not-recreated",
    says="the request has ended, and not all of its containers were recreated",
    act=Act.SOMEBODY,
    patience=0,
)

CAUSES = (NO_DAEMON, ANOTHER_REQUEST, UNREADY_GRACE, STOPPING, IN_ORDER, STARTING, NOT_ON_NODE, NOT_RECREATED)
