"""Causes that only image jobs know, beside those of every pull."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

PARALLELISM = Meaning(
    code="pull-turn",
    says="other nodes pull first",
    act=Act.NOBODY,
    field="spec.parallelism",
    waits_for_others=True,
    is_before_turn=True,
)
HELD = Meaning(
    code="held",
    says="parallelism is 0: no node begins to pull",
    act=Act.INTENDED,
    field="spec.parallelism",
    is_wanted=True,
    is_before_turn=True,
)
NODE_FULL = Meaning(
    code="node-full", says="the NodeImage of the node has as many images as it can", act=Act.SOMEBODY, patience=0
)
SECRET_COPY = Meaning(
    code="secret-copy", says="its pull secrets are being brought to where nodes read them", act=Act.NOBODY
)
NO_EXCHANGE = Meaning(
    code="no-secret-namespace",
    says="the namespace in which nodes read pull secrets does not exist",
    act=Act.SOMEBODY,
    patience=0,
)
SECRET_MISSING = Meaning(
    code="secret-missing",
    says="a pull secret does not exist",
    act=Act.SOMEBODY,
    field="spec.pullSecrets",
    patience=0,
)
NO_NODE = Meaning(
    code="no-node-selected",
    says="it selects no node that has a NodeImage",
    act=Act.SOMEBODY,
    field="spec.selector",
    patience=0,
)
BAD_IMAGE = Meaning(
    code="bad-image", says="its image is no image reference", act=Act.SOMEBODY, field="spec.image", patience=0
)

CAUSES = (
    PARALLELISM,
    HELD,
    NODE_FULL,
    SECRET_COPY,
    NO_EXCHANGE,
    SECRET_MISSING,
    NO_NODE,
    BAD_IMAGE,
)
