"""Files in volumes that are made from keys, fields, tokens and certificates."""

from __future__ import annotations

from collections.abc import Sequence

from kruise.api.core import formats
from kruise.api.core.field_errors import Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common, environment
from kruise.api.core.validation.common import Errors, Struct

_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_CONFLICT = "conflicting duplicate paths"


def key_paths(path: Path, items: Sequence[Struct]) -> Errors:
    for position, item in enumerate(items):
        yield from key_path(path.at(position), item)


def key_path(path: Path, item: Struct) -> Errors:
    """One key of a Secret or ConfigMap, and the file it becomes."""
    for field in ("key", "path"):
        if not item[field]:
            yield required(path.child(field))
    yield from common.complaints(path.child("path"), item["path"], formats.non_reserved_path(item["path"]))
    yield from common.file_mode(path.child("mode"), item.get("mode"))


def downward_file(path: Path, item: Struct) -> Errors:
    """One file of a downward API volume. Complaints name the volume, not the item, as the API server has it."""
    if not item["path"]:
        yield required(path.child("path"))
    yield from common.complaints(path.child("path"), item["path"], formats.non_reserved_path(item["path"]))
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from environment.field_reference(path.child("fieldRef"), field, environment.VOLUME_FIELDS)
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from environment.resource_reference(path.child("resourceFieldRef"), resource, in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from common.file_mode(path.child("mode"), item.get("mode"))


def sources(path: Path, given: Sequence[Struct]) -> Errors:
    """The sources of a projected volume. No two may write the same file."""
    taken: set[str] = set()
    for position, source in enumerate(given):
        where = path.child("sources").at(position)
        used = [name for name in _SOURCES if source.get(name) is not None]
        for name in used:
            yield from _source(path, where.child(name), name, source[name], taken)
        if len(used) > 1:
            yield forbidden(where, "may not specify more than 1 volume type per source")


_SOURCES = ("secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate")


def _source(path: Path, where: Path, kind: str, source: Struct, taken: set[str]) -> Errors:
    if kind in ("secret", "configMap"):
        if not source.get("name"):
            yield required(where.child("name"))
        for position, item in enumerate(source.get("items") or ()):
            yield from key_path(where.child("items").at(position), item)
            yield from _take(path, item["path"], source.get("name", ""), taken)
    elif kind == "downwardAPI":
        for item in source.get("items") or ():
            yield from downward_file(where, item)
            yield from _take(path, item["path"], item["path"], taken)
    elif kind == "serviceAccountToken":
        yield from _token(path, where, source)
    elif kind == "clusterTrustBundle":
        yield from _trust_bundle(where, source)
        yield from _take(path, source["path"], source["path"], taken, even_empty=True)
    else:
        yield from _certificate(path, where, source, taken)


def _take(path: Path, file: str, shown: str, taken: set[str], *, even_empty: bool = False) -> Errors:
    if not file and not even_empty:
        return
    if file in taken:
        yield invalid(path, shown, _CONFLICT)
    taken.add(file)


def _token(path: Path, where: Path, source: Struct) -> Errors:
    seconds = source.get("expirationSeconds") or 0
    if seconds < 600:
        yield invalid(where.child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes")
    if seconds > 2**32:
        yield invalid(where.child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds")
    file = source["path"]
    if not file:
        yield required(path.child("path"))
    else:
        yield from common.complaints(path.child("path"), file, formats.non_reserved_path(file))


def _trust_bundle(path: Path, source: Struct) -> Errors:
    name, signer, selector = (source.get(field) for field in ("name", "signerName", "labelSelector"))
    if name is not None and signer is not None:
        yield invalid(path, source, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required(path.child("name"), "must be a valid object name")
        found = (f"not a valid clustertrustbundlename: {one}" for one in formats.dns_subdomain(name.replace(":", ".")))
        yield from common.complaints(path.child("name"), name, found)
        if selector is not None:
            yield invalid(path.child("labelSelector"), selector, "labelSelector must be unset if name is specified")
    elif signer is not None:
        if not signer:
            yield required(path.child("signerName"), "must be a valid signer name")
        yield from _signer(path.child("signerName"), signer)
        yield from common.label_selector(path.child("labelSelector"), selector)
    else:
        yield required(path, "either name or signerName must be specified")
    if not source["path"]:
        yield required(path.child("path"))
    yield from common.complaints(path.child("path"), source["path"], formats.non_reserved_path(source["path"]))


def _signer(path: Path, signer: str) -> Errors:
    domain, slash, rest = signer.partition("/")
    if not signer:
        yield required(path)
    elif not slash or not rest or formats.dns_subdomain(domain) or "." not in domain:
        yield invalid(path, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")


def _certificate(path: Path, where: Path, source: Struct, taken: set[str]) -> Errors:
    yield from _signer(where.child("signerName"), source.get("signerName", ""))
    key_type = source.get("keyType", "")
    if key_type not in _KEY_TYPES:
        yield not_supported(where.child("keyType"), key_type, _KEY_TYPES)
    seconds = source.get("maxExpirationSeconds")
    if seconds is not None:
        limit = 86400 if source.get("signerName", "").startswith("kubernetes.io/") else 91 * 86400
        at = where.child("maxExpirationSeconds")
        if seconds < 3600:
            yield invalid(at, seconds, "if provided, maxExpirationSeconds must be >= 3600")
        if seconds > limit:
            yield invalid(at, seconds, f"if provided, maxExpirationSeconds must be <= {limit}")
    files = [name for name in ("credentialBundlePath", "keyPath", "certificateChainPath") if source.get(name)]
    for name in files:
        yield from common.complaints(where.child(name), source[name], formats.non_reserved_path(source[name]))
        yield from _take(path, source[name], source[name], taken)
    if not files:
        yield required(where, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
