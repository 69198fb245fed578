"""Making and checking webhook certificates. Pure but for the randomness of the keys; the time is a parameter.

One CA (`webhook-cert-ca`) signs one serving certificate. Both live for ten years and are replaced half a year before
the end; the CA is kept as long as it has a year left, so most renewals change nothing that callers trust (MGR-33, 34).
Keys are elliptic curve (P-256): a handshake costs a tenth of what RSA costs.
"""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CA_NAME = "webhook-cert-ca"
LIFETIME = timedelta(days=3650)
CA_REUSED_WITH_LEFT = timedelta(days=365)
DEFAULT_RENEW_BEFORE = timedelta(days=180)
BACKDATED = timedelta(hours=1)
"""Clocks differ: a certificate must not be from the future for anyone."""

CA_KEY, CA_CERT, KEY, CERT, TLS_KEY, TLS_CERT = (
    "ca-key.pem",
    "ca-cert.pem",
    "key.pem",
    "cert.pem",
    "tls.key",
    "tls.crt",
)
FORMER_CA_CERTS = "former-ca-certs.pem"
"""CAs that were replaced a short while ago; other replicas may still serve certificates of theirs."""
EXTERNAL_CA_CERT, EXTERNAL_CA_KEY = "ca.crt", "ca.key"

E = TypeVar("E", bound=x509.ExtensionType)

_SERVING_KEYS = (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)
_DURATION = re.compile(r"([0-9]+)([dmy])", re.ASCII)
_DAYS = {"d": 1, "m": 30, "y": 365}
_PEM_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL)


class CertificateError(ValueError):
    """The material cannot be used; the text says why."""


def parse_renew_before(text: str) -> timedelta:
    """CERTS_RENEW_BEFORE: a number and `d`, `m` (30 days) or `y` (365 days). Anything else means 180 days."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        return DEFAULT_RENEW_BEFORE
    try:
        result = timedelta(days=int(match[1]) * _DAYS[match[2]])
    except (OverflowError, ValueError):
        return DEFAULT_RENEW_BEFORE
    return result if result > timedelta(0) else DEFAULT_RENEW_BEFORE


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What a replica needs to serve, and callers need to trust it. All PEM."""

    ca_cert: bytes
    ca_key: bytes = dataclasses.field(default=b"", repr=False)
    """Empty where somebody else keeps it."""
    cert: bytes
    key: bytes = dataclasses.field(repr=False)
    former_ca_certs: bytes = b""

    @property
    def bundle(self) -> bytes:
        """What callers should trust: the CA, and for a while those before it."""
        return self.ca_cert + self.former_ca_certs

    def to_data(self) -> dict[str, bytes]:
        """As kept in the Secret and in the directory (MGR-32)."""
        data = {
            CA_KEY: self.ca_key,
            CA_CERT: self.ca_cert,
            KEY: self.key,
            CERT: self.cert,
            TLS_KEY: self.key,
            TLS_CERT: self.cert,
        }
        if self.former_ca_certs:
            data[FORMER_CA_CERTS] = self.former_ca_certs
        return data

    def to_files(self) -> dict[str, bytes]:
        """As above, but `ca-cert.pem` holds the whole bundle: our own health check trusts that file, and while a new
        certificate waits for its turn we still serve one of the former CA."""
        return {**self.to_data(), CA_CERT: self.bundle}


def from_data(data: Mapping[str, bytes]) -> Material:
    """Raises `CertificateError` where a key is missing or the doubled ones differ."""
    missing = [name for name in (CA_KEY, CA_CERT, KEY, CERT, TLS_KEY, TLS_CERT) if not data.get(name)]
    if missing:
        raise CertificateError(f"no {', '.join(missing)}")
    if data[KEY] != data[TLS_KEY] or data[CERT] != data[TLS_CERT]:
        raise CertificateError(f"{KEY} and {TLS_KEY}, or {CERT} and {TLS_CERT}, differ")
    return Material(
        ca_cert=data[CA_CERT],
        ca_key=data[CA_KEY],
        cert=data[CERT],
        key=data[KEY],
        former_ca_certs=data.get(FORMER_CA_CERTS, b""),
    )


