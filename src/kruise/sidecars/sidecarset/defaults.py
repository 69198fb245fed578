"""What a SidecarSet gets where its author was silent (SCS-7 to SCS-13), in both versions. Pure.

A part that did not change in meaning stays to the letter as it is stored: whoever applies the same manifest again
changes nothing, however sparingly it is written.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from kruise.api.apps.sidecarset import (
    AFTER_APP,
    ALWAYS,
    BEFORE_APP,
    COLD_UPGRADE,
    DISABLED,
    RETAIN,
    ROLLING_UPDATE,
)
from kruise.api.core import schema, values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import TemplateTypeError, wrong_type
from kruise.api.versions import mapping, with_annotations
from kruise.machinery.patches.values import same
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import EXTRA_FIELDS, Json, hashes_of
from kruise.sidecars.sidecarset.resources import ANY_NAME
from kruise.workloads.shared.defaults import Gates, fill, fill_empty, spec_of
from kruise.workloads.shared.wire import SPEC


def defaulted(
    sidecar_set: Mapping[str, Any], *, version: str, gates: Gates, old: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The SidecarSet with its defaults. `old` is what it replaces; None for a new one. Raises TemplateTypeError."""
    spec, known = dict(mapping(sidecar_set.get("spec"))), spec_of(old)
    fill(spec, {"revisionHistoryLimit": 10, "injectionStrategy": {}})
    spec["updateStrategy"] = strategy = dict(mapping(spec.get("updateStrategy")))
    fill_empty(strategy, {"type": ROLLING_UPDATE})
    fill(strategy, {"maxUnavailable": 1, "partition": 0})
    spec["injectionStrategy"] = _injection(mapping(spec["injectionStrategy"]))
    if spec.get("patchPodMetadata"):
        spec["patchPodMetadata"] = [_patch(item) for item in spec["patchPodMetadata"]]
    for name, policy in (("initContainers", AFTER_APP), ("containers", BEFORE_APP)):
        if spec.get(name):
            present = _items(known.get(name))
            spec[name] = [
                _container(item, policy, SPEC.child(name).at(position), present)
                for position, item in enumerate(_list(spec[name], name))
            ]
    if spec.get("volumes"):
        spec["volumes"] = _volumes(_list(spec["volumes"], "volumes"))
    for name in ("injectionStrategy", "updateStrategy"):
        _spell_as_stored(spec, known, name)
    full, without_image = hashes_of(spec.get("containers") or (), spec.get("initContainers") or ())
    return with_annotations({**sidecar_set, "spec": spec}, {keys.HASH: full, keys.HASH_WITHOUT_IMAGE: without_image})


def _list(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise TemplateTypeError(wrong_type(SPEC.child(name), value, "must be a list"))
    return value


def _items(value: Any) -> dict[str, Json]:
    return {str(item.get("name", "")): item for item in value or () if isinstance(item, dict)}


def _spell_as_stored(spec: dict[str, Any], old: Mapping[str, Any], name: str) -> None:
    """False, 0 and an empty part may be written or left out."""
    if name in old and _said(spec[name]) == _said(old[name]):
        spec[name] = old[name]


def _said(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    found = {name: _said(item) for name, item in value.items()}
    return {name: item for name, item in found.items() if item is not None and item is not False and item != {}}


def _injection(strategy: Json) -> Json:
    revision = strategy.get("revision")
    if not isinstance(revision, dict):
        return strategy
    revision = dict(revision)
    fill_empty(revision, {"policy": ALWAYS})
    return {**strategy, "revision": revision}


def _patch(item: Any) -> Any:
    return {**item, "patchPolicy": item.get("patchPolicy") or RETAIN} if isinstance(item, dict) else item


# Containers


def _container(item: Any, policy: str, path: str, stored: Mapping[str, Json]) -> Json:
    if not isinstance(item, dict):
        raise TemplateTypeError(wrong_type(path, item, "must be an object"))
    result = {**_core(item, path), **_extra(item, policy)}
    known = stored.get(str(item.get("name", "")))
    return known if known is not None and _mean_the_same(result, known, policy) else result


def _core(item: Json, path: str) -> Json:
    """As containers of pods have them, but for what the API server is left to fill in (SCS-9)."""
    plain = {name: value for name, value in item.items() if name not in EXTRA_FIELDS}
    try:
        template = default_template({"spec": {"containers": [_without_late_defaults(plain)]}})
        values.normalise(plain, schema.CONTAINER)
    except TemplateTypeError as error:
        inner = str(error.error.path).removeprefix("spec.containers[0]")
        raise TemplateTypeError(dataclasses.replace(error.error, path=f"{path}{inner}")) from None
    found: Json = template["spec"]["containers"][0]
    unknown = {name: value for name, value in plain.items() if name not in found and value is not None}
    return {**unknown, **found}


def _without_late_defaults(container: Json) -> Json:
    return {name: value for name, value in container.items() if name != "startupProbe"}


def _extra(item: Json, policy: str) -> Json:
    found: Json = {name: item[name] for name in EXTRA_FIELDS if item.get(name) is not None}
    fill_empty(found, {"podInjectPolicy": policy})
    for name, field, value in (
        ("upgradeStrategy", "upgradeType", COLD_UPGRADE),
        ("shareVolumePolicy", "type", DISABLED),
    ):
        part = dict(mapping(found.get(name)))
        fill_empty(part, {field: value})
        found[name] = part
    policy_part = found.get("resourcesPolicy")
    if isinstance(policy_part, dict) and not policy_part.get("targetContainersNameRegex"):
        found["resourcesPolicy"] = {**policy_part, "targetContainersNameRegex": ANY_NAME}
    if isinstance(found.get("transferEnv"), list):
        found["transferEnv"] = [_transfer(one) for one in found["transferEnv"]]
    return found


def _transfer(item: Any) -> Any:
    reference = mapping(mapping(mapping(item).get("sourceContainerNameFrom")).get("fieldRef"))
    if not reference or reference.get("apiVersion"):
        return item
    return {**item, "sourceContainerNameFrom": {"fieldRef": {**reference, "apiVersion": "v1"}}}


def _mean_the_same(new: Json, old: Json, policy: str) -> bool:
    try:
        if not values.equal(new, old, schema.CONTAINER):
            return False
    except TemplateTypeError:
        return False  # stored before anybody looked at it
    return same(_extra(new, policy), _extra(old, policy))


# Volumes


def _volumes(items: list[Any]) -> list[Any]:
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise TemplateTypeError(wrong_type(SPEC.child("volumes").at(position), item, "must be an object"))
    try:
        template = default_template({"spec": {"containers": [], "volumes": items}})
    except TemplateTypeError as error:
        raise TemplateTypeError(dataclasses.replace(error.error, path=f"{error.error.path}")) from None
    found = template["spec"]["volumes"]
    return [
        {**{name: value for name, value in given.items() if name not in volume and value is not None}, **volume}
        for given, volume in zip(items, found, strict=True)
    ]
