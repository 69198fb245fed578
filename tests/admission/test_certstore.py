"""Certificates in a Secret, in files, from outside: made once, shared, replaced in time."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Coroutine
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import CertificateError, Material, check, from_data, issue
from kruise.admission.certstore import ExternalCertificates, FileCertificates, Policy, SecretCertificates
from kruise.api.native.config import SECRETS, Secret
from kruise.local.apicore.core import ApiCore
from kruise.machinery.client.client import Client
from kruise.machinery.clock import VIRTUAL_EPOCH, ManualClock, run_virtual
from tests.admission.helpers import local_client, local_core

NAMESPACE, NAME = "kruise-system", "kruise-webhook-certs"
DNS = "kruise-webhook-service.kruise-system.svc"
POLICY = Policy(dns_name=DNS)
T = TypeVar("T")


class Cluster:
    def __init__(self) -> None:
        self.clock = ManualClock(VIRTUAL_EPOCH)
        self.core: ApiCore = local_core(self.clock)
        self.client: Client = local_client(self.core, self.clock)

    def store(self) -> SecretCertificates:
        return SecretCertificates(local_client(self.core, self.clock), NAMESPACE, NAME, POLICY, self.clock)

    async def secret(self) -> Secret:
        return await self.client.get(SECRETS, NAME, NAMESPACE)

    async def create(self, data: dict[str, Any] | None = None, **more: Any) -> None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}, **more}
        if data:
            body["data"] = data
        await self.client.create(SECRETS, body, NAMESPACE)

    async def days_pass(self, days: float) -> datetime:
        self.clock.advance(days * 86400)
        return self.clock.now()


def virtual(main: Coroutine[Any, Any, T]) -> T:
    return run_virtual(main)


def test_a_missing_secret_is_created_with_all_keys() -> None:  # MGR-32, PW-51
    async def main() -> None:
        cluster = Cluster()
        material = await cluster.store().ensure(b"")
        secret = await cluster.secret()
        assert secret.data == material.to_data()
        assert secret.type == "Opaque"
        check(material, DNS, cluster.clock.now() + timedelta(days=180))

    virtual(main())


def test_an_empty_secret_is_filled() -> None:  # MGR-32
    async def main() -> None:
        cluster = Cluster()
        await cluster.create()
        material = await cluster.store().ensure(b"")
        assert (await cluster.secret()).data == material.to_data()

    virtual(main())


def test_good_material_is_left_alone() -> None:
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        before = (await cluster.secret()).metadata.resource_version
        await cluster.days_pass(3000)
        assert await cluster.store().ensure(first.bundle) == first
        assert (await cluster.secret()).metadata.resource_version == before

    virtual(main())


@pytest.mark.parametrize("exists", [False, True])
def test_replicas_that_start_together_converge(exists: bool) -> None:  # MGR-80
    async def main() -> None:
        cluster = Cluster()
        if exists:
            await cluster.create()
        got = await asyncio.gather(*(cluster.store().ensure(b"") for _ in range(8)))
        assert len({material.cert for material in got}) == 1
        assert (await cluster.secret()).data == got[0].to_data()

    virtual(main())


def test_replicas_converge_whatever_the_interleaving() -> None:  # MGR-80
    async def late(cluster: Cluster, turns: int) -> Material:
        for _ in range(turns):
            await asyncio.sleep(0)
        return await cluster.store().ensure(b"")

    async def main() -> None:
        for first in range(6):
            for second in range(6):
                cluster = Cluster()
                got = await asyncio.gather(late(cluster, 0), late(cluster, first), late(cluster, second))
                assert len(set(got)) == 1

    virtual(main())


def test_a_deleted_secret_is_made_anew_and_the_served_ca_stays_trusted() -> None:  # MGR-81
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        await cluster.client.delete(SECRETS, NAME, NAMESPACE)
        second = await cluster.store().ensure(first.bundle)
        assert second.ca_cert != first.ca_cert
        assert second.bundle == second.ca_cert + first.ca_cert
        assert (await cluster.secret()).data["former-ca-certs.pem"] == first.ca_cert

    virtual(main())


@pytest.mark.parametrize(
    "spoil",
    [
        {"tls.crt": "bm9uc2Vuc2U="},
        {"tls.key": None},
        {"cert.pem": "bm9uc2Vuc2U=", "tls.crt": "bm9uc2Vuc2U="},
    ],
)
def test_a_corrupted_certificate_is_replaced_under_the_same_ca(spoil: dict[str, Any]) -> None:  # MGR-81
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        await cluster.client.patch(SECRETS, NAME, {"data": spoil}, NAMESPACE)
        second = await cluster.store().ensure(first.bundle)
        assert second.cert != first.cert
        assert second.bundle == first.bundle
        assert from_data((await cluster.secret()).data) == second

    virtual(main())


def test_a_corrupted_ca_is_replaced() -> None:  # MGR-81
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        await cluster.client.patch(SECRETS, NAME, {"data": {"ca-cert.pem": "bm9uc2Vuc2U="}}, NAMESPACE)
        second = await cluster.store().ensure(first.bundle)
        check(second, DNS, cluster.clock.now())
        assert second.former_ca_certs == first.ca_cert

    virtual(main())


def test_renewal_before_the_end_then_the_former_ca_goes() -> None:  # MGR-33, MGR-34, PW-51
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        now = await cluster.days_pass(3650 - 179)
        check(first, DNS, now)
        second = await cluster.store().ensure(first.bundle)
        assert second.bundle == second.ca_cert + first.ca_cert
        # Another replica, which still serves the first, takes over what is there.
        assert await cluster.store().ensure(first.bundle) == second
        cluster.clock.advance(3500)
        assert await cluster.store().ensure(second.bundle) == second
        cluster.clock.advance(200)
        third = await cluster.store().ensure(second.bundle)
        assert third == dataclasses.replace(second, former_ca_certs=b"")
        assert "former-ca-certs.pem" not in (await cluster.secret()).data
        assert await cluster.store().ensure(second.bundle) == third

    virtual(main())


def test_a_certificate_for_another_name_is_replaced_under_the_same_ca() -> None:  # MGR-33
    async def main() -> None:
        cluster = Cluster()
        first = await cluster.store().ensure(b"")
        other = SecretCertificates(cluster.client, NAMESPACE, NAME, Policy(dns_name="other.svc"), cluster.clock)
        second = await other.ensure(b"")
        assert second.ca_cert == first.ca_cert
        check(second, "other.svc", cluster.clock.now())

    virtual(main())


def test_files_are_made_read_back_and_renewed(tmp_path: Path) -> None:
    async def main() -> None:
        clock = ManualClock(VIRTUAL_EPOCH)
        directory = CertificateDirectory(tmp_path)
        store = FileCertificates(directory, Policy(dns_name="127.0.0.1"), clock)
        first = await store.ensure(b"")
        directory.write(first.to_files())
        assert await store.ensure(first.bundle) == first
        clock.advance(86400 * (3650 - 100))
        second = await store.ensure(first.bundle)
        assert second.former_ca_certs == first.ca_cert
        directory.write(second.to_files())
        assert await store.ensure(first.bundle) == second
        clock.advance(3700)
        third = await store.ensure(second.bundle)
        assert third.bundle == second.ca_cert
        (tmp_path / "tls.crt").unlink()
        (tmp_path / "tls.crt").write_bytes(b"overwritten by hand")
        directory.write(third.to_files())
        assert await store.ensure(third.bundle) == third

    virtual(main())


def test_external_certificates_are_only_read() -> None:  # MGR-36
    async def main() -> None:
        cluster = Cluster()
        store = ExternalCertificates(cluster.client, NAMESPACE, NAME, DNS, cluster.clock)
        with pytest.raises(
            CertificateError, match=r"kruise-system/kruise-webhook-certs with external .* not exist yet"
        ):
            await store.ensure(b"")
        await cluster.create()
        with pytest.raises(CertificateError, match=r"no ca\.crt, tls\.crt, tls\.key"):
            await store.ensure(b"")
        made = issue(DNS, cluster.clock.now())
        pems = {"ca.crt": made.ca_cert, "tls.crt": made.cert, "tls.key": made.key}
        await cluster.client.patch(SECRETS, NAME, {"data": pems}, NAMESPACE)
        before = (await cluster.secret()).metadata.resource_version
        assert (await store.ensure(b"")).cert == made.cert
        await cluster.days_pass(3651)
        with pytest.raises(CertificateError, match="ends at"):
            await store.ensure(b"")
        assert (await cluster.secret()).metadata.resource_version == before

    virtual(main())
