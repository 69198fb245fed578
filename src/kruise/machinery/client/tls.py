"""TLS contexts from a configuration, and plain words for what is wrong with a certificate."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from kruise.machinery.certificate_pairs import load_pair
from kruise.machinery.client.config import ClusterConfig, CredentialError, Pem


def context_for(config: ClusterConfig, certificate: Pem, key: Pem) -> ssl.SSLContext:
    """A client's context. `certificate` and `key` are ours; they may come from a plugin instead of `config`."""
    context = ssl.create_default_context(cadata=_text(config.ca, config) if config.ca else None)
    # Newer Pythons refuse authorities without key identifiers, which the certificates of many clusters lack.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    if config.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate:
        _load_identity(context, config, certificate, key)
    return context


def _load_identity(context: ssl.SSLContext, config: ClusterConfig, certificate: Pem, key: Pem) -> None:
    try:
        load_pair(context, _bytes(certificate, config), _bytes(key, config))
    except (ssl.SSLError, ValueError) as error:
        raise CredentialError(
            f"{config.origin}: client certificate {certificate} and key {key} do not fit together or are damaged "
            f"({error}). Get a new pair."
        ) from error


def _bytes(pem: Pem, config: ClusterConfig) -> bytes:
    if pem.data:
        return pem.data
    try:
        return Path(pem.path).read_bytes()
    except OSError as error:
        raise CredentialError(f"{config.origin}: {pem.path} cannot be read: {error.strerror}.") from error


def _text(pem: Pem, config: ClusterConfig) -> str:
    data = _bytes(pem, config)
    try:
        text = data.decode("ascii")
        ssl.create_default_context(cadata=text)
    except (ValueError, ssl.SSLError) as error:
        raise CredentialError(f"{config.origin}: certificate authority {pem} is damaged ({error}).") from error
    return text


def stamp(*pems: Pem) -> tuple[int, ...]:
    """Changes when one of the files behind the pems is replaced."""
    return tuple(_modified(pem.path) for pem in pems if pem.path)


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0  # a file in the middle of being replaced: its return is the change


def expired(config: ClusterConfig, certificate: Pem, now: datetime) -> str:
    """One sentence for each of our certificates whose time is over; empty when there is none."""
    sentences = []
    for what, pem in (("client certificate", certificate), ("certificate authority", config.ca)):
        for subject, until in _ends(pem):
            if until <= now:
                sentences.append(
                    f'the {what} {pem} of {config.origin or config.url} ("{subject}") expired at '
                    f"{until:%Y-%m-%dT%H:%M:%SZ}. Renew it."
                )
    return " ".join(sentences)


def _ends(pem: Pem) -> Iterator[tuple[str, datetime]]:
    """Subject and end of each certificate, as far as they can be read: this only explains another failure."""
    if not pem:
        return
    # Imported here because it is slow to import and only needed when a connection has failed.
    from cryptography import x509

    try:
        certificates = x509.load_pem_x509_certificates(pem.data or Path(pem.path).read_bytes())
    except (OSError, ValueError):
        return
    for certificate in certificates:
        yield certificate.subject.rfc4514_string(), certificate.not_valid_after_utc
