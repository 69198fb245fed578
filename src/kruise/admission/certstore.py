"""Where the certificates come from: a Secret that all replicas share, the file system, or somebody else's Secret.

`ensure` gives material that is good for the asked name and long enough, and makes it first if need be. Replicas that
start together converge on one Secret (MGR-80): the first create wins, everybody else reads it; a bad one is overwritten
only in the version that was judged.

When the CA changes, the one before stays in the Secret (`former-ca-certs.pem`) and so in every bundle that is written
from it, for an hour: other replicas go on serving certificates of the former CA until they have seen the new ones. The
bundle depends on the Secret alone, so replicas never write against each other; the end of the hour is one write to the
Secret. Former are also the CAs that the live configurations hold: after the Secret was deleted or spoiled, which makes
a new CA (MGR-81), only they tell under which CAs other replicas may be serving.
"""

from __future__ import annotations

import base64
import dataclasses
from datetime import datetime, timedelta
from typing import Protocol

from kruise.admission import certificates
from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import (
    CA_CERT,
    FORMER_CA_CERTS,
    CertificateError,
    Material,
    check,
    former_bundle,
    from_data,
    from_external_data,
    issue,
    issued_at,
)
from kruise.api.native.config import SECRETS, Secret
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from kruise.machinery.clock import Clock

FORMER_CA_KEPT = timedelta(hours=1)
_TRIES = 5


class CertificateStore(Protocol):
    async def ensure(self, trusted: bytes) -> Material:
        """Good material. `trusted` holds the CAs that callers trust now: replicas may be serving under any of them.
        Raises `CertificateError` or `ClientError`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What counts as good (MGR-33)."""

    dns_name: str
    renew_before: timedelta = certificates.DEFAULT_RENEW_BEFORE

    def accept(self, data: dict[str, bytes], now: datetime) -> Material:
        """The material in `data`; raises `CertificateError` where it must be made anew."""
        material = from_data(data)
        check(material, self.dns_name, now)
        check(material, self.dns_name, now + self.renew_before)
        return material

    def replacement(self, data: dict[str, bytes], trusted: bytes, now: datetime) -> Material:
        """New material in place of what is in `data`, keeping its CA where it can and trust in it where it cannot."""
        made = issue(self.dns_name, now, keep_ca_of=_salvaged(data))
        if made.ca_cert in trusted:
            return made
        return dataclasses.replace(made, former_ca_certs=former_bundle(trusted + made.former_ca_certs, now))


def _salvaged(data: dict[str, bytes]) -> Material | None:
    """What can be kept of unusable material: its CA, if there is one."""
    if not data.get(CA_CERT):
        return None
    return Material(
        ca_cert=data[CA_CERT],
        ca_key=data.get(certificates.CA_KEY, b""),
        cert=b"",
        key=b"",
        former_ca_certs=data.get(FORMER_CA_CERTS, b""),
    )


def without_former(material: Material, now: datetime) -> Material | None:
    """The material without former CAs if their time is over; None while nothing is to be dropped."""
    if not material.former_ca_certs or now < issued_at(material) + FORMER_CA_KEPT:
        return None
    return dataclasses.replace(material, former_ca_certs=b"")


class SecretCertificates:
    """Kept in a Secret, shared by all replicas (MGR-32)."""

    def __init__(self, client: Client, namespace: str, name: str, policy: Policy, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._policy = policy
        self._clock = clock

    async def ensure(self, trusted: bytes) -> Material:
        for _ in range(_TRIES):
            now = self._clock.now()
            try:
                secret = await self._client.get(SECRETS, self._name, self._namespace)
            except NotFoundError:
                made = await self._create(self._policy.replacement({}, trusted, now))
            else:
                made = await self._judge(secret, trusted, now)
            if made is not None:
                return made
        raise CertificateError(
            f"Secret {self._namespace}/{self._name} changed {_TRIES} times while it was being written"
        )

    async def _judge(self, secret: Secret, trusted: bytes, now: datetime) -> Material | None:
        try:
            material = self._policy.accept(secret.data, now)
        except CertificateError:
            return await self._overwrite(secret, self._policy.replacement(secret.data, trusted, now))
        shorter = without_former(material, now)
        return material if shorter is None else await self._overwrite(secret, shorter)

    async def _create(self, material: Material) -> Material | None:
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "type": "Opaque",
            "data": _encoded(material),
        }
        try:
            await self._client.create(SECRETS, body, self._namespace)
        except AlreadyExistsError:
            return None  # another replica was faster: read what it made
        return material

    async def _overwrite(self, secret: Secret, material: Material) -> Material | None:
        data: dict[str, str | None] = {**_encoded(material)}
        if not material.former_ca_certs and FORMER_CA_CERTS in secret.data:
            data[FORMER_CA_CERTS] = None
        guard = {"uid": secret.metadata.uid, "resourceVersion": secret.metadata.resource_version}
        try:
            await self._client.patch(SECRETS, self._name, {"metadata": guard, "data": data}, self._namespace)
        except (ConflictError, NotFoundError):
            return None
        except InvalidError as error:
            if secret.immutable:
                raise CertificateError(
                    f"Secret {self._namespace}/{self._name} is immutable and its certificates are not usable: delete it"
                ) from error
            return None  # another object of that name
        return material


def _encoded(material: Material) -> dict[str, str]:
    return {name: base64.b64encode(value).decode("ascii") for name, value in material.to_data().items()}


class FileCertificates:
    """Kept in the certificate directory of this process (`WEBHOOK_CERT_WRITER=fs`, or a WEBHOOK_HOST)."""

    def __init__(self, directory: CertificateDirectory, policy: Policy, clock: Clock) -> None:
        self._directory = directory
        self._policy = policy
        self._clock = clock

    async def ensure(self, trusted: bytes) -> Material:
        now = self._clock.now()
        data = self._directory.read()
        try:
            material = self._policy.accept(_unbundled(data), now)
        except CertificateError:
            material = self._policy.replacement(_unbundled(data), trusted, now)
        return without_former(material, now) or material


def _unbundled(data: dict[str, bytes]) -> dict[str, bytes]:
    """In files `ca-cert.pem` is the whole bundle; the CA itself is its first part."""
    former = data.get(FORMER_CA_CERTS, b"")
    if former and data.get(CA_CERT, b"").endswith(former):
        return {**data, CA_CERT: data[CA_CERT].removesuffix(former)}
    return data


class ExternalCertificates:
    """Made by somebody else, only read here (MGR-36)."""

    def __init__(self, client: Client, namespace: str, name: str, dns_name: str, clock: Clock) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._dns_name = dns_name
        self._clock = clock

    async def ensure(self, trusted: bytes) -> Material:
        where = f"Secret {self._namespace}/{self._name}"
        try:
            secret = await self._client.get(SECRETS, self._name, self._namespace)
        except NotFoundError:
            raise CertificateError(f"{where} with external certificates does not exist yet") from None
        try:
            material = from_external_data(secret.data)
            check(material, self._dns_name, self._clock.now())
        except CertificateError as error:
            raise CertificateError(f"{where} with external certificates: {error}") from error
        return material
