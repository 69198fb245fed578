"""What can be chosen about an installation: the values of the chart, with their defaults. Pure.

Names and meanings are those of the original's chart (MGR section 11); what is new here is marked in the table.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from kruise.admission.inventory import FAILURE_POLICIES
from kruise.manager import gates


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    path: str
    default: Any
    meaning: str
    is_new: bool = False
    """Not in the original's chart."""
    choices: tuple[str, ...] = ()
    """What it may be; empty: anything of its type."""


POD_FAILURE_POLICY = "webhookConfiguration.failurePolicy.pods"
WEBHOOK_TIMEOUT = "webhookConfiguration.timeoutSeconds"
AZURE = "webhookConfiguration.aksIntegration"

SETTINGS: tuple[Setting, ...] = (
    Setting("crds.managed", True, "install the definitions, and keep them up to date"),
    Setting("installation.namespace", "kruise-system", "where manager and daemon run"),
    Setting("installation.createNamespace", True, "make that namespace"),
    Setting("installation.roleListGroups", ["*"], "groups in which the manager may list objects, to protect them"),
    Setting("featureGates", "ImagePullJobGate=true", "gates of manager and daemon"),
    Setting("externalCerts.annotations", {}, "annotations of configurations and definitions, such as cert-manager's"),
    Setting("enableKubeCacheMutationDetector", False, "no effect: cached objects cannot be changed"),
    Setting("imagePullSecrets", [], "of all pods"),
    Setting("manager.image.repository", "pykruise/kruise-manager", "one image for manager and daemon"),
    Setting("manager.image.tag", "", "empty: the version of the chart"),
    Setting("manager.image.pullPolicy", "IfNotPresent", "imagePullPolicy of all pods", is_new=True),
    Setting("manager.replicas", 2, "one of them leads; all answer webhooks"),
    Setting("manager.log.level", "4", "4 and more logs details"),
    Setting("manager.loggingFormat", "", "text or json"),
    Setting("manager.webhook.port", 9876, ""),
    Setting("manager.metrics.port", 8080, ""),
    Setting("manager.healthProbe.port", 8000, ""),
    Setting("manager.journal.port", 8443, "decisions, for kruise why and kruise journal", is_new=True),
    Setting("manager.pprofAddr", "localhost:8090", "no effect: attach a sampling profiler instead"),
    Setting("manager.resyncPeriod", "0", "periodic look at every object; 0: none"),
    Setting(
        "manager.resources",
        {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "512Mi"}},
        "no limit of CPU: a throttled webhook holds up whoever makes a pod",
    ),
    Setting("manager.hostNetwork", False, ""),
    Setting("manager.nodeAffinity", {}, ""),
    Setting("manager.nodeSelector", {}, ""),
    Setting("manager.tolerations", [], ""),
    Setting("manager.priorityClassName", "system-cluster-critical", "empty: none", is_new=True),
    Setting("manager.podAnnotations", {}, "", is_new=True),
    Setting("manager.extraEnvs", [], "", is_new=True),
    Setting("manager.podDisruptionBudget.enabled", True, "a drain leaves one replica", is_new=True),
    Setting("manager.podDisruptionBudget.minAvailable", 1, "", is_new=True),
    Setting("manager.qps", "0", "cap on API writes a second; 0: adaptive", is_new=True),
    Setting(WEBHOOK_TIMEOUT, 30, "of every webhook; where kruise install or kustomize is not told, 10"),
    Setting(
        POD_FAILURE_POLICY,
        "Fail",
        "new pods while no manager answers: Fail refuses them, Ignore lets them in as they are",
        is_new=True,
        choices=FAILURE_POLICIES,
    ),
    Setting(AZURE, False, "leave the namespaces of Azure's control plane alone"),
    Setting("daemon.log.level", "4", ""),
    Setting("daemon.port", 10221, "metrics and health"),
    Setting("daemon.enablePprof", True, "no effect"),
    Setting("daemon.pprofAddr", "localhost:10222", "no effect"),
    Setting("daemon.socketLocation", "/var/run", "directory of the container runtime's socket; k3s: /run/k3s"),
    Setting("daemon.socketFile", "", "its name there; empty: the well-known ones"),
    Setting("daemon.nodeSelector", {}, ""),
    Setting(
        "daemon.affinity",
        {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {
                            "matchExpressions": [
                                {"key": "type", "operator": "NotIn", "values": ["virtual-kubelet"]},
                            ]
                        }
                    ]
                }
            }
        },
        "",
    ),
    Setting(
        "daemon.resources",
        {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}},
        "",
    ),
    Setting("daemon.extraEnvs", [], ""),
    Setting("daemon.priorityClassName", "system-node-critical", "empty: none", is_new=True),
    Setting("daemon.maxWorkersForPullImage", -1, "pulls at a time on a node; -1: no limit", is_new=True),
    Setting("daemon.credentialProvider.enable", False, "plugins that fetch credentials of registries"),
    Setting("daemon.credentialProvider.configmap", "credential-provider-config", ""),
    Setting("daemon.credentialProvider.hostPath", "credential-provider-plugin", "directory of the plugins on nodes"),
    Setting("daemon.credentialProvider.awsCredentialsDir", "", "directory on nodes, mounted as /root/.aws"),
    Setting("serviceAccount.annotations", {}, "of manager's and daemon's accounts"),
    Setting("helmHooks.image.repository", "", "no effect: hooks run the manager's image"),
    Setting("helmHooks.image.tag", "", "no effect"),
    Setting("networkPolicy.enabled", False, "only webhooks, metrics, health and journal are reachable", is_new=True),
    Setting("metrics.perWorkload", True, "metrics name workloads: their pods and rollouts", is_new=True),
    Setting("metrics.serviceMonitor.enabled", False, "tell the Prometheus operator where metrics are", is_new=True),
    Setting("metrics.serviceMonitor.interval", "30s", "", is_new=True),
    Setting("metrics.serviceMonitor.labels", {}, "by which the operator finds it", is_new=True),
    Setting("metrics.rules.enabled", False, "alert rules, for the Prometheus operator", is_new=True),
    Setting("metrics.rules.labels", {}, "by which the operator finds them", is_new=True),
    Setting("metrics.dashboards.enabled", False, "dashboards for Grafana, in a ConfigMap", is_new=True),
    Setting(
        "metrics.dashboards.labels", {"grafana_dashboard": "1"}, "by which Grafana's sidecar finds them", is_new=True
    ),
)


