"""The loop that keeps certificates, configurations and CRDs in step, on virtual time."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import itertools
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise.admission import inventory
from kruise.admission.certfiles import CertificateDirectory
from kruise.admission.certificates import check, issue
from kruise.admission.certstore import CertificateStore, ExternalCertificates, Policy, SecretCertificates
from kruise.admission.configurations import MUTATING_NAME, VALIDATING_NAME, ServiceEndpoint
from kruise.admission.sync import SyncError, Synchronizer
from kruise.admission.tls import ServingCertificate
from kruise.api.native.config import SECRETS
from kruise.api.native.extensions import (
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
)
from kruise.local.inprocess import InProcessTransport
from kruise.machinery.client.client import Client
from kruise.machinery.client.errors import NotFoundError
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from kruise.machinery.clock import VirtualClock, run_virtual
from tests.admission.helpers import local_core

NAMESPACE, SECRET = "kruise-system", "kruise-webhook-certs"
ENDPOINT = ServiceEndpoint(NAMESPACE, "kruise-webhook-service")
PATHS = frozenset({"/mutate-pod", "/validate-pod"})
LIVE = {"mpod.kb.io", "vpod.kb.io", "vpodeviction.kb.io"}


class CountingTransport(InProcessTransport):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.writes: list[str] = []

    async def send(self, request: Request) -> Response:
        if request.verb.writes:
            self.writes.append(str(request))
        return await super().send(request)


class Recorded(ServingCertificate):
    """Remembers which certificate is served."""

    def __init__(self) -> None:
        super().__init__()
        self.served: list[bytes] = []

    def load(self, certificate: Path, key: Path) -> None:
        super().load(certificate, key)
        self.served.append(certificate.read_bytes())


class World:
    """An API core with everything installed, and replicas on it."""

    def __init__(self, tmp_path: Path) -> None:
        self.clock = VirtualClock(asyncio.get_running_loop())
        self.core = local_core(self.clock)
        self.transport = CountingTransport(self.core)
        self.client = Client(self.transport, clock=self.clock)
        self.tmp_path = tmp_path
        self.paths: Collection[str] = PATHS
        self._replicas = 0

    async def install(self, *, template: str | None = None) -> None:
        for resource, body in zip(
            (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS),
            inventory.configurations(),
            strict=True,
        ):
            await self.client.create(resource, body)
        for group, strategy in (("apps.kruise.io", "Webhook"), ("apps.kruise.io", "None"), ("other.io", "Webhook")):
            name = f"toys{strategy.lower()}.{group}"
            body = {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name},
                "spec": {"group": group, "conversion": {"strategy": strategy}},
            }
            await self.client.create(CUSTOM_RESOURCE_DEFINITIONS, body)

    def replica(
        self, store: CertificateStore | None = None, paths: Collection[str] | None = None, **more: Any
    ) -> tuple[Synchronizer, Recorded]:
        self._replicas += 1
        serving = Recorded()
        policy = Policy(dns_name=ENDPOINT.dns_name)
        synchronizer = Synchronizer(
            self.client,
            clock=self.clock,
            store=store or SecretCertificates(self.client, NAMESPACE, SECRET, policy, self.clock),
            directory=CertificateDirectory(self.tmp_path / f"replica-{self._replicas}"),
            serving=serving,
            endpoint=ENDPOINT,
            active_paths=lambda: self.paths if paths is None else paths,
            **more,
        )
        return synchronizer, serving

    async def entries(self) -> dict[str, dict[str, Any]]:
        mutating = await self.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        validating = await self.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME)
        return {entry["name"]: entry for entry in (*mutating.webhooks, *validating.webhooks)}

    async def bundles(self) -> set[bytes]:
        """Every CA bundle that API servers see."""
        found = [entry["clientConfig"].get("caBundle", "") for entry in (await self.entries()).values()]
        definition = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, "toyswebhook.apps.kruise.io")
        found.append(definition.spec.conversion.get("webhook", {}).get("clientConfig", {}).get("caBundle", ""))
        return {base64.b64decode(text) for text in found}

    async def secret(self) -> dict[str, bytes]:
        return (await self.client.get(SECRETS, SECRET, NAMESPACE)).data


@contextlib.asynccontextmanager
async def running(*synchronizers: Synchronizer) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(synchronizer.run()) for synchronizer in synchronizers]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@functools.cache
def is_trusted(certificate: bytes, bundle: bytes) -> bool:
    """Whether a caller that trusts the bundle accepts the certificate."""
    served = x509.load_pem_x509_certificate(certificate)
    for ca in x509.load_pem_x509_certificates(bundle):
        with contextlib.suppress(InvalidSignature):
            served.verify_directly_issued_by(ca)
            return True
    return False


def play(tmp_path: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario(World(tmp_path))

    run_virtual(main())


def test_one_pass_sets_everything_up(tmp_path: Path) -> None:  # MGR-31, PW-49
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, serving = world.replica()
        assert not synchronizer.first_success.is_set()
        async with running(synchronizer):
            await asyncio.wait_for(synchronizer.first_success.wait(), 1)
        assert synchronizer.detail == ""
        data = await world.secret()
        assert serving.served == [data["tls.crt"]]
        assert (tmp_path / "replica-1" / "ca-cert.pem").read_bytes() == data["ca-cert.pem"]
        assert set(await world.entries()) == LIVE
        assert await world.bundles() == {data["ca-cert.pem"]}
        other = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "toyswebhook.other.io")
        assert other.spec.conversion == {"strategy": "Webhook"}
        none = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "toysnone.apps.kruise.io")
        assert none.spec.conversion == {"strategy": "None"}

    play(tmp_path, scenario)


def test_conversion_is_there_before_webhooks_need_it(tmp_path: Path) -> None:
    """A webhook is called with an object in its own version: that may take a conversion."""

    async def scenario(world: World) -> None:
        await world.install()
        world.transport.writes.clear()
        synchronizer, _ = world.replica()
        await synchronizer.run_once()
        registered = [write for write in world.transport.writes if "secrets" not in write]
        assert ["customresourcedefinitions" in write for write in registered] == [True, False, False]

    play(tmp_path, scenario)


def test_a_pass_over_a_right_world_writes_nothing(tmp_path: Path) -> None:  # PW-50, PW-52
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, serving = world.replica()
        await synchronizer.run_once()
        world.transport.writes.clear()
        async with running(synchronizer):
            await asyncio.sleep(600)
        assert world.transport.writes == []
        assert len(serving.served) == 1

    play(tmp_path, scenario)


def test_missing_configurations_are_waited_for(tmp_path: Path) -> None:
    """Where the original exits (MGR-85), we wait and say what for; the certificate is served meanwhile."""

    async def scenario(world: World) -> None:
        synchronizer, serving = world.replica()
        async with running(synchronizer):
            await asyncio.sleep(200)
            assert not synchronizer.first_success.is_set()
            assert f"waiting for MutatingWebhookConfiguration {MUTATING_NAME}: install it" in synchronizer.detail
            assert f"waiting for ValidatingWebhookConfiguration {VALIDATING_NAME}" in synchronizer.detail
            assert len(serving.served) == 1
            await world.install()
            synchronizer.trigger()
            await asyncio.wait_for(synchronizer.first_success.wait(), 1)
            assert synchronizer.detail == ""

    play(tmp_path, scenario)


def test_one_missing_configuration_does_not_hold_up_the_rest(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        synchronizer, _ = world.replica()
        with pytest.raises(SyncError, match=f"waiting for MutatingWebhookConfiguration {MUTATING_NAME}"):
            await synchronizer.run_once()
        validating = await world.client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME)
        assert {entry["name"] for entry in validating.webhooks} == {"vpod.kb.io", "vpodeviction.kb.io"}
        definition = await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "toyswebhook.apps.kruise.io")
        assert "webhook" in definition.spec.conversion

    play(tmp_path, scenario)


@pytest.mark.parametrize("watched", [True, False])
def test_wiped_entries_come_back(tmp_path: Path, watched: bool) -> None:  # MGR-82
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, _ = world.replica()
        async with running(synchronizer):
            await synchronizer.first_success.wait()
            await world.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME, {"webhooks": []})
            if watched:
                synchronizer.trigger()
            await asyncio.sleep(1 if watched else 61)
            assert set(await world.entries()) == LIVE

    play(tmp_path, scenario)


def test_gates_take_entries_away_and_bring_them_back(tmp_path: Path) -> None:  # MGR-84
    async def scenario(world: World) -> None:
        await world.install()
        world.paths = frozenset({"/mutate-pod"})
        await world.replica()[0].run_once()
        assert set(await world.entries()) == {"mpod.kb.io"}
        world.paths = PATHS
        await world.replica()[0].run_once()
        assert set(await world.entries()) == LIVE

    play(tmp_path, scenario)


def test_a_replica_that_does_not_register_serves_all_the_same(tmp_path: Path) -> None:
    """Where each replica has an address of its own, the leader's is registered; the next leader takes its place."""

    async def scenario(world: World) -> None:
        await world.install()
        leads = False
        synchronizer, serving = world.replica(registers=lambda: leads)
        async with running(synchronizer):
            await synchronizer.first_success.wait()
            assert serving.served
            assert all(not entry["clientConfig"].get("caBundle") for entry in (await world.entries()).values())
            leads = True
            synchronizer.trigger()
            await asyncio.sleep(1)
            assert set(await world.entries()) == LIVE
            assert all(entry["clientConfig"]["caBundle"] for entry in (await world.entries()).values())

    play(tmp_path, scenario)