def from_external_data(data: Mapping[str, bytes]) -> Material:
    """Certificates that come from outside (MGR-36). The CA's key may stay with whoever made them."""
    missing = [name for name in (EXTERNAL_CA_CERT, TLS_CERT, TLS_KEY) if not data.get(name)]
    if missing:
        raise CertificateError(f"no {', '.join(missing)}")
    return Material(
        ca_cert=data[EXTERNAL_CA_CERT],
        ca_key=data.get(EXTERNAL_CA_KEY, b""),
        cert=data[TLS_CERT],
        key=data[TLS_KEY],
    )


def check(material: Material, dns_name: str, at: datetime) -> None:
    """Raise `CertificateError` unless the key fits, and the certificate is good for `dns_name` at that time, as the CA
    sees it (MGR-33). The certificate may be followed by those between it and the CA."""
    chain = _load_all(material.cert, "the serving certificate")
    roots = _load_all(material.ca_cert, "the CA certificate")
    key = _load_key(material.key, "the serving key")
    if chain[0].public_key() != key.public_key():
        raise CertificateError("the serving key does not belong to the serving certificate")
    if material.ca_key and roots[0].public_key() != _load_key(material.ca_key, "the CA key").public_key():
        raise CertificateError("the CA key does not belong to the CA certificate")
    _check_time(chain[0], "the serving certificate", at)
    _check_chain(chain, roots, at)
    _check_names(chain[0], dns_name)


def _check_time(cert: x509.Certificate, what: str, at: datetime) -> None:
    if at > cert.not_valid_after_utc:
        raise CertificateError(f"{what} ends at {cert.not_valid_after_utc:%Y-%m-%d}, needed at {at:%Y-%m-%d}")
    if at < cert.not_valid_before_utc:
        raise CertificateError(f"{what} begins at {cert.not_valid_before_utc:%Y-%m-%d}, needed at {at:%Y-%m-%d}")


def _check_chain(chain: list[x509.Certificate], roots: list[x509.Certificate], at: datetime) -> None:
    if chain[0] in roots:
        return  # self-signed and trusted as it is
    problem = ""
    for index, cert in enumerate(chain):
        for root in roots:
            problem = _issuer_problem(cert, root)
            if not problem:
                _check_time(root, "the CA certificate", at)
                return
        if index + 1 < len(chain):
            between = chain[index + 1]
            if text := _issuer_problem(cert, between):
                raise CertificateError(f"the chain of the serving certificate is broken: {text}")
            _check_time(between, "an intermediate certificate", at)
    raise CertificateError(f"the serving certificate does not lead to the CA: {problem}")


def _issuer_problem(cert: x509.Certificate, issuer: x509.Certificate) -> str:
    try:
        cert.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature) as error:
        return str(error) or "the signature does not fit"
    constraints = _extension(issuer, x509.BasicConstraints)
    return "" if constraints is not None and constraints.ca else "the issuer is no CA"


def _check_names(cert: x509.Certificate, dns_name: str) -> None:
    usage = _extension(cert, x509.ExtendedKeyUsage)
    if usage is not None and ExtendedKeyUsageOID.SERVER_AUTH not in usage:
        raise CertificateError("the serving certificate is not for servers")
    names = _extension(cert, x509.SubjectAlternativeName)
    address = _address(dns_name)
    if names is not None:
        if address is not None and address in names.get_values_for_type(x509.IPAddress):
            return
        if address is None and any(_covers(name, dns_name) for name in names.get_values_for_type(x509.DNSName)):
            return
    raise CertificateError(f"the serving certificate is not for {dns_name}")


def _covers(pattern: str, name: str) -> bool:
    pattern, name = pattern.lower(), name.lower()
    if pattern.startswith("*."):
        return name.partition(".")[2] == pattern[2:]
    return pattern == name


