"""The Helm chart and the kustomize base, as files: made from the same parts that `kruise install` applies. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from kruise.feature import Feature
from kruise.manager import gates
from kruise.manager.installation import hooks, monitoring
from kruise.manager.installation.manifests import Part, Style, definitions, manifests, parts
from kruise.manager.installation.templating import IsSet, as_template
from kruise.manager.installation.values import POD_FAILURE_POLICY, SETTINGS, values_file

NAME = "kruise"
ONE_MANAGER: Mapping[str, Any] = {
    "manager.replicas": 1,
    "manager.image.repository": "manager",
    "manager.image.tag": "latest",
    "manager.podDisruptionBudget.enabled": False,
    "featureGates": "",
}
"""Values of the kustomize base."""
_MADE = "Made by `kruise install`, from the same description that it applies."


def chart_files(features: Sequence[Feature], version: str) -> dict[str, str]:
    """Path below the chart's directory -> text."""
    templates: dict[str, list[str]] = {}
    for part in parts(features, style=Style.CHART):
        templates.setdefault(_file_of(part), []).append(_document(part))
    templates["hooks"] = [_hook(manifest) for manifest in hooks.manifests(version, definitions(features))]
    return {
        "Chart.yaml": _plain(_metadata(version)),
        "values.yaml": values_file(),
        "values.schema.json": json.dumps(_schema(), indent=2) + "\n",
        "templates/_gates.tpl": _gates_helper(),
        "templates/NOTES.txt": _NOTES,
        **{
            f"templates/{name}.yaml": f"{{{{- /* {_MADE} */ -}}}}\n" + "".join(documents)
            for name, documents in templates.items()
        },
    }


def kustomize_files(features: Sequence[Feature]) -> dict[str, str]:
    """A base with one manager, as `kustomize edit set image manager=...` expects it. What the Prometheus operator and
    Grafana are told is a component of its own, and so is that new pods are let in while no manager answers."""
    runs = ("manager", "daemon")
    objects = manifests(features, values=ONE_MANAGER, runs=runs)
    watched = manifests(features, values={**ONE_MANAGER, **monitoring.EVERYTHING}, runs=runs)
    admitting = manifests(features, values={**ONE_MANAGER, POD_FAILURE_POLICY: "Ignore"}, runs=runs)
    files: dict[str, list[dict[str, Any]]] = {}
    for manifest in objects:
        files.setdefault(_FILES.get(manifest["kind"], "webhook"), []).append(manifest)
    return {
        "kustomization.yaml": _plain(
            {
                "apiVersion": "kustomize.config.k8s.io/v1beta1",
                "kind": "Kustomization",
                "resources": [f"{name}.yaml" for name in files],
            }
        ),
        **{f"{name}.yaml": _several(found) for name, found in files.items()},
        "monitoring/kustomization.yaml": _component(resources=["monitoring.yaml"]),
        "monitoring/monitoring.yaml": _several([manifest for manifest in watched if manifest not in objects]),
        "pods-admitted/kustomization.yaml": _component(patches=[{"path": "pods.yaml"}]),
        "pods-admitted/pods.yaml": _several(
            [_patch(new) for old, new in zip(objects, admitting, strict=True) if new != old]
        ),
    }


def _component(**content: Any) -> str:
    return _plain({"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", **content})