def defaults() -> dict[str, Any]:
    """The values as a tree."""
    tree: dict[str, Any] = {}
    for setting in SETTINGS:
        _put(tree, setting.path, copy.deepcopy(setting.default))
    return tree


def with_values(chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults with these in their place, by path: `manager.replicas`."""
    tree = defaults()
    known = {setting.path: setting for setting in SETTINGS}
    for path, value in chosen.items():
        if path not in known:
            raise ValueError(f"{path!r} is no value of an installation; see docs/install.md")
        choices = known[path].choices
        if choices and value not in choices:
            raise ValueError(f"{path} is {value!r}: choose {' or '.join(choices)}")
        _put(tree, path, value)
    return tree


def by_path(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The other way round: a tree of values, by path."""
    known = {setting.path for setting in SETTINGS}
    found: dict[str, Any] = {}

    def look(part: Mapping[str, Any], above: str) -> None:
        for key, value in part.items():
            path = f"{above}{key}"
            if path not in known and isinstance(value, Mapping):
                look(value, f"{path}.")
            else:
                found[path] = value

    look(tree, "")
    return found


def gates_of(tree: Mapping[str, Any]) -> dict[str, bool]:
    return gates.resolve(gates.parse(str(tree["featureGates"])))


def values_file() -> str:
    """`values.yaml`: every value with its meaning."""
    lines = ["# Made by `kruise install --write-chart` from the table of kruise.manager.installation.values."]
    said: list[str] = []
    for setting in SETTINGS:
        steps = setting.path.split(".")
        common = 0
        while common < min(len(said), len(steps) - 1) and said[common] == steps[common]:
            common += 1
        for depth in range(common, len(steps) - 1):
            if depth == 0:
                lines.append("")
            lines.append(f"{'  ' * depth}{steps[depth]}:")
        if len(steps) == 1:
            lines.append("")
        indent = "  " * (len(steps) - 1)
        if setting.meaning:
            lines.append(f"{indent}# {setting.meaning}")
        lines.extend(_yaml(steps[-1], setting.default, indent))
        said = steps[:-1]
    return "\n".join(lines) + "\n"


def _yaml(key: str, value: Any, indent: str) -> Iterator[str]:
    import yaml

    text = yaml.safe_dump({key: value}, sort_keys=False, default_flow_style=False).rstrip("\n")
    return (f"{indent}{line}" for line in text.split("\n"))


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *steps, last = path.split(".")
    for step in steps:
        tree = tree.setdefault(step, {})
    tree[last] = value
