"""All webhook entries, as data, and the two objects that an installation creates (MGR section 7).

The objects are installed with no live entry: the whole list stands in annotation `template`. An entry with
failurePolicy Fail blocks its requests while nobody answers, and at that moment nobody does: the manager adds the
entries it has handlers for once it serves them. Installing again leaves the live list alone and replaces the
template, which the manager follows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kruise.admission.chain import PATH as MUTATE_POD
from kruise.admission.configurations import MUTATING_NAME, TEMPLATE, VALIDATING_NAME
from kruise.admission.review import REVIEW_VERSIONS
from kruise.admission.validating_chain import PATH as VALIDATE_POD
from kruise.admission.validating_chain import PodOperation, PodValidationStep, Position
from kruise.api.native.nodes import KUBE_SYSTEM
from kruise.machinery.codec import canonical

BOTH = ("v1alpha1", "v1beta1")
CREATE_UPDATE = ("CREATE", "UPDATE")
CREATE_UPDATE_DELETE = ("CREATE", "UPDATE", "DELETE")
DELETE = ("DELETE",)

CHART_LABEL = "openkruise"
"""Value of `control-plane` on the namespaces of a chart's installation."""
REMOVAL = "kruise.io/removal"
"""On the manager's namespace: somebody is removing the system, so nothing of it is to be made again."""
PROTECTION_LABEL = "policy.kruise.io/delete-protection"
NEW_PODS = "mpod.kb.io"
"""The entry that new pods pass."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    name: str
    path: str
    group: str
    resource: str
    versions: tuple[str, ...]
    operations: tuple[str, ...]
    is_pod: bool = False
    is_protection: bool = False
    gate: str = ""
    """Served only with this gate (PW-48)."""
    match_conditions: tuple[Mapping[str, str], ...] = ()


def marked_pods_only(positions: Sequence[Position], asked: Sequence[PodOperation]) -> tuple[Mapping[str, str], ...]:
    """Pods without any of these annotations cause no call at all, and those that have some cause none for what nobody
    asks about: whoever is told of deletions alone costs an update nothing. Both objects count: taking the mark away in
    an update is itself an update of a marked pod. Static, so there is no moment in which a first mark is missed."""
    marks: dict[str, list[str]] = {}
    # The last position first: so the list has always been installed, and it shall not change for nothing.
    for position in reversed(positions):
        about = [operation for operation in asked if operation in position.operations]
        verbs = " || ".join(f"request.operation == '{operation.verb}'" for operation in about)
        marks.setdefault("" if len(about) == len(asked) else verbs, []).extend(position.marks)
    expression = " || ".join(_asked_for(verbs, keys) for verbs, keys in marks.items())
    return ({"name": "marked-pods-only", "expression": expression},)


def _asked_for(verbs: str, marks: Sequence[str]) -> str:
    keys = tuple(dict.fromkeys(marks))
    found = f"{_has_any(keys, 'object')} || {_has_any(keys, 'oldObject')}"
    return f"(({verbs}) && ({found}))" if verbs else found


def _has_any(marks: Iterable[str], variable: str) -> str:
    keys = " || ".join(f"'{key}' in {variable}.metadata.annotations" for key in marks)
    return f"({variable} != null && has({variable}.metadata.annotations) && ({keys}))"


def pod_checks(positions: Sequence[Position]) -> Iterator[Entry]:
    """The entries that ask these positions of the validating pod chain: one for the pod, one for each subresource."""
    for subresource in dict.fromkeys(operation.subresource for operation in PodOperation):
        operations = [operation for operation in PodOperation if operation.subresource == subresource]
        asked = [operation for operation in operations if any(operation in item.operations for item in positions)]
        if not asked:
            continue
        concerned = [item for item in positions if not item.operations.isdisjoint(asked)]
        # An eviction does not show the pod, so it always calls; so does what concerns every pod.
        is_marked = all(operation.shows_pod for operation in asked) and all(item.marks for item in concerned)
        yield Entry(
            name=f"vpod{subresource}.kb.io",
            path=VALIDATE_POD,
            group="",
            resource=f"pods/{subresource}" if subresource else "pods",
            versions=("v1",),
            operations=tuple(operation.verb for operation in asked),
            is_pod=True,
            gate="PodWebhook",
            match_conditions=marked_pods_only(concerned, asked) if is_marked else (),
        )


def _kruise(
    letter: str,
    kind: str,
    *,
    versions: tuple[str, ...] = BOTH,
    operations: tuple[str, ...] = CREATE_UPDATE,
    name: str = "",
    path: str = "",
    group: str = "apps.kruise.io",
) -> Entry:
    verb = "mutate" if letter == "m" else "validate"
    return Entry(
        name=name or f"{letter}{kind}.kb.io",
        path=path or f"/{verb}-{group.replace('.', '-')}-{kind}",
        group=group,
        resource=f"{kind}s",
        versions=versions,
        operations=operations,
    )


def _protected(
    name: str, path: str, group: str, resource: str, *, versions: tuple[str, ...] = ("v1",), gate: str = ""
) -> Entry:
    return Entry(
        name=name,
        path=path,
        group=group,
        resource=resource,
        versions=versions,
        operations=DELETE,
        is_protection=True,
        gate=gate,
    )


MUTATING: tuple[Entry, ...] = (
    Entry(
        name=NEW_PODS,
        path=MUTATE_POD,
        group="",
        resource="pods",
        versions=("v1",),
        operations=("CREATE",),
        is_pod=True,
        gate="PodWebhook",
    ),
    _kruise("m", "advancedcronjob"),
    _kruise("m", "broadcastjob"),
    _kruise("m", "cloneset"),
    _kruise("m", "containerrecreaterequest"),
    _kruise("m", "daemonset"),
    _kruise("m", "imagelistpulljob", name="mimagelistpulljob-v1beta1.kb.io"),
    _kruise("m", "imagepulljob", name="mimagepulljob-v1beta1.kb.io"),
    _kruise("m", "nodeimage"),
    _kruise("m", "sidecarset"),
    _kruise("m", "statefulset"),
    _kruise("m", "uniteddeployment"),
)

VALIDATING: tuple[Entry, ...] = (
    _protected("vbuiltindeployment.kb.io", "/validate-apps-deployment", "apps", "deployments"),
    _protected("vbuiltinreplicaset.kb.io", "/validate-apps-replicaset", "apps", "replicasets"),
    _protected("vbuiltinstatefulset.kb.io", "/validate-apps-statefulset", "apps", "statefulsets"),
    _protected(
        "vcustomresourcedefinition.kb.io",
        "/validate-customresourcedefinition",
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        versions=("v1", "v1beta1"),
    ),
    _protected("vnamespace.kb.io", "/validate-namespace", "", "namespaces"),
    _protected("vservice.kb.io", "/validate-service", "", "services", gate="ResourcesDeletionProtection"),
    _protected(
        "vingress.kb.io",
        "/validate-ingress",
        "networking.k8s.io",
        "ingresses",
        versions=("v1", "v1beta1"),
        gate="ResourcesDeletionProtection",
    ),
    *pod_checks([step.value for step in PodValidationStep]),
    _kruise("v", "resourcedistribution"),
    _kruise("v", "workloadspread"),
    _kruise("v", "advancedcronjob"),
    _kruise("v", "broadcastjob"),
    _kruise("v", "cloneset", operations=CREATE_UPDATE_DELETE),
    _kruise("v", "daemonset"),
    _kruise(
        "v",
        "ephemeraljob",
        versions=("v1alpha1",),
        name="vephemeraljobs.kb.io",
        path="/validate-apps-kruise-io-v1alpha1-ephemeraljob",
    ),
    _kruise("v", "imagelistpulljob", name="vimagelistpulljob-v1beta1.kb.io"),
    _kruise("v", "imagepulljob", name="vimagepulljob-v1beta1.kb.io"),
    _kruise("v", "nodeimage"),
    _kruise("v", "persistentpodstate"),
    _kruise("v", "podprobemarker", versions=("v1alpha1",)),
    _kruise("v", "podunavailablebudget", group="policy.kruise.io"),
    _kruise("v", "sidecarset"),
    _kruise("v", "statefulset", operations=CREATE_UPDATE_DELETE),
    _kruise("v", "uniteddeployment", operations=CREATE_UPDATE_DELETE),
)

NOT_KUBE_SYSTEM: Mapping[str, Any] = {
    "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": [KUBE_SYSTEM]}]
}
PLAIN_POD_NAMESPACES: Mapping[str, Any] = {
    "matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}, *NOT_KUBE_SYSTEM["matchExpressions"]]
}
"""The namespaces of the plain installation carry `control-plane`: the manager's own pods must be able to start even
if no manager answers (MGR-40, MGR-87). They need those of kube-system, which must come and go whoever is down."""
CHART_POD_NAMESPACES: Mapping[str, Any] = {
    "matchExpressions": [
        {"key": "control-plane", "operator": "NotIn", "values": [CHART_LABEL]},
        *NOT_KUBE_SYSTEM["matchExpressions"],
    ]
}
AKS_NAMESPACES: tuple[Mapping[str, Any], ...] = (
    {"key": "control-plane", "operator": "NotIn", "values": ["true"]},
    {"key": "kubernetes.azure.com/managedby", "operator": "NotIn", "values": ["aks"]},
)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationOptions:
    """What installations choose. The defaults are those of the plain manifests."""

    namespace: str = "kruise-system"
    service: str = "kruise-webhook-service"
    timeout_seconds: int | None = None
    pod_namespaces: Mapping[str, Any] = dataclasses.field(default_factory=lambda: PLAIN_POD_NAMESPACES)
    protection_namespaces: Mapping[str, Any] | None = None
    protection_failure_policy: str = "Fail"
    pod_failure_policy: str = "Fail"
    """Of new pods alone (MGR-87): budgets of those that are there are never left out."""
    aks: bool = False


FAILURE_POLICIES = ("Fail", "Ignore")


def chart_options(
    *, namespace: str = "kruise-system", timeout_seconds: int = 30, aks: bool = False
) -> RegistrationOptions:
    """As the Helm chart has it (MGR-40, PW section 6)."""
    return RegistrationOptions(
        namespace=namespace,
        timeout_seconds=timeout_seconds,
        pod_namespaces=CHART_POD_NAMESPACES,
        protection_namespaces=NOT_KUBE_SYSTEM,
        protection_failure_policy="Ignore",
        aks=aks,
    )


def render(entry: Entry, options: RegistrationOptions) -> dict[str, Any]:
    """One entry of a `webhooks` list, without a CA bundle: that is the manager's to fill in."""
    service = {"namespace": options.namespace, "name": options.service, "path": entry.path}
    rule = {
        "apiGroups": [entry.group],
        "apiVersions": list(entry.versions),
        "operations": list(entry.operations),
        "resources": [entry.resource],
    }
    result: dict[str, Any] = {
        "name": entry.name,
        "admissionReviewVersions": list(REVIEW_VERSIONS),
        "clientConfig": {"service": service},
        "failurePolicy": _failure_policy(entry, options),
        "rules": [rule],
        "sideEffects": "None",
    }
    if options.timeout_seconds is not None:
        result["timeoutSeconds"] = options.timeout_seconds
    if selector := _namespace_selector(entry, options):
        result["namespaceSelector"] = selector
    if entry.is_protection:
        result["objectSelector"] = {"matchExpressions": [{"key": PROTECTION_LABEL, "operator": "Exists"}]}
    if entry.match_conditions:
        result["matchConditions"] = [dict(condition) for condition in entry.match_conditions]
    return result


