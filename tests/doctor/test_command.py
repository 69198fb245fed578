"""`kruise doctor` as it is typed: from a cluster without anything to one that works, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from kruise.machinery.client.client import Client
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.client.transport import Response
from kruise.machinery.codec import encode
from tests.cli.test_rights import Limited
from tests.support.commandline import Kruise, local_cluster
from tests.support.patients import CLUSTER_ROLES, NAMES, Patient, with_patient


def test_in_the_order_in_which_people_need_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with local_cluster(tmp_path_factory.mktemp("state"), "--bare") as kubeconfig:
        kruise = Kruise(kubeconfig)
        assert kruise.ok("doctor") == [
            "Kubernetes v1.34.4, without PyKruise",
            "",
            "note: the cluster [not-installed]",
            "  nothing of PyKruise is installed here",
            "  → kruise install --image IMAGE (docs/install.md)",
            "",
            "1 note",
        ]
        kruise.ok("install")
        done = kruise("doctor")
        assert done.code == 3
        assert done.lines[0] == "Kubernetes v1.34.4, PyKruise in namespace kruise-system: no manager in the cluster"
        assert [line for line in done.lines if line.endswith("]")] == [
            "broken: the manager [no-manager]",
            "broken: service/kruise-webhook-service in namespace kruise-system [nobody-behind-service]",
            "risk: daemonset/kruise-daemon in namespace kruise-system [no-daemon]",
        ]

        kruise.talk(lambda client: client.delete(CLUSTER_ROLES, "kruise-daemon-role"))
        assert kruise("doctor").lines[-1] == "3 broken, 1 risk; --fix mends 1 of them"
        data = json.loads(kruise("doctor", "-o", "json").out)
        assert [(one["code"], one["canBeMended"]) for one in data["findings"]] == [
            ("missing-object", True),
            ("no-manager", False),
            ("nobody-behind-service", False),
            ("no-daemon", False),
        ]
        assert yaml.safe_load(kruise("doctor", "-o", "yaml").out)["findings"] == data["findings"]
        # A typing error must not make another installation.
        elsewhere = kruise("doctor", "--fix", "--system-namespace", "kruise-sytem")
        assert elsewhere.code == 3
        assert "  → kruise doctor --system-namespace kruise-system" in elsewhere.lines
        assert not any("mended" in line for line in elsewhere.lines)
        mended = kruise("doctor", "--fix")
        assert (mended.code, mended.lines[2]) == (
            3,
            "mended: clusterrole/kruise-daemon-role: it belongs to the installation and is gone [missing-object]",
        )
        assert mended.lines[-1] == "2 broken, 1 risk"
        assert json.loads(kruise("doctor", "--fix", "-o", "json").out)["mended"] == []


def test_wrong_input_and_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    kruise = Kruise(tmp_path / "none")
    assert "Name a kubeconfig that exists" in kruise.refused("doctor", "--kubeconfig", str(tmp_path / "gone"))
    assert "Connection refused" in kruise.refused("doctor", "--server", "http://127.0.0.1:1")
    assert "'xml' is not one of" in kruise.refused("doctor", "-o", "xml", code=2)
    assert "unexpected extra argument" in kruise.refused("doctor", "web", code=2)


class ReadOnly(Limited):
    """A transport of somebody who may see everything and change nothing."""

    async def send(self, request: Request) -> Response:
        if request.verb is Verb.PATCH:
            body = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "not you"}
            return Response(403, encode(body), {"content-type": "application/json"})
        return await self._inner.send(request)


def test_who_may_not_mend_is_told_so() -> None:
    async def scenario(patient: Patient) -> None:
        await patient.world.client.delete(CLUSTER_ROLES, "kruise-daemon-role")
        client = patient.world.client
        readers = Client(ReadOnly(client.transport, frozenset()), clock=patient.world.clock)
        [mended] = await patient.mend(readers)
        assert mended.error == "clusterroles.rbac.authorization.k8s.io/kruise-daemon-role was refused: not you"
        assert set(await patient.findings()) == {"missing-object"}

    with_patient(scenario)


def test_what_may_not_be_seen_is_not_taken_for_missing() -> None:
    async def scenario(patient: Patient) -> None:
        await patient.world.client.delete(CLUSTER_ROLES, "kruise-daemon-role")
        seeing = frozenset({"pods", "clonesets", "mutatingwebhookconfigurations", "validatingwebhookconfigurations"})
        limited = Client(Limited(patient.world.client.transport, seeing), clock=patient.world.clock)
        report = await patient.examined(limited)
        assert report.findings == []
        assert report.seen.is_installed
        assert {str(where.name) for where, _ in report.seen.configurations} == set(NAMES)
        assert "ClusterRoles: they may not be read with your rights" in report.seen.unseen
        nothing = Client(Limited(patient.world.client.transport, frozenset()), clock=patient.world.clock)
        report = await patient.examined(nothing)
        assert (report.findings, report.code) == ([], 0)

    with_patient(scenario)
