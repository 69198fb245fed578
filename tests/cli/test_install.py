"""`kruise uninstall` as it is typed; what it does is shown in tests/manager/installation and on a real cluster."""

from __future__ import annotations

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS
from tests.support.commandline import Kruise, local_cluster
from tests.support.manifests import cloneset_manifest


def test_in_the_order_in_which_people_try_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with local_cluster(tmp_path_factory.mktemp("state"), "--bare") as kubeconfig:
        kruise = Kruise(kubeconfig)
        assert not any("daemonsets.apps/" in line for line in kruise.ok("install"))
        image = "--daemon-image=registry.example.com/kruise:1"
        assert "daemonsets.apps/kruise-daemon created" in kruise.ok("install", image)
        assert "daemonsets.apps/kruise-daemon unchanged" in kruise.ok("install", image)
        printed = list(yaml.safe_load_all("\n".join(kruise.ok("install", "--print", image))))
        assert printed[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/kruise:1"
        assert "'Kruise' is no image" in kruise.refused("install", "--daemon-image=Kruise", code=2)
        assert "need --image" in kruise.refused("install", "--set", "daemon.socketLocation=/run", code=2)
        assert "unknown feature gate 'x'" in kruise.refused("install", image, "--set", "featureGates=x=true", code=2)
        assert "does not go with --daemon-image" in kruise.refused("install", image, "--image=a:1", code=2)
        assert "'manager.replica' is no value" in kruise.refused("install", image, "--set=manager.replica=1", code=2)
        assert "PATH=VALUE" in kruise.refused("install", image, "--set", "featureGates", code=2)
        policy = "--set=webhookConfiguration.failurePolicy.pods"
        assert "choose Fail or Ignore" in kruise.refused("install", f"{policy}=ignore", code=2)
        # Without an image, too: it is about what the API server does.
        admitting = "\n".join(kruise.ok("install", "--print", f"{policy}=Ignore"))
        assert '"failurePolicy":"Ignore"' in admitting
        in_time = "\n".join(kruise.ok("install", "--print", "--set=webhookConfiguration.timeoutSeconds=7"))
        assert '"timeoutSeconds":7' in in_time
        watched = kruise.refused("install", image, "--set=metrics.serviceMonitor.enabled=true")
        assert "this cluster does not serve ServiceMonitor (monitoring.coreos.com/v1)" in watched
        kruise.create(CLONE_SETS, cloneset_manifest("web"))
        entries = [{"name": "x.kb.io", "clientConfig": {"url": "https://127.0.0.1:1/"}, "sideEffects": "None"}]
        entries[0] |= {"admissionReviewVersions": ["v1"], "rules": [RULE]}
        name = "kruise-mutating-webhook-configuration"
        kruise.talk(lambda client: client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, name, {"webhooks": entries}))
        assert "does not go with --with-resources" in kruise.refused(
            "uninstall", "--webhooks-only", "--with-resources", code=2
        )
        assert "1 clonesets.apps.kruise.io" in kruise.refused("uninstall")
        assert "1 clonesets.apps.kruise.io" in kruise.refused("uninstall", "--check")
        assert "--check changes nothing" in kruise.refused("uninstall", "--check", "--with-resources", code=2)
        assert kruise.ok("uninstall", "--webhooks-only", "--timeout", "5s") == [
            f"mutatingwebhookconfigurations.admissionregistration.k8s.io/{name}: 1 entry taken away",
            "nothing is intercepted any more: no entry is left (1 taken away); a manager puts them back",
        ]
        assert "--timeout" in kruise.refused("uninstall", "--timeout", "soon", code=2)
        removed = kruise.ok("uninstall", "--with-resources")
        assert removed[-1].startswith("uninstalled: ")
        assert any("daemonsets.apps/kruise-daemon" in line for line in removed)
        assert any("services/kruise-daemon-metrics" in line for line in removed)
        assert kruise("uninstall").code == 0


RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