def test_two_that_want_different_things_write_less_and_less(tmp_path: Path) -> None:
    """Replicas of two versions: at the pace of a watch they would write four times a second."""

    async def scenario(world: World) -> None:
        await world.install()
        pair = [world.replica(paths=paths)[0] for paths in (PATHS, frozenset({"/mutate-pod"}))]

        async def watch() -> None:
            seen = 0
            while True:
                if len(world.transport.writes) != seen:
                    seen = len(world.transport.writes)
                    for synchronizer in pair:
                        synchronizer.trigger()
                await asyncio.sleep(0.05)

        watching = asyncio.create_task(watch())
        async with running(*pair):
            await asyncio.sleep(60)
            first = len(world.transport.writes)
            await asyncio.sleep(540)
        watching.cancel()
        assert first > 10  # they do disagree
        assert first <= 60
        assert len(world.transport.writes) <= 400

    play(tmp_path, scenario)


def test_a_deleted_secret_is_regenerated_and_all_follow_without_a_gap(tmp_path: Path) -> None:  # MGR-81
    """At every moment callers trust the CA of what each replica serves, before, during and after."""

    async def scenario(world: World) -> None:
        await world.install()
        replicas = [world.replica() for _ in range(3)]
        async with running(*(synchronizer for synchronizer, _ in replicas)):
            await asyncio.sleep(1)
            first = await world.secret()
            await world.client.delete(SECRETS, SECRET, NAMESPACE)
            replicas[0][0].trigger()
            for step in range(400):
                if step % 7 == 3:
                    # Every change wakes everybody, as watches do.
                    for synchronizer, _ in replicas:
                        synchronizer.trigger()
                for bundle in await world.bundles():
                    for _, serving in replicas:
                        assert is_trusted(serving.served[-1], bundle), f"at {world.clock.monotonic()}"
                await asyncio.sleep(0.1 if step < 300 else 40)
            second = await world.secret()
            assert second["ca-cert.pem"] != first["ca-cert.pem"]
            assert all(serving.served[-1] == second["tls.crt"] for _, serving in replicas)
            assert await world.bundles() == {second["ca-cert.pem"]}
            assert "former-ca-certs.pem" not in second

    play(tmp_path, scenario)


