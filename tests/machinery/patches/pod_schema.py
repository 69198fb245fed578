"""The merge rules of a pod and a deployment, spelled out as far as the tests here need them."""

from __future__ import annotations

from kruise.machinery.patches.schema import MERGE, RETAIN_KEYS, FieldRule, Fields


def _merged(key: str, child: Fields | None = None, *more: str) -> FieldRule:
    return FieldRule(strategies=frozenset({MERGE, *more}), merge_key=key, child=child, is_list=True)


def _struct(child: Fields, *strategies: str) -> FieldRule:
    return FieldRule(strategies=frozenset(strategies), child=child)


ATOMIC = FieldRule(is_list=True)

CONTAINER = Fields(
    {
        "env": _merged("name"),
        "ports": _merged("containerPort"),
        "volumeMounts": _merged("mountPath"),
        "args": ATOMIC,
        "resources": _struct(Fields({"limits": FieldRule(), "requests": FieldRule()})),
    }
)
METADATA = Fields(
    {
        "labels": FieldRule(),
        "annotations": FieldRule(),
        "finalizers": _merged(""),
        "ownerReferences": _merged("uid"),
    }
)
POD_SPEC = Fields(
    {
        "containers": _merged("name", CONTAINER),
        "initContainers": _merged("name", CONTAINER),
        "volumes": _merged("name", Fields({"configMap": _struct(Fields({"items": ATOMIC}))}), RETAIN_KEYS),
        "tolerations": ATOMIC,
        "nodeSelector": FieldRule(),
        "imagePullSecrets": _merged("name"),
        "hostAliases": _merged("ip"),
        "topologySpreadConstraints": _merged("topologyKey"),
        "securityContext": _struct(Fields({"supplementalGroups": ATOMIC})),
    }
)
POD = Fields(
    {
        "metadata": _struct(METADATA),
        "spec": _struct(POD_SPEC),
        "status": _struct(Fields({"conditions": _merged("type")})),
    }
)
TEMPLATE = Fields({"metadata": _struct(METADATA), "spec": _struct(POD_SPEC)})
DEPLOYMENT = Fields(
    {
        "metadata": _struct(METADATA),
        "spec": _struct(
            Fields(
                {
                    "template": _struct(TEMPLATE),
                    "selector": _struct(Fields({"matchLabels": FieldRule()})),
                    "strategy": _struct(Fields({"rollingUpdate": FieldRule()}), RETAIN_KEYS),
                }
            )
        ),
    }
)
