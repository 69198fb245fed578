"""What every namespace holds from its first moment: its account and the certificates to trust. Pure."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from kruise.api.native.config import CONFIG_MAPS, SERVICE_ACCOUNTS, ConfigMap
from kruise.api.resource import Resource

INITIAL: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
"""The namespaces that an API server makes for itself."""

ACCOUNT: Final = "default"
CERTIFICATES: Final = "kube-root-ca.crt"
DESCRIPTION_KEY: Final = "kubernetes.io/description"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


@dataclasses.dataclass(frozen=True, slots=True)
class Create:
    resource: Resource[Any]
    body: dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class Correct:
    """A merge patch for an object that somebody changed."""

    resource: Resource[Any]
    name: str
    patch: dict[str, Any]


def missing(
    namespace: str, *, has_account: bool, certificates: ConfigMap | None, bundle: str
) -> list[Create | Correct]:
    """What has to be written so that an active namespace holds what it should. Without a bundle none is published."""
    steps: list[Create | Correct] = []
    if not has_account:
        steps.append(Create(SERVICE_ACCOUNTS, {"metadata": {"name": ACCOUNT, "namespace": namespace}}))
    wanted = {"ca.crt": bundle}
    if not bundle:
        return steps
    if certificates is None:
        metadata = {
            "name": CERTIFICATES,
            "namespace": namespace,
            "annotations": {DESCRIPTION_KEY: DESCRIPTION},
        }
        steps.append(Create(CONFIG_MAPS, {"metadata": metadata, "data": wanted}))
    elif certificates.data != wanted or DESCRIPTION_KEY not in certificates.metadata.annotations:
        data: dict[str, str | None] = dict.fromkeys(certificates.data)
        about = {"uid": certificates.metadata.uid, "annotations": {DESCRIPTION_KEY: DESCRIPTION}}
        steps.append(Correct(CONFIG_MAPS, CERTIFICATES, {"metadata": about, "data": {**data, **wanted}}))
    return steps
