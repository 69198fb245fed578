"""Keys, certificates and kubeconfig files of one test cluster: its own CA, elliptic-curve keys, nothing shared."""

from __future__ import annotations

import base64
import datetime
import hashlib
import ipaddress
import json
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = datetime.timedelta(days=365)
_CLOCK_SLACK = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Credentials:
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


class Authority:
    """The CA of one cluster. Makes its files in `directory`, which must exist."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "pykruise-test-ca")])
        builder = _certificate(self._name, self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=True), critical=True)
        builder = builder.add_extension(
            x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
        )
        certificate = builder.sign(self._key, hashes.SHA256())
        self.files = self._write("ca", certificate, self._key)
        self.certificate_pem = certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def join(cls, directory: Path) -> Authority:
        """The CA in `directory` as another process uses it. Its files are apart: two may ask for the same user."""
        joined = cls.__new__(cls)
        joined._directory = Path(tempfile.mkdtemp(prefix="joined-", dir=directory))
        joined.files = Credentials(directory / "ca.crt", directory / "ca.key")
        joined.certificate_pem = joined.files.certificate.read_bytes()
        joined._name = x509.load_pem_x509_certificate(joined.certificate_pem).subject
        key = serialization.load_pem_private_key(joined.files.key.read_bytes(), password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        joined._key = key
        return joined

    def server(self, name: str, addresses: Iterable[str]) -> Credentials:
        """A serving certificate for the given host names and IP addresses."""
        names: list[x509.GeneralName] = []
        for address in addresses:
            try:
                names.append(x509.IPAddress(ipaddress.ip_address(address)))
            except ValueError:
                names.append(x509.DNSName(address))
        return self._issue(name, name, (), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Iterable[str]) -> Credentials:
        """A client certificate that the API server reads as this user in these groups."""
        groups = tuple(groups)
        return self._issue(_file_name(user, groups), user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def signing_key(self, name: str) -> Credentials:
        """A bare key pair; `certificate` is the public key."""
        key = ec.generate_private_key(ec.SECP256R1())
        files = Credentials(self._directory / f"{name}.pub", self._directory / f"{name}.key")
        files.certificate.write_bytes(
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
        _write_key(files.key, key)
        return files

    def kubeconfig(self, server: str, user: str, groups: Iterable[str], *, path: Path | None = None) -> Path:
        """A kubeconfig file with everything inline, so that it can be copied elsewhere."""
        groups = tuple(groups)
        files = self.client(user, groups)
        path = path or self._directory / f"{_file_name(user, groups)}.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": server, "certificate-authority-data": _base64(self.certificate_pem)},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {
                        "client-certificate-data": _base64(files.certificate.read_bytes()),
                        "client-key-data": _base64(files.key.read_bytes()),
                    },
                }
            ],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user, "namespace": "default"}}],
        }
        # JSON is YAML; no other writer is needed.
        path.write_text(json.dumps(content, indent=2) + "\n")
        path.chmod(0o600)
        return path

    def _issue(
        self,
        file_name: str,
        common_name: str,
        organizations: tuple[str, ...],
        usage: x509.ObjectIdentifier,
        names: list[x509.GeneralName],
    ) -> Credentials:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
        attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
        builder = _certificate(x509.Name(attributes), self._name, key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_key_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return self._write(file_name, builder.sign(self._key, hashes.SHA256()), key)

    def _write(self, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Credentials:
        files = Credentials(self._directory / f"{name}.crt", self._directory / f"{name}.key")
        files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        _write_key(files.key, key)
        return files


def _certificate(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SLACK)
        .not_valid_after(now + _LIFETIME)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


def _file_name(user: str, groups: tuple[str, ...]) -> str:
    digest = hashlib.sha256("\0".join((user, *groups)).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.-]+', '-', user)[:60]}-{digest}"


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
