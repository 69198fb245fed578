"""Who the cluster is, and who its user is: a CA, the serving certificate, the admin's certificate and token.

Everything is made anew for each cluster, with elliptic-curve keys, and lives as long as the cluster's directory. The
kubeconfig holds all that kubectl needs, so that it can be copied elsewhere.
"""

from __future__ import annotations

import base64
import dataclasses
import ipaddress
import json
import secrets
import ssl
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kruise.machinery.certificate_pairs import load_pair
from kruise.machinery.client.kubeconfig import LOCAL_CLUSTER_EXTENSION

ADMIN: Final = "kubernetes-admin"
ADMIN_GROUP: Final = "system:masters"
CONTEXT: Final = "kruise"
SERVING_NAMES: Final = (
    "127.0.0.1",
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LIFETIME: Final = timedelta(days=3650)
# Clocks differ: a certificate must not be from the future for anyone.
_BACKDATED: Final = timedelta(hours=1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """All PEM but the token."""

    ca_cert: bytes
    ca_key: bytes = dataclasses.field(repr=False)
    cert: bytes
    key: bytes = dataclasses.field(repr=False)
    admin_cert: bytes
    admin_key: bytes = dataclasses.field(repr=False)
    token: str = dataclasses.field(repr=False)

    def to_files(self) -> Mapping[str, bytes]:
        """Names and contents, to be kept in a directory that only its owner may read."""
        return {
            "ca.crt": self.ca_cert,
            "ca.key": self.ca_key,
            "server.crt": self.cert,
            "server.key": self.key,
            "admin.crt": self.admin_cert,
            "admin.key": self.admin_key,
            "token": self.token.encode(),
        }

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Identity:
        """Raises `KeyError` where one is missing."""
        return cls(
            ca_cert=files["ca.crt"],
            ca_key=files["ca.key"],
            cert=files["server.crt"],
            key=files["server.key"],
            admin_cert=files["admin.crt"],
            admin_key=files["admin.key"],
            token=files["token"].decode(),
        )


def make_identity(now: datetime, *, names: Iterable[str] = ()) -> Identity:
    """New keys and certificates. `names`: host names and addresses of the server besides `SERVING_NAMES`."""
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kruise-local-ca")])
    ca = (
        _builder(ca_name, ca_name, ca_key, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    serving_key = ec.generate_private_key(ec.SECP256R1())
    known = dict.fromkeys((*SERVING_NAMES, *names))
    serving = _issue(ca, ca_key, serving_key, now, "kube-apiserver", "", [_general_name(name) for name in known])
    admin_key = ec.generate_private_key(ec.SECP256R1())
    admin = _issue(ca, ca_key, admin_key, now, ADMIN, ADMIN_GROUP, [])
    return Identity(
        ca_cert=_pem(ca),
        ca_key=_key_pem(ca_key),
        cert=_pem(serving),
        key=_key_pem(serving_key),
        admin_cert=_pem(admin),
        admin_key=_key_pem(admin_key),
        token=secrets.token_urlsafe(32),
    )


def server_context(identity: Identity) -> ssl.SSLContext:
    """For the listening socket: clients may show a certificate of the cluster's CA."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=identity.ca_cert.decode())
    context.set_alpn_protocols(["http/1.1"])
    load_pair(context, identity.cert, identity.key)
    return context


def client_context(identity: Identity, *, admin: bool = True) -> ssl.SSLContext:
    """For a client in this process; with `admin` it shows the admin's certificate."""
    context = ssl.create_default_context(cadata=identity.ca_cert.decode())
    if admin:
        load_pair(context, identity.admin_cert, identity.admin_key)
    return context


def kubeconfig(identity: Identity, url: str, *, namespace: str = "default") -> str:
    """A kubeconfig of the admin, with everything inline, under one name and with the mark of a local cluster."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": CONTEXT,
        "clusters": [
            {
                "name": CONTEXT,
                "cluster": {
                    "server": url,
                    "certificate-authority-data": _base64(identity.ca_cert),
                    # It is on this machine, where packing a list takes longer than sending it.
                    "disable-compression": True,
                    "extensions": [{"name": LOCAL_CLUSTER_EXTENSION, "extension": {}}],
                },
            }
        ],
        "users": [
            {
                "name": CONTEXT,
                "user": {
                    "client-certificate-data": _base64(identity.admin_cert),
                    "client-key-data": _base64(identity.admin_key),
                },
            }
        ],
        "contexts": [{"name": CONTEXT, "context": {"cluster": CONTEXT, "user": CONTEXT, "namespace": namespace}}],
    }
    # JSON is YAML; no other writer is needed.
    return json.dumps(content, indent=2) + "\n"


def _issue(
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    name: str,
    group: str,
    addresses: list[x509.GeneralName],
) -> x509.Certificate:
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group)] if group else []
    subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
    usage = ExtendedKeyUsageOID.SERVER_AUTH if addresses else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = (
        _builder(x509.Name(subject), ca.subject, key, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    if addresses:
        builder = builder.add_extension(x509.SubjectAlternativeName(addresses), critical=False)
    return builder.sign(ca_key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=False,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(cert: x509.Certificate) -> bytes:
    return cert.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
