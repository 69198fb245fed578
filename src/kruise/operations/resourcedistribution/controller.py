"""How ResourceDistributions are watched, and what they bring to the manager."""

from __future__ import annotations

from collections.abc import Iterable

from kruise.admission.registry import Handler, ValidatingHandler
from kruise.api.apps.conversion.resourcedistribution import convert
from kruise.api.apps.definitions.resourcedistribution import DEFINITION
from kruise.api.apps.resourcedistribution import RESOURCE_DISTRIBUTIONS, ResourceDistribution
from kruise.api.meta import Key, controller_of, key_of
from kruise.api.native.config import CONFIG_MAPS, SECRETS, ConfigMap, Secret
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.api.resource import refers_to
from kruise.feature import Conversion, Feature, Settings
from kruise.machinery.selector_index import ALL_NAMESPACES, Selects
from kruise.machinery.spec import ControllerSpec, Source, Stores, own_key
from kruise.machinery.watched import Watched
from kruise.operations.resourcedistribution import content
from kruise.operations.resourcedistribution.admission import GATE, Admission
from kruise.operations.resourcedistribution.conclude import conclude
from kruise.operations.resourcedistribution.decide import decide
from kruise.operations.resourcedistribution.snapshot import Reader, Snapshot, conceal
from kruise.operations.resourcedistribution.targets import selector_of

NAME = "resourcedistribution-controller"
_EVERY = "*"
_BY_COPY, _BY_NAMESPACE, _SELECTED = "copy", "namespace", "selected-namespaces"


def _copies(distribution: ResourceDistribution) -> tuple[str, ...]:
    template = content.read(distribution.spec.resource)
    return (f"{template.get('kind')}/{content.name_of(template)}",)


def _namespaces(distribution: ResourceDistribution) -> tuple[str, ...]:
    targets = distribution.spec.targets
    return (_EVERY,) if targets.all_namespaces else targets.included_namespaces.names


def _selectors(distribution: ResourceDistribution) -> tuple[Selects, ...]:
    selector = selector_of(distribution.spec.targets)
    return (Selects(selector, ALL_NAMESPACES),) if selector is not None else ()


DISTRIBUTIONS = Watched(
    RESOURCE_DISTRIBUTIONS,
    indexes={_BY_COPY: _copies, _BY_NAMESPACE: _namespaces},
    selectors={_SELECTED: _selectors},
)


def _namespace_keys(old: Namespace | None, new: Namespace | None, stores: Stores) -> Iterable[Key]:
    """Those that the namespace is, or was, a target of (RD-39)."""
    if old is not None and new is not None and _meaning(old) == _meaning(new):
        return ()
    store = stores.store(RESOURCE_DISTRIBUTIONS)
    found: dict[Key, None] = {}
    for namespace in (old, new):
        if namespace is not None:
            name, labels = namespace.metadata.name, namespace.metadata.labels
            those = (
                *store.by_index(_BY_NAMESPACE, name),
                *store.by_index(_BY_NAMESPACE, _EVERY),
                *store.selecting(_SELECTED, labels, ""),
            )
            found.update(dict.fromkeys(key_of(one) for one in those))
    return found


def _meaning(namespace: Namespace) -> tuple[object, ...]:
    return namespace.metadata.labels, namespace.metadata.deletion_timestamp is not None, namespace.metadata.uid


def _copy_keys(old: ConfigMap | Secret | None, new: ConfigMap | Secret | None, stores: Stores) -> Iterable[Key]:
    """The owner of a copy that was changed or deleted; and where an object goes or comes that is nobody's copy, all who
    want one of its name. A copy that its owner has just made is no news."""
    found: dict[Key, None] = {}
    for obj in (old, new):
        owner = controller_of(obj) if obj is not None else None
        if owner is not None and refers_to(owner, RESOURCE_DISTRIBUTIONS):
            if old is not None:
                found[Key("", owner.name)] = None
            elif obj is new:
                return ()
    changed = new if new is not None else old
    if changed is not None and (old is None or new is None):
        kind = "Secret" if isinstance(changed, Secret) else "ConfigMap"
        those = stores.store(RESOURCE_DISTRIBUTIONS).by_index(_BY_COPY, f"{kind}/{changed.metadata.name}")
        found.update(dict.fromkeys(key_of(one) for one in those))
    return found


def controllers(settings: Settings) -> tuple[ControllerSpec[Snapshot], ...]:
    """None while the gate is off: nobody watches every Secret of a cluster for nothing."""
    if not settings.gates.get(GATE, False):
        return ()
    return (
        ControllerSpec(
            name=NAME,
            subject=RESOURCE_DISTRIBUTIONS,
            sources=(
                Source(DISTRIBUTIONS, own_key),
                Source(NAMESPACES, _namespace_keys),
                Source(CONFIG_MAPS, _copy_keys),
                Source(SECRETS, _copy_keys),
            ),
            snapshot=Reader().snapshot,
            decide=decide,
            conclude=conclude,
            snapshot_type=Snapshot,
            conceal=conceal,
            workers=settings.workers_of("resourcedistribution"),
            pace=lambda snapshot: 0.1 if len(snapshot.places) > 100 else 0.0,
        ),
    )


def webhooks(settings: Settings) -> tuple[Handler, ...]:
    admission = Admission(settings.own_namespace)
    return (ValidatingHandler("/validate-apps-kruise-io-resourcedistribution", admission.judge),)


FEATURE = Feature(
    name="resourcedistribution",
    definitions=(DEFINITION,),
    controllers=controllers,
    webhooks=webhooks,
    conversions=(Conversion(convert.group, convert.kind, convert),),
)
