"""Whether the API server gets answers from webhooks, and trusts them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from datetime import timedelta

from kruise.admission.certificates import (
    EXTERNAL_CA_CERT,
    CertificateError,
    Material,
    check,
    from_data,
    from_external_data,
)
from kruise.admission.configurations import (
    ConfigurationError,
    ServiceEndpoint,
    configuration_patch,
    definition_patch,
    entry_path,
    is_converted,
)
from kruise.admission.inventory import NEW_PODS
from kruise.api.native.extensions import CustomResourceDefinition, WebhookConfiguration
from kruise.api.native.pod import is_ready
from kruise.doctor.findings import (
    CERTIFICATE,
    CERTIFICATE_ENDS,
    ELSEWHERE,
    NOBODY_BEHIND,
    NOT_REGISTERED,
    OTHER_CA,
    SLOW,
    UNANSWERED,
    WITHOUT_MANAGER,
    Finding,
    Json,
    Patch,
)
from kruise.doctor.snapshot import CONVERSION, Snapshot
from kruise.machinery.codec import convert
from kruise.machinery.documents import value_at
from kruise.machinery.wording import listed, plural
from kruise.manager import gates
from kruise.manager.installation.documents import Named, gates_text
from kruise.manager.installation.manager import SECRET, SERVICE

_SLOW_SECONDS = 1.0
_SOON = timedelta(days=30)
"""Managers renew half a year before the end: one that ends so soon has nobody who looks after it."""
_OPEN = "kruise uninstall --webhooks-only lets people work meanwhile"


def rules(seen: Snapshot) -> Iterator[Finding]:
    if not seen.is_here:
        return
    yield from _registered(seen)
    yield from _answers(seen)
    yield from _addresses(seen)
    yield from _trust(seen)


def _registered(seen: Snapshot) -> Iterator[Finding]:
    live = [entry for _, entry in seen.entries]
    strict = [entry["name"] for entry in live if entry.get("failurePolicy") != "Ignore"]
    if strict and seen.manager.is_down and not seen.is_answered:
        pods = "new pods are refused" if NEW_PODS in strict else "new pods come as they are, without what webhooks add"
        yield WITHOUT_MANAGER.found(
            "the API server",
            f"it asks {plural(len(strict), 'webhook')} of which nobody answers: {pods}, "
            "and objects of our kinds can neither be made nor changed",
            f"start a manager; {_OPEN}",
        )
    if not live and seen.has_manager:
        yield NOT_REGISTERED.found(
            "the API server",
            "no webhook is registered although a manager is at work: nothing is defaulted, checked or protected",
            "the manager registers them within a minute: see its log, and whether it is ready",
        )


def _answers(seen: Snapshot) -> Iterator[Finding]:
    by_reason: dict[str, list[str]] = {}
    for asked in seen.asked:
        if asked.error:
            by_reason.setdefault(asked.error, []).append(asked.entry)
        elif asked.seconds >= _SLOW_SECONDS:
            yield SLOW.found(
                f"webhook {asked.entry}",
                f"a request that passes it took {asked.seconds:.1f} s",
                "see whether the manager has enough CPU, and its metric controller_runtime_webhook_latency_seconds",
            )
    for reason, entries in by_reason.items():
        yield UNANSWERED.found(
            f"webhook {listed(entries)}",
            f"the API server gets no answer: {reason}",
            f"see whether the manager is ready and can be reached from the API server; {_OPEN}",
        )


# Addresses


def _addresses(seen: Snapshot) -> Iterator[Finding]:
    elsewhere: dict[str, list[str]] = {}
    uses_service = False
    for about, client in seen.addresses:
        if _leads_home(client, seen):
            uses_service = True
        elif service := client.get("service"):
            elsewhere.setdefault(f"{service.get('namespace')}/{service.get('name')}", []).append(about)
    for where, abouts in elsewhere.items():
        yield ELSEWHERE.found(
            f"webhook {listed(abouts)}",
            f"the API server asks the Service {where}, and the installation is in {seen.namespace}",
            "two installations, or something left of another one: see kruise doctor --system-namespace NAMESPACE",
        )
    if uses_service and not seen.runs_inside:
        yield from _behind(seen)


def _leads_home(client: Json, seen: Snapshot) -> bool:
    """To the Service of the installation."""
    service = client.get("service") or {}
    return (service.get("namespace"), service.get("name")) == (seen.namespace, SERVICE)


def _behind(seen: Snapshot) -> Iterator[Finding]:
    where = Named("Service", seen.namespace, SERVICE)
    service = seen.live.get(where)
    if service is None or seen.pods is None:
        return  # told as a missing object, or nobody can see
    selector: Mapping[str, str] = value_at(service, ("spec", "selector"), {})
    chosen = [pod for pod in seen.pods if selector and selector.items() <= pod.metadata.labels.items()]
    if not any(map(is_ready, chosen)):
        labels = ",".join(f"{key}={value}" for key, value in selector.items()) or "nothing"
        yield NOBODY_BEHIND.found(
            str(where),
            f"it selects {labels}: {plural(len(chosen), 'pod')}, of which none is ready",
            f"kubectl get pods -n {seen.namespace} -l {labels}; kruise install brings the Service as it was",
        )


# Certificates


def _trust(seen: Snapshot) -> Iterator[Finding]:
    """Only of a manager behind the Service: one at an address of its own keeps its certificates in files."""
    addresses = [client for _, client in seen.addresses]
    if seen.secret is None or seen.runs_inside or any("url" in client for client in addresses):
        return
    about = str(Named("Secret", seen.namespace, SECRET))
    if not any(seen.secret.values()):
        if list(seen.entries):
            yield CERTIFICATE.found(about, "it is empty", "a manager at work fills it within a minute: see its log")
        return
    external = _are_external(seen)
    remedy = (
        "whoever makes the certificates must renew them (gate EnableExternalCerts)"
        if external
        else f"a manager at work makes new ones within a minute: see its log, or kubectl delete secret {SECRET} "
        f"-n {seen.namespace}"
    )
    try:
        material = from_external_data(seen.secret) if external else from_data(seen.secret)
        check(material, f"{SERVICE}.{seen.namespace}.svc", seen.now)
    except CertificateError as error:
        yield CERTIFICATE.found(about, str(error), remedy)
        return
    try:
        check(material, f"{SERVICE}.{seen.namespace}.svc", seen.now + _SOON)
    except CertificateError as error:
        yield CERTIFICATE_ENDS.found(about, str(error), remedy)
    yield from _bundles(seen, material, external)


def _are_external(seen: Snapshot) -> bool:
    if seen.deployment is not None:
        try:
            return gates.resolve(gates.parse(gates_text(seen.deployment)))["EnableExternalCerts"]
        except gates.FeatureGateError:
            return False
    return EXTERNAL_CA_CERT in (seen.secret or {})


def _bundles(seen: Snapshot, material: Material, external: bool) -> Iterator[Finding]:
    endpoint = ServiceEndpoint(seen.namespace, SERVICE)
    for where, configuration in seen.configurations:
        entries = configuration.get("webhooks") or ()
        ours = [entry for entry in entries if _leads_home(entry.get("clientConfig") or {}, seen)]
        wrong = [str(entry["name"]) for entry in ours if not _trusts(entry["clientConfig"], material)]
        if wrong:
            # What leads elsewhere may be meant so: then it is for somebody to decide.
            patch = _mended(configuration, endpoint, material) if len(ours) == len(entries) else None
            yield _other_ca(where, listed(wrong), patch, external)
    for where, document in seen.definitions:
        definition = convert(document, CustomResourceDefinition)
        client = value_at(document, CONVERSION, {})
        if not (is_converted(definition) and client.get("caBundle") and _leads_home(client, seen)):
            continue
        if not _trusts(client, material):
            patch = definition_patch(definition, endpoint=endpoint, bundle=material.bundle)
            yield _other_ca(where, "its conversion", patch, external)


def _mended(configuration: Json, endpoint: ServiceEndpoint, material: Material) -> Json | None:
    live = convert(configuration, WebhookConfiguration)
    paths = {entry_path(entry) for entry in live.webhooks}
    try:
        return configuration_patch(live, active=paths, endpoint=endpoint, bundle=material.bundle)
    except ConfigurationError:
        return None  # nobody knows what it was


def _other_ca(where: Named, what: str, patch: Json | None, external: bool) -> Finding:
    if external:
        remedy = "whoever brings the certificates must put their CA there (externalCerts.annotations)"
        return OTHER_CA.found(str(where), f"{what}: caBundle does not have the CA of the certificate", remedy)
    return OTHER_CA.found(
        str(where),
        f"{what}: caBundle does not have the CA that the certificate is of",
        "a manager at work mends that within a second: see whether one is",
        fix=Patch(where.kind, where.name, patch) if patch is not None else None,
    )


def _trusts(client: Json, material: Material) -> bool:
    try:
        bundle = base64.b64decode(str(client.get("caBundle") or ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return material.ca_cert.strip() in bundle
