"""What Helm makes of the chart is what `kruise install` applies, whatever is chosen: templates say in Helm's language
what `templating` says in Python."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.kinds import features
from kruise.manager.installation.chart import ONE_MANAGER, chart_files, kustomize_files
from kruise.manager.installation.manifests import Style, manifests
from kruise.manager.installation.values import SETTINGS
from tests.support import helmbuild
from tests.support.realcluster import require_prerequisites

# A quoted key and a number, a list in a list, words with quotation marks: where templates of YAML go wrong.
_EVERYWHERE = {
    "manager.nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a/b", "operator": "In", "values": ["1", "true"]}]}]
        }
    },
    "manager.nodeSelector": {"kubernetes.io/arch": "amd64"},
    "manager.tolerations": [{"key": "x", "operator": "Exists"}, {"operator": "Exists", "tolerationSeconds": 3}],
    "manager.podAnnotations": {"a": 'said "so": {{ no }}', "b": "1"},
    "manager.extraEnvs": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
    "manager.priorityClassName": "",
    "manager.podDisruptionBudget.minAvailable": "50%",
    "manager.loggingFormat": "json",
    "manager.replicas": 3,
    "daemon.nodeSelector": {"a": "b"},
    "daemon.affinity": {},
    "daemon.extraEnvs": [{"name": "C", "value": "no"}],
    "daemon.socketFile": "k3s.sock",
    "daemon.credentialProvider.enable": True,
    "daemon.credentialProvider.awsCredentialsDir": "/etc/aws",
    "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
    "serviceAccount.annotations": {"role": "arn:x"},
    "installation.roleListGroups": ["", "apps"],
}


@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"installation.namespace": "elsewhere", "installation.createNamespace": False, "crds.managed": False},
        {"webhookConfiguration.aksIntegration": True, "webhookConfiguration.timeoutSeconds": 7},
        {"webhookConfiguration.aksIntegration": True, "featureGates": "EnableExternalCerts=true"},
        {"featureGates": "AllAlpha=true, AllBeta=false,EnableExternalCerts=false"},
        {"featureGates": "AllBeta=true,ResourceDistributionGate=false,KruiseDaemon=false"},
        {"featureGates": "PreDownloadImageForInPlaceUpdate=T,PodWebhook=0"},
        {"featureGates": "EnableExternalCerts=true", "externalCerts.annotations": {"cert-manager.io/inject": "a/b"}},
        {"webhookConfiguration.failurePolicy.pods": "Ignore"},
        {"webhookConfiguration.failurePolicy.pods": "Ignore", "featureGates": "EnableExternalCerts=true"},
        {"networkPolicy.enabled": True, "manager.podDisruptionBudget.enabled": False, "featureGates": ""},
        {"metrics.serviceMonitor.enabled": True, "metrics.rules.enabled": True, "metrics.dashboards.enabled": True},
        _EVERYWHERE,
    ],
    ids=[
        "defaults",
        "elsewhere",
        "azure",
        "azure-live",
        "alpha",
        "no-daemon",
        "forced",
        "external",
        "pods",
        "live",
        "policy",
        "monitoring",
        "all",
    ],
)
def test_helm_makes_what_is_installed(chosen: dict[str, Any], tmp_path: Path) -> None:
    wanted = manifests(features(), style=Style.CHART, values=chosen, runs=["manager", "daemon"])
    assert _by_name(_rendered(chosen, tmp_path, "--no-hooks")) == _by_name(wanted)


def test_helm_refuses_a_value_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        _rendered({"manager.replica": 3}, tmp_path)
    assert "additional properties 'replica' not allowed" in refused.value.stderr


def test_helm_refuses_a_choice_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        _rendered({"webhookConfiguration.failurePolicy.pods": "Maybe"}, tmp_path)
    assert "/webhookConfiguration/failurePolicy/pods" in refused.value.stderr
    assert "value must be one of 'Fail', 'Ignore'" in refused.value.stderr


def test_kustomize_lets_new_pods_in_as_the_command_does(tmp_path: Path) -> None:
    base = kustomize_files(features())
    for name, text in base.items():
        path = tmp_path / "base" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    overlay = {"resources": ["../base"], "components": ["../base/pods-admitted"]}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    kubectl = require_prerequisites()["kubectl"]
    done = subprocess.run([kubectl, "kustomize", tmp_path / "mine"], capture_output=True, text=True, check=True)
    chosen = {**ONE_MANAGER, "webhookConfiguration.failurePolicy.pods": "Ignore"}
    assert _by_name(list(yaml.safe_load_all(done.stdout))) == _by_name(
        manifests(features(), values=chosen, runs=["manager", "daemon"])
    )


def test_only_helm_asks_before_it_removes_definitions(tmp_path: Path) -> None:  # MGR-62
    found = _by_name(_rendered({"installation.namespace": "elsewhere"}, tmp_path))
    hooks = {name for name, each in found.items() if "helm.sh/hook" in each["metadata"].get("annotations", {})}
    assert hooks == {
        "ServiceAccount elsewhere/kruise-helm-hook",
        "ClusterRole /kruise-helm-hook-role",
        "ClusterRoleBinding /kruise-helm-hook-rolebinding",
        "Job elsewhere/released-finalizer",
    }
    kept = _by_name(_rendered({"crds.managed": False}, tmp_path))
    assert not hooks & set(kept)


def _rendered(chosen: dict[str, Any], directory: Path, *more: str) -> list[dict[str, Any]]:
    for name, text in chart_files(features(), "1.2.3").items():
        path = directory / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    values = directory / "values.json"
    values.write_text(json.dumps(_tree(chosen)))
    command = [helmbuild.find(), "template", "released", directory / "chart", f"--values={values}"]
    done = subprocess.run(
        [*map(str, command), *more],
        env={**os.environ, **dict.fromkeys(("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"), str(directory))},
        capture_output=True,
        text=True,
        check=True,
    )
    return [document for document in yaml.safe_load_all(done.stdout) if document]


def _tree(chosen: dict[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in chosen.items():
        *steps, last = path.split(".")
        place = tree
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = {**_taken_away(path), **value} if isinstance(value, dict) else value
    return tree


def _taken_away(path: str) -> dict[str, None]:
    """Helm merges what is chosen into the defaults: what is not to stay has to be said."""
    default = next((setting.default for setting in SETTINGS if setting.path == path), None)
    return dict.fromkeys(default) if isinstance(default, dict) else {}


def _by_name(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By kind, namespace and name: which is applied first is a matter of Helm."""
    found: dict[str, dict[str, Any]] = {}
    for each in objects:
        metadata = each["metadata"]
        name = f"{each['kind']} {metadata.get('namespace', '')}/{metadata['name']}"
        assert name not in found, name
        found[name] = each
    return found
