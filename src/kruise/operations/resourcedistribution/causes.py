"""Why a namespace has no copy, or not the right one."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

CONFLICT = Meaning(
    code="copy-conflict",
    says="an object of the same name is there, and belongs to somebody else",
    act=Act.SOMEBODY,
    field="spec.resource.metadata.name",
    patience=0,
)
NO_NAMESPACE = Meaning(
    code="no-namespace",
    says="the namespace does not exist, or is being deleted",
    act=Act.SOMEBODY,
    field="spec.targets.includedNamespaces",
    patience=0,
)
COPY_REFUSED = Meaning(
    code="copy-refused", says="the API server refuses the copy", act=Act.SOMEBODY, field="spec.resource", patience=0
)
UNFIT = Meaning(
    code="unfit-resource",
    says="its resource is no whole Secret or ConfigMap with a name",
    act=Act.SOMEBODY,
    field="spec.resource",
    patience=0,
)
NO_TARGETS = Meaning(
    code="no-targets",
    says="its targets choose no namespace that there is, so there are no copies",
    act=Act.INTENDED,
    field="spec.targets",
    is_wanted=True,
)

CAUSES = (CONFLICT, NO_NAMESPACE, COPY_REFUSED, UNFIT, NO_TARGETS)