TROUBLE = {
    "delete": None,
    "bad certificate": {"tls.crt": "bm9uc2Vuc2U="},
    "bad CA": {"ca-cert.pem": "bm9uc2Vuc2U="},
    "lost CA key": {"ca-key.pem": None},
    "emptied": dict.fromkeys(("ca-key.pem", "ca-cert.pem", "key.pem", "cert.pem", "tls.key", "tls.crt")),
}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    events=st.lists(
        st.tuples(st.sampled_from(sorted(TROUBLE)), st.integers(0, 30), st.sets(st.integers(0, 1))), max_size=5
    )
)
def test_whatever_happens_to_the_secret_no_caller_loses_trust(
    tmp_path: Path, events: list[tuple[str, int, set[int]]]
) -> None:  # MGR-81
    """Any trouble at any moment, seen by any replica first: the bundles always cover what is served, and in the end
    everybody serves the one certificate of the Secret."""

    async def scenario(world: World) -> None:
        await world.install()
        replicas = [world.replica(propagation=3.0) for _ in range(2)]

        async def look() -> None:
            for bundle in await world.bundles():
                for _, serving in replicas:
                    assert is_trusted(serving.served[-1], bundle), f"at {world.clock.monotonic()}"

        async with running(*(synchronizer for synchronizer, _ in replicas)):
            await asyncio.sleep(1)
            for what, fifths, woken in events:
                spoil = TROUBLE[what]
                with contextlib.suppress(NotFoundError):
                    if spoil is None:
                        await world.client.delete(SECRETS, SECRET, NAMESPACE)
                    else:
                        await world.client.patch(SECRETS, SECRET, {"data": spoil}, NAMESPACE)
                for index in woken:
                    replicas[index][0].trigger()
                for _ in range(fifths):
                    await asyncio.sleep(0.2)
                    await look()
            for _ in range(60):
                await asyncio.sleep(2.5)
                await look()
            data = await world.secret()
            assert {serving.served[-1] for _, serving in replicas} == {data["tls.crt"]}
            (bundle,) = await world.bundles()
            assert bundle.startswith(data["ca-cert.pem"])

    with tempfile.TemporaryDirectory(dir=tmp_path) as directory:
        play(Path(directory), scenario)


