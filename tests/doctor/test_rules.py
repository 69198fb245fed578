"""What rules say of what was seen, where no cluster is needed for it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kruise.api.native.nodes import Node
from kruise.daemon.containers.part import ENVIRONMENT_GATE
from kruise.daemon.parts import parts
from kruise.doctor.findings import Apply, Finding
from kruise.doctor.rules import examine
from kruise.doctor.rules.running import READ_BY_DAEMONS
from kruise.doctor.snapshot import Asked, Leaving, Refusal, Snapshot
from kruise.kinds import features
from kruise.machinery.codec import convert
from kruise.manager.installation.documents import Named, named
from kruise.manager.installation.manifests import manifests
from kruise.reasons.manager import Manager

NOW = datetime(2026, 1, 1, tzinfo=UTC)
WEBHOOKS = "MutatingWebhookConfiguration"
Json = dict[str, Any]


def snapshot(values: Mapping[str, Any] | None = None, **changes: Any) -> Snapshot:
    """An installation in which nothing is wrong but what is changed."""
    wanted = manifests(features(), values={"manager.image.tag": "1.0", **(values or {})}, runs=("manager", "daemon"))
    live: dict[Named, Json] = {named(document): document for document in wanted}
    for where, document in live.items():
        if where.kind == "CustomResourceDefinition":
            stored = [version["name"] for version in document["spec"]["versions"] if version["storage"]]
            status = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": stored}
            live[where] = {**document, "status": status}
    seen = Snapshot(
        now=NOW,
        version="1.0",
        wanted=[document for document in wanted if document["kind"] not in ("Deployment", "DaemonSet")],
        live=live,
        manager=Manager(),
    )
    return dataclasses.replace(seen, **changes)


def changed(seen: Snapshot, kind: str, name: str, **fields: Any) -> Snapshot:
    """With an object that somebody has changed."""
    [where] = [where for where in seen.live if where[0::2] == (kind, name)]
    return dataclasses.replace(seen, live={**seen.live, where: {**seen.live[where], **fields}})


def codes(found: Sequence[Finding]) -> set[str]:
    return {finding.code for finding in found}


IDLE = {"not-registered", "manager-not-ready", "nobody-behind-service"}
"""Of an installation whose pods and webhooks are not looked at here."""


def told(seen: Snapshot) -> list[Finding]:
    return [finding for finding in examine(seen) if finding.code not in IDLE]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert told(snapshot()) == []


def test_a_cluster_without_an_installation() -> None:
    forbidden = [Refusal(f"clusterrole/{name}", "Forbidden", "clusterroles is forbidden") for name in "ab"]
    empty = Snapshot(now=NOW, version="1.0", is_installed=False, kubernetes=(1, 27, "v1.27.3"), refusals=forbidden)
    old, refused, none = examine(empty)
    assert (old.code, refused.code, none.code) == ("old-kubernetes", "install-refused", "not-installed")
    assert old.message == "it is v1.27.3; PyKruise needs 1.28 or newer"
    assert refused.about == "clusterrole/a, clusterrole/b"
    assert refused.message == "the API server would not take them: clusterroles is forbidden"


def test_a_wrong_name_of_the_namespace_is_no_reason_to_install_anything() -> None:
    elsewhere = manifests(features(), namespace="other", runs=("manager",))
    seen = dataclasses.replace(snapshot(), namespace="other", wanted=elsewhere)
    [finding] = examine(seen)
    assert (finding.code, finding.fix) == ("installed-elsewhere", None)
    assert finding.remedy == "kruise doctor --system-namespace kruise-system"


def test_what_somebody_has_added_is_not_taken_away() -> None:
    seen = snapshot()
    [role] = [where for where in seen.live if where.name == "kruise-daemon-role"]
    rules = seen.live[role]["rules"]
    [cut] = told(changed(seen, "ClusterRole", role.name, rules=rules[1:]))
    assert isinstance(cut.fix, Apply)
    more = {"apiGroups": [""], "resources": ["bindings"], "verbs": ["create"]}
    [finding] = told(changed(seen, "ClusterRole", role.name, rules=[*rules[1:], more]))
    assert (finding.code, finding.fix) == ("lacks-rights", None)
    assert finding.remedy.endswith("without what somebody has added: create bindings")

    subjects = [{"kind": "ServiceAccount", "namespace": "kruise-system", "name": "mine"}]
    [finding] = told(changed(seen, "ClusterRoleBinding", "kruise-daemon-rolebinding", subjects=subjects))
    assert (finding.code, finding.fix) == ("binding-differs", None)
    assert finding.message == "it does not bind the account kruise-system/kruise-daemon"
    [finding] = told(changed(seen, "ClusterRoleBinding", "kruise-daemon-rolebinding", subjects=None))
    assert isinstance(finding.fix, Apply)
    [finding] = told(changed(seen, "ClusterRoleBinding", "kruise-daemon-rolebinding", roleRef={"name": "view"}))
    assert finding.message == "it binds view and not kruise-daemon-role"
    assert finding.fix is None
    assert finding.remedy.startswith("kubectl delete clusterrolebinding kruise-daemon-rolebinding; ")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_command_of_another_version_brings_nothing(version: str) -> None:
    seen = snapshot(version=version)
    gone = Named("ClusterRole", "", "kruise-daemon-role")
    found = told(dataclasses.replace(seen, live={name: one for name, one in seen.live.items() if name != gone}))
    assert codes(found) == {"missing-object"} | ({"other-version"} if version == "2.0" else set())
    assert (found[0].fix is None) == (version == "2.0")


def test_nothing_comes_back_that_somebody_is_removing() -> None:
    seen = snapshot()
    [where] = [where for where in seen.live if where.kind == "Namespace" and where.name == "kruise-system"]
    metadata = {**seen.live[where]["metadata"], "annotations": {"kruise.io/removal": "true"}}
    seen = changed(seen, "Namespace", "kruise-system", metadata=metadata)
    gone = Named("ClusterRole", "", "kruise-daemon-role")
    found = told(dataclasses.replace(seen, live={name: one for name, one in seen.live.items() if name != gone}))
    assert [(finding.code, finding.fix) for finding in found] == [("missing-object", None), ("removal-began", None)]


def test_a_definition_that_is_not_served() -> None:
    conditions = [{"type": "NamesAccepted", "status": "False", "message": '"cs" is already in use'}]
    name = "clonesets.apps.kruise.io"
    [finding] = told(changed(snapshot(), "CustomResourceDefinition", name, status={"conditions": conditions}))
    assert finding.code == "not-established"
    assert finding.message == 'the kind is not served: NamesAccepted: "cs" is already in use'


def test_one_replica_and_no_daemon() -> None:
    seen = snapshot({"manager.replicas": 1})
    assert codes(told(seen)) == {"one-manager"}
    without = {name: one for name, one in seen.live.items() if name.kind != "DaemonSet"}
    assert codes(told(dataclasses.replace(seen, live=without))) == {"one-manager", "no-daemon"}
    off = snapshot({"featureGates": "KruiseDaemon=false"})
    assert codes(told(off)) == set()


def test_a_node_that_is_not_ready_has_no_daemon() -> None:
    conditions = [{"type": "Ready", "status": "Unknown", "message": "Kubelet stopped posting node status."}]
    nodes = [convert({"metadata": {"name": name}, "status": {"conditions": conditions}}, Node) for name in "ab"]
    [finding] = told(snapshot(nodes=nodes))
    assert (finding.code, finding.about) == ("node-without-daemon", "2 nodes (a, b)")
    assert finding.message == "the node is not ready: Kubelet stopped posting node status."


def test_only_gates_that_mean_something_to_a_daemon_make_it_disagree() -> None:
    read = {gate for part in parts({}) for gate in part.gates} | {ENVIRONMENT_GATE}
    assert set(READ_BY_DAEMONS) == read


def test_a_manager_that_answers_is_there_whatever_its_lease_says() -> None:
    service = {"name": "kruise-webhook-service", "namespace": "kruise-system", "path": "/x"}
    entries = [{"name": "x.kb.io", "clientConfig": {"service": service}, "failurePolicy": "Fail"}]
    seen = changed(snapshot(), WEBHOOKS, "kruise-mutating-webhook-configuration", webhooks=entries)
    nobody = Manager(is_unknown=True, words="there is no lease")
    assert codes(told(dataclasses.replace(seen, manager=nobody))) == {"no-manager"}
    answered = [Asked("x.kb.io", seconds=2.5)]
    [finding] = told(dataclasses.replace(seen, manager=nobody, asked=answered))
    assert (finding.code, finding.message) == ("webhook-slow", "a request that passes it took 2.5 s")
    # Those that wait for a lease answer, too; the one that held it is gone.
    stale = Manager(is_down=True, words="nobody holds the lease")
    assert codes(told(dataclasses.replace(seen, manager=stale, asked=[Asked("x.kb.io")]))) == {"no-manager"}
    found = told(dataclasses.replace(seen, manager=stale))
    assert codes(found) == {"no-manager", "webhooks-without-manager"}


def test_who_holds_what_is_to_go() -> None:
    since = NOW - timedelta(minutes=10)
    leaving = [
        Leaving("namespace/a", since, ("kubernetes",)),
        Leaving("cloneset/b in namespace a", since, ("apps.kruise.io/x",)),
        Leaving("cloneset/young in namespace a", NOW - timedelta(minutes=1), ("example.com/x",)),
        Leaving("cloneset/served in namespace a", since, ()),
    ]
    namespace, ours = told(snapshot(leaving=leaving))
    assert "kubectl describe namespace tells which" in namespace.remedy
    assert ours.message == "it was deleted 10m ago and is held by apps.kruise.io/x"
    assert ours.remedy.startswith("the manager takes apps.kruise.io/x off")
    down = Manager(is_down=True, words="nobody holds the lease")
    ours = told(snapshot(leaving=leaving[1:2], manager=down))[1]
    assert ours.remedy == "a manager takes apps.kruise.io/x off, and none is at work"