def issue(dns_name: str, now: datetime, *, keep_ca_of: Material | None = None) -> Material:
    """New material. The CA of `keep_ca_of` signs it if it can be used for another year, else a new one does, and the
    old CA stays in the bundle."""
    kept = _usable_ca(keep_ca_of, now) if keep_ca_of is not None else None
    former = b""
    if kept is not None and keep_ca_of is not None:
        ca_key, ca = kept
        former = keep_ca_of.former_ca_certs
    else:
        ca_key = ec.generate_private_key(ec.SECP256R1())
        ca = _make_ca(ca_key, now)
        if keep_ca_of is not None:
            former = former_bundle(keep_ca_of.bundle, now)
    key = ec.generate_private_key(ec.SECP256R1())
    cert = _make_certificate(dns_name, key, ca, ca_key, now)
    return Material(
        ca_cert=_pem(ca), ca_key=_key_pem(ca_key), cert=_pem(cert), key=_key_pem(key), former_ca_certs=former
    )


def former_bundle(bundle: bytes, now: datetime, *, at_most: int = 8) -> bytes:
    """The certificates of a bundle that are still good, each once: what is trusted further after a change of CA."""
    good = []
    for pem in _PEM_CERTIFICATE.findall(bundle):
        try:
            cert = _load_certificate(pem, "a former CA")
        except CertificateError:
            continue
        if cert.not_valid_before_utc <= now <= cert.not_valid_after_utc:
            good.append(_pem(cert))
    return b"".join(list(dict.fromkeys(good))[:at_most])


def issued_at(material: Material) -> datetime:
    """When the serving certificate was made."""
    return _load_certificate(material.cert, "the serving certificate").not_valid_before_utc + BACKDATED


def encode_bundle(bundle: bytes) -> str:
    """As `caBundle` wants it."""
    return base64.b64encode(bundle).decode("ascii")


def _usable_ca(
    material: Material, now: datetime
) -> tuple[ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, x509.Certificate] | None:
    try:
        ca = _load_certificate(material.ca_cert, "the CA certificate")
        key = _load_key(material.ca_key, "the CA key")
    except CertificateError:
        return None
    constraints = _extension(ca, x509.BasicConstraints)
    fits = ca.public_key() == key.public_key() and constraints is not None and constraints.ca
    lasts = ca.not_valid_before_utc <= now and now + CA_REUSED_WITH_LEFT <= ca.not_valid_after_utc
    return (key, ca) if fits and lasts else None


def _make_ca(key: ec.EllipticCurvePrivateKey, now: datetime) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, CA_NAME)])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_encipherment=False,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(name, name, key, now, now + LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _make_certificate(
    dns_name: str,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
    now: datetime,
) -> x509.Certificate:
    # The common name is limited to 64 characters and nobody reads it: long names stand in the SANs alone.
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, dns_name)] if len(dns_name) <= 64 else [])
    address = _address(dns_name)
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    names.append(x509.IPAddress(address) if address is not None else x509.DNSName(dns_name))
    ends = min(now + LIFETIME, ca.not_valid_after_utc)
    builder = (
        _builder(subject, ca.subject, key, now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=not subject.rdns)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca.public_key()),  # type: ignore[arg-type]
            critical=False,
        )
    )
    return builder.sign(ca_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(ends)
    )


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _extension(cert: x509.Certificate, kind: type[E]) -> E | None:
    try:
        return cert.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, ValueError):
        return None


def _load_certificate(pem: bytes, what: str) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"{what} is unreadable: {error}") from error


def _load_all(pem: bytes, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"{what} is unreadable: {error}") from error


def _load_key(pem: bytes, what: str) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"{what} is unreadable: {error}") from error
    if not isinstance(key, _SERVING_KEYS):
        raise CertificateError(f"{what} is neither an elliptic-curve nor an RSA key")
    return key


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