def test_rotation_before_the_end_changes_the_bundle_first_and_the_certificate_later(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, serving = world.replica(propagation=5.0)
        async with running(synchronizer):
            await synchronizer.first_success.wait()
            first = await world.secret()
            world.clock.shift(86400 * (3650 - 170))
            synchronizer.trigger()
            await asyncio.sleep(2)
            second = await world.secret()
            assert await world.bundles() == {second["ca-cert.pem"] + first["ca-cert.pem"]}
            assert (tmp_path / "replica-1" / "ca-cert.pem").read_bytes() == second["ca-cert.pem"] + first["ca-cert.pem"]
            assert serving.served == [first["tls.crt"]]
            await asyncio.sleep(5)
            assert serving.served[-1] == second["tls.crt"]

    play(tmp_path, scenario)


def test_a_certificate_that_is_of_no_use_is_replaced_at_once(tmp_path: Path) -> None:
    """The clock jumped past the end of everything: waiting would only prolong the outage."""

    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, serving = world.replica(propagation=300.0)
        async with running(synchronizer):
            await synchronizer.first_success.wait()
            world.clock.shift(86400 * 4000)
            synchronizer.trigger()
            await asyncio.sleep(1)
            assert serving.served[-1] == (await world.secret())["tls.crt"]
            assert len(set(serving.served)) == 2

    play(tmp_path, scenario)


def test_failures_back_off_and_heal(tmp_path: Path) -> None:  # MGR-31, MGR-25
    async def scenario(world: World) -> None:
        await world.install()
        tries: list[float] = []

        class Broken:
            async def ensure(self, trusted: bytes) -> Any:
                tries.append(world.clock.monotonic())
                raise OSError("disk on fire")

        synchronizer, _ = world.replica(store=Broken())
        async with running(synchronizer):
            await asyncio.sleep(200)
        gaps = [round(later - earlier) for earlier, later in itertools.pairwise(tries)]
        assert gaps == [1, 2, 4, 8, 16, 32, 60, 60]
        assert synchronizer.detail == "certificates: disk on fire"

    play(tmp_path, scenario)


def test_the_loop_survives_an_api_server_that_is_down(tmp_path: Path) -> None:  # MGR-25
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, _ = world.replica()
        send = world.transport.send

        async def refuse(request: Request) -> Response:
            body = b'{"kind":"Status","code":503,"reason":"ServiceUnavailable","message":"starting"}'
            return Response(503, body)

        world.transport.send = refuse  # type: ignore[method-assign]
        async with running(synchronizer):
            await asyncio.sleep(300)
            assert "starting" in synchronizer.detail
            world.transport.send = send  # type: ignore[method-assign]
            await asyncio.sleep(121)
            assert synchronizer.first_success.is_set()

    play(tmp_path, scenario)


def test_external_certificates_leave_configurations_alone(tmp_path: Path) -> None:  # MGR-36
    async def scenario(world: World) -> None:
        await world.install()
        await world.replica()[0].run_once()
        made = issue(ENDPOINT.dns_name, world.clock.now())
        encoded = {"ca.crt": made.ca_cert, "tls.crt": made.cert, "tls.key": made.key}
        await world.client.patch(SECRETS, SECRET, {"data": encoded}, NAMESPACE)
        store = ExternalCertificates(world.client, NAMESPACE, SECRET, ENDPOINT.dns_name, world.clock)
        synchronizer, serving = world.replica(store=store, external=True)
        world.transport.writes.clear()
        with pytest.raises(SyncError, match=r"entry mpod\.kb\.io: caBundle is not the external CA"):
            await synchronizer.run_once()
        assert serving.served == [made.cert]
        for resource, name in (
            (MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME),
            (VALIDATING_WEBHOOK_CONFIGURATIONS, VALIDATING_NAME),
        ):
            live = await world.client.get(resource, name)
            bundle = base64.b64encode(made.ca_cert).decode()
            hooks = [{**item, "clientConfig": {**item["clientConfig"], "caBundle": bundle}} for item in live.webhooks]
            await world.client.patch(resource, name, {"webhooks": hooks})
        stanza = {"webhook": {"clientConfig": {"caBundle": base64.b64encode(made.ca_cert).decode()}}}
        await world.client.patch(
            CUSTOM_RESOURCE_DEFINITIONS, "toyswebhook.apps.kruise.io", {"spec": {"conversion": stanza}}
        )
        world.transport.writes.clear()
        await synchronizer.run_once()
        assert world.transport.writes == []

    play(tmp_path, scenario)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        (tmp_path / "replica-1").write_text("a file is in the way")
        synchronizer, _ = world.replica()
        with pytest.raises(SyncError, match=r"certificates: .*replica-1"):
            await synchronizer.run_once()

    play(tmp_path, scenario)


def test_definitions_can_come_from_a_store(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        asked = []

        async def from_store() -> list[Any]:
            asked.append(world.clock.monotonic())
            return [await world.client.get(CUSTOM_RESOURCE_DEFINITIONS, "toyswebhook.apps.kruise.io")]

        synchronizer, _ = world.replica(definitions=from_store)
        await synchronizer.run_once()
        data = await world.secret()
        assert await world.bundles() == {data["ca-cert.pem"]}
        assert len(asked) == 1
        made = await world.client.get(SECRETS, SECRET, NAMESPACE)
        assert made.data["tls.crt"] == data["tls.crt"]

    play(tmp_path, scenario)


def test_what_is_served_is_good_for_the_service(tmp_path: Path) -> None:  # MGR-33
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, _ = world.replica()
        await synchronizer.run_once()
        material = await SecretCertificates(
            world.client, NAMESPACE, SECRET, Policy(dns_name=ENDPOINT.dns_name), world.clock
        ).ensure(b"")
        check(material, "kruise-webhook-service.kruise-system.svc", world.clock.now())

    play(tmp_path, scenario)


def restoring(*bodies: dict[str, Any]) -> Any:
    async def restore(resource: Any) -> dict[str, Any] | None:
        return next((body for body in bodies if body["kind"] == resource.kind), None)

    return restore


def test_a_replica_that_begins_makes_again_what_has_been_taken_away(tmp_path: Path) -> None:  # MGR-37
    async def scenario(world: World) -> None:
        await world.install()
        await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        replicas = [world.replica(restore=restoring(*inventory.configurations()))[0] for _ in range(2)]
        async with running(*replicas):
            await asyncio.sleep(59)
            assert not any(replica.first_success.is_set() for replica in replicas)
            assert "makes it again" in replicas[0].detail
            await asyncio.sleep(120)
            assert all(replica.first_success.is_set() for replica in replicas)
        assert set(await world.entries()) == LIVE

    play(tmp_path, scenario)


def test_a_replica_at_work_leaves_taken_away_what_somebody_takes_away(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        synchronizer, _ = world.replica(restore=restoring(*inventory.configurations()))
        async with running(synchronizer):
            await synchronizer.first_success.wait()
            await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
            await asyncio.sleep(600)
            with pytest.raises(NotFoundError):
                await world.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)

    play(tmp_path, scenario)


@pytest.mark.parametrize("more", [{"restore": restoring()}, {"registers": lambda: False}])
def test_nothing_is_made_again_that_somebody_is_removing_or_another_registers(tmp_path: Path, more: Any) -> None:
    async def scenario(world: World) -> None:
        await world.install()
        await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        synchronizer, _ = world.replica(**{"restore": restoring(*inventory.configurations()), **more})
        async with running(synchronizer):
            await asyncio.sleep(600)
            assert "waiting for MutatingWebhookConfiguration" in synchronizer.detail

    play(tmp_path, scenario)