def _patch(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What differs where pods are admitted while no manager answers: entries of a configuration, arguments."""
    metadata = manifest["metadata"]
    patch = {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {name: metadata[name] for name in ("name", "namespace") if name in metadata},
    }
    if "annotations" in metadata:
        patch["metadata"]["annotations"] = metadata["annotations"]
    if manifest["kind"] == "Deployment":
        [container] = manifest["spec"]["template"]["spec"]["containers"]
        changed = {"name": container["name"], "args": container["args"]}
        patch["spec"] = {"template": {"spec": {"containers": [changed]}}}
    return patch


def _several(manifests: Sequence[Mapping[str, Any]]) -> str:
    return f"# {_MADE}\n" + yaml.safe_dump_all(manifests, sort_keys=False)


_FILES: Mapping[str, str] = {
    "Namespace": "namespaces",
    "CustomResourceDefinition": "definitions",
    "ServiceAccount": "rights",
    "ClusterRole": "rights",
    "ClusterRoleBinding": "rights",
    "Role": "rights",
    "RoleBinding": "rights",
    "Deployment": "manager",
    "PodDisruptionBudget": "manager",
    "NetworkPolicy": "manager",
    "DaemonSet": "daemon",
}


def _file_of(part: Part) -> str:
    return part.file or _FILES.get(part.manifest["kind"], "webhook")


def _document(part: Part) -> str:
    text = "---\n" + as_template(part.manifest)
    if part.condition is None:
        return text
    return f"{{{{- if {part.condition.expression()} }}}}\n{text}{{{{- end }}}}\n"


def _hook(manifest: dict[str, Any]) -> str:
    """Where Helm leaves the definitions alone, it deletes none."""
    document = _document(Part(manifest, IsSet("crds.managed")))
    return document.replace(hooks.RELEASE, "{{ .Release.Name }}")


def _metadata(version: str) -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": NAME,
        "description": "Advanced Kubernetes workloads and in-place update, in Python",
        "type": "application",
        "kubeVersion": ">=1.28.0-0",
        "version": _semantic(version),
        "appVersion": version,
    }


def _semantic(version: str) -> str:
    """Python's `0.1.0.dev0` as Helm wants it: `0.1.0-dev0`; `0.1.0rc1.dev0`: `0.1.0-rc1.dev0`."""
    return re.sub(r"^(\d+(?:\.\d+)*)\.?([a-z].*)$", r"\1-\2", version)


def _gates_helper() -> str:
    """The value of every gate, as the manager itself works it out (`manager.gates.resolve`)."""
    lines = [
        f"{{{{- /* {_MADE} */ -}}}}",
        '{{- define "kruise.gates" -}}',
        "{{- $chosen := dict -}}",
        '{{- range splitList "," .Values.featureGates -}}',
        '{{- $pair := splitList "=" (trim .) -}}',
        "{{- if eq (len $pair) 2 -}}",
        '{{- $value := has (trim (index $pair 1)) (list "1" "t" "T" "TRUE" "true" "True") -}}',
        "{{- $_ := set $chosen (trim (index $pair 0)) $value -}}",
        "{{- end -}}",
        "{{- end -}}",
        "{{- $gates := dict -}}",
    ]
    for stage in gates.Stage:
        for default in (True, False):
            names = [name for name, gate in gates.GATES.items() if (gate.stage, gate.default) == (stage, default)]
            if not names:
                continue
            listed = " ".join(json.dumps(name) for name in names)
            fallback = f'(ternary (get $chosen "{stage.value}") {json.dumps(default)} (hasKey $chosen "{stage.value}"))'
            lines += [
                f"{{{{- range list {listed} -}}}}",
                f"{{{{- $_ := set $gates . (ternary (get $chosen .) {fallback} (hasKey $chosen .)) -}}}}",
                "{{- end -}}",
            ]
    for alias, name in gates.ALIASES.items():
        lines += [
            f'{{{{- if hasKey $chosen "{alias}" -}}}}',
            f'{{{{- $_ := set $gates "{name}" (get $chosen "{alias}") -}}}}',
            "{{- end -}}",
        ]
    for relation in gates.RELATIONS:
        condition = " ".join(f'(get $gates "{name}")' for name in relation.any_of)
        condition = f"or {condition}" if len(relation.any_of) > 1 else condition
        lines.append(f"{{{{- if {condition if relation.are_on else f'not ({condition})'} -}}}}")
        lines += [f'{{{{- $_ := set $gates "{name}" {json.dumps(relation.then_on)} -}}}}' for name in relation.gates]
        lines.append("{{- end -}}")
    return "\n".join([*lines, "{{- $gates | toJson -}}", "{{- end -}}"]) + "\n"


def _schema() -> dict[str, Any]:
    """What Helm checks values against: a misspelt one is refused."""
    root: dict[str, Any] = {"$schema": "https://json-schema.org/draft-07/schema#", **_object()}
    # Every chart may be given these by a chart that contains it.
    root["properties"]["global"] = {"type": "object"}
    for setting in SETTINGS:
        *steps, last = setting.path.split(".")
        place = root
        for step in steps:
            place = place["properties"].setdefault(step, _object())
        wanted = {"enum": list(setting.choices)} if setting.choices else _type_of(setting.default)
        place["properties"][last] = {**wanted, "description": setting.meaning}
    return root


def _object() -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": {}}


def _type_of(default: Any) -> dict[str, Any]:
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        # `minAvailable` may be a percentage.
        return {"type": ["integer", "string"]}
    if isinstance(default, str):
        return {"type": ["string", "number"]}
    return {"type": "array" if isinstance(default, list) else "object"}


def _plain(document: Any) -> str:
    return f"# {_MADE}\n" + yaml.safe_dump(document, sort_keys=False)


_NOTES = """\
PyKruise is installed in namespace {{ .Values.installation.namespace }}.

  kubectl -n {{ .Values.installation.namespace }} rollout status deployment/kruise-controller-manager
  kubectl api-resources --api-group=apps.kruise.io

`kruise doctor` says whether all of it works, and what to do where it does not.
"""
