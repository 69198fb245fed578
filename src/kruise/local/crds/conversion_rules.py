"""What may stand in the conversion stanza of a definition."""

from __future__ import annotations

import base64
import binascii
import urllib.parse
from collections.abc import Iterator, Sequence

from cryptography import x509

from kruise.api.core import field_errors
from kruise.api.core.field_errors import FieldError, Path
from kruise.api.core.formats import dns_subdomain, port_number
from kruise.local.apicore.errors import Json
from kruise.machinery.names import dns_1035_label_problems


def one_of(path: Path, value: str, accepted: Sequence[str]) -> Iterator[FieldError]:
    if not value:
        yield field_errors.required(path)
    elif value not in accepted:
        yield field_errors.not_supported(path, value, accepted)


def conversion_problems(conversion: Json, path: Path, established: bool) -> Iterator[FieldError]:
    strategy = conversion.get("strategy", "")
    yield from one_of(path.child("strategy"), strategy, ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or ()
    if strategy != "Webhook":
        words = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield field_errors.forbidden(path.child("webhookClientConfig"), words)
        if reviews:
            yield field_errors.forbidden(path.child("conversionReviewVersions"), words)
        return
    place = path.child("webhookClientConfig")
    if client is None:
        yield field_errors.required(place, "required when strategy is set to Webhook")
    else:
        yield from _client_problems(client, place)
        if established and not is_usable_bundle(client.get("caBundle", "")):
            words = "unable to load root certificates: unable to parse bytes as PEM block"
            yield field_errors.invalid(place.child("caBundle"), client["caBundle"], words)
    yield from _review_problems(reviews, path.child("conversionReviewVersions"))


def _client_problems(client: Json, path: Path) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield field_errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _url_problems(url, path.child("url"))
    elif service is not None:
        place = path.child("service")
        # A real server hands over name and namespace in the wrong order here, which shows when one is missing.
        for name, given in (("name", service.get("namespace")), ("namespace", service.get("name"))):
            if not given:
                yield field_errors.required(place.child(name))
        wrong = port_number(service["port"])
        if wrong:
            yield field_errors.invalid(place.child("port"), service["port"], f"port is not valid: {', '.join(wrong)}")
        yield from _path_problems(service.get("path"), place.child("path"))


def _url_problems(url: str, path: Path) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError as error:
        yield field_errors.required(path, f"url must be a valid URL: {error}{form}")
        return
    if parts.scheme != "https":
        yield field_errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    user, found, host = parts.netloc.rpartition("@")
    if not host:
        yield field_errors.invalid(path, "", f"host must be specified{form}")
    if found:
        yield field_errors.invalid(path, user, "user information is not permitted in the URL")
    if parts.fragment:
        yield field_errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield field_errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _path_problems(given: str | None, path: Path) -> Iterator[FieldError]:
    if not given or given == "/":
        return
    if given == "//":
        yield field_errors.invalid(path, given, "segment[0] may not be empty")
        return
    if not given.startswith("/"):
        yield field_errors.invalid(path, given, "must start with a '/'")
    for position, step in enumerate(given[1:].removesuffix("/").split("/")):
        if not step:
            yield field_errors.invalid(path, given, f"segment[{position}] may not be empty")
            continue
        for wrong in dns_subdomain(step):
            yield field_errors.invalid(path, given, f"segment[{position}]: {wrong}")


def _review_problems(reviews: Sequence[str], path: Path) -> Iterator[FieldError]:
    if not reviews:
        yield field_errors.required(path)
        return
    seen: set[str] = set()
    for position, version in enumerate(reviews):
        if version in seen:
            yield field_errors.invalid(path.at(position), version, "duplicate version")
            continue
        seen.add(version)
        for wrong in dns_1035_label_problems(version):
            yield field_errors.invalid(path.at(position), version, wrong)
    if not seen & {"v1", "v1beta1"}:
        yield field_errors.invalid(path, list(reviews), "must include at least one of v1, v1beta1")


def is_usable_bundle(bundle: str) -> bool:
    """Whether a CA bundle (base64 of PEM) holds certificates; an empty one stands for the system's own."""
    if not bundle:
        return True
    try:
        return bool(x509.load_pem_x509_certificates(base64.b64decode(bundle)))
    except (ValueError, binascii.Error):
        return False