def _failure_policy(entry: Entry, options: RegistrationOptions) -> str:
    if entry.is_protection:
        return options.protection_failure_policy
    return options.pod_failure_policy if entry.path == MUTATE_POD else "Fail"


def _namespace_selector(entry: Entry, options: RegistrationOptions) -> dict[str, Any]:
    expressions: list[Any] = []
    if entry.is_pod:
        expressions.extend(options.pod_namespaces["matchExpressions"])
    elif entry.is_protection and options.protection_namespaces:
        expressions.extend(options.protection_namespaces["matchExpressions"])
    if options.aks:
        expressions.extend(AKS_NAMESPACES)
    return {"matchExpressions": [dict(item) for item in expressions]} if expressions else {}


def configurations(
    options: RegistrationOptions | None = None,
    *,
    mutating: tuple[Entry, ...] = (),
    validating: tuple[Entry, ...] = (),
) -> list[dict[str, Any]]:
    """Both objects, with the entries of kinds from elsewhere."""
    return [mutating_configuration(options, mutating), validating_configuration(options, validating)]


def mutating_configuration(options: RegistrationOptions | None = None, more: tuple[Entry, ...] = ()) -> dict[str, Any]:
    entries = (*MUTATING, *more)
    return _configuration("MutatingWebhookConfiguration", MUTATING_NAME, entries, options or RegistrationOptions())


def validating_configuration(
    options: RegistrationOptions | None = None, more: tuple[Entry, ...] = ()
) -> dict[str, Any]:
    entries = (*VALIDATING, *more)
    return _configuration("ValidatingWebhookConfiguration", VALIDATING_NAME, entries, options or RegistrationOptions())


def _configuration(kind: str, name: str, entries: tuple[Entry, ...], options: RegistrationOptions) -> dict[str, Any]:
    # No `webhooks` at all, rather than an empty list: an installer that applies this again must not take away the
    # live entries.
    template = canonical([render(entry, options) for entry in entries]).decode()
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {TEMPLATE: template}},
    }
