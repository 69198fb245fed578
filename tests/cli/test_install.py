"""`kruise uninstall` as it is typed; what it does is shown in tests/manager/installation and on a real cluster."""

from __future__ import annotations

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS
from tests.support.commandline import Kruise, local_cluster
from tests.support.manifests import cloneset_manifest


def test_in_the_order_in_which_people_try_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with local_cluster(tmp_path_factory.mktemp("state"), "--bare") as kubeconfig:
        kruise = Kruise(kubeconfig)
        kruise.ok("install")
        kruise.create(CLONE_SETS, cloneset_manifest("web"))
        entries = [{"name": "x.kb.io", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None"}]
        entries[0] |= {"admissionReviewVersions": ["v1"], "rules": [RULE]}
        name = "kruise-mutating-webhook-configuration"
        kruise.talk(lambda client: client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, name, {"webhooks": entries}))
        assert "does not go with --with-resources" in kruise.refused(
            "uninstall", "--webhooks-only", "--with-resources", code=2
        )
        assert "1 clonesets.apps.kruise.io" in kruise.refused("uninstall")
        assert kruise.ok("uninstall", "--webhooks-only", "--timeout", "5s") == [
            f"mutatingwebhookconfigurations.admissionregistration.k8s.io/{name}: 1 entry taken away",
            "nothing is intercepted any more: no entry is left (1 taken away); a manager puts them back",
        ]
        assert "--timeout" in kruise.refused("uninstall", "--timeout", "soon", code=2)
        assert kruise.ok("uninstall", "--with-resources")[-1].startswith("uninstalled: ")
        assert kruise("uninstall").code == 0


RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
