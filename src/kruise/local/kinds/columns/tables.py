"""The columns of every native kind, by its plural name, without the name itself.

A row here is a column as `kubectl get` heads it; `wide` ones show with `-o wide` only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from kruise.api.core import quantities
from kruise.local.apicore.errors import Json
from kruise.local.apicore.kinds import CREATED_COLUMN, CREATED_DESCRIPTION, NAME_COLUMN, Column
from kruise.local.kinds.columns import pods
from kruise.local.kinds.columns.durations import age, since
from kruise.machinery.ages import UNKNOWN, human_duration
from kruise.machinery.selectors import SelectorError, from_label_selector
from kruise.machinery.times import parse_time

Cell = Callable[[Json, datetime], Any]

NONE: Final = "<none>"
UNSET: Final = "<unset>"


def _column(name: str, cell: Cell, kind: str = "string", *, format: str = "", description: str = "") -> Column:
    return Column(name=name, type=kind, format=format, description=description, cell=cell)


def _wide(name: str, cell: Cell) -> Column:
    return Column(name=name, priority=1, cell=cell)


AGE: Final = _column("Age", age, description=CREATED_DESCRIPTION)


def _at(path: str, default: Any = "") -> Cell:
    """The value at a path of the object."""
    names = path.split(".")

    def cell(obj: Json, now: datetime) -> Any:
        value: Any = obj
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


def _length(path: str) -> Cell:
    read = _at(path, ())
    return lambda obj, now: len(read(obj, now))


def _number(name: str, path: str) -> Column:
    return _column(name, _at(path, 0), "integer")


def _labels(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def _label_selector(path: str, *, empty: str = NONE, broken: str = "<error>") -> Cell:
    read = _at(path, None)

    def cell(obj: Json, now: datetime) -> str:
        selector = read(obj, now)
        if selector is None:
            return empty
        try:
            return str(from_label_selector(selector)) or empty
        except SelectorError:
            return broken

    return cell


def _pods_of(path: str) -> tuple[Column, Column]:
    """Names and images of a template's containers."""
    read = _at(f"{path}.spec.containers", ())

    def joined(field: str) -> Cell:
        return lambda obj, now: ",".join(container.get(field, "") for container in read(obj, now))

    return _wide("Containers", joined("name")), _wide("Images", joined("image"))


def _is_true(obj: Json, kind: str) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((item.get("status") == "True" for item in conditions if item.get("type") == kind), False)


# Workloads


def _ready_of_wanted(obj: Json, now: datetime) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


_JOB_WORDS: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job_status(obj: Json, now: datetime) -> str:
    for condition, word in _JOB_WORDS:
        if _is_true(obj, condition) if condition else "deletionTimestamp" in obj["metadata"]:
            return word
    return "Running"


def _job_completions(obj: Json, now: datetime) -> str:
    spec, done = obj["spec"], (obj.get("status") or {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(obj: Json, now: datetime) -> str:
    status = obj.get("status") or {}
    if not status.get("startTime"):
        return ""
    end = parse_time(status["completionTime"]) if status.get("completionTime") else now
    return human_duration((end - parse_time(status["startTime"])).total_seconds())


def _last_schedule(obj: Json, now: datetime) -> str:
    time = (obj.get("status") or {}).get("lastScheduleTime")
    return since(time, now) if time else NONE


def _suspend(obj: Json, now: datetime) -> str:
    suspend = obj["spec"].get("suspend")
    return UNSET if suspend is None else ("True" if suspend else "False")


def _controller(obj: Json, now: datetime) -> str:
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner["apiVersion"].rpartition("/")[0]
            kind = owner["kind"].lower() + (f".{group}" if group else "")
            return f"{kind}/{owner['name']}"
    return NONE


# Services and nodes


def _cluster_ip(obj: Json, now: datetime) -> str:
    addresses = obj["spec"].get("clusterIPs") or ()
    return str(addresses[0]) if addresses else NONE


def _external_ip(obj: Json, now: datetime) -> str:
    spec = obj["spec"]
    kind, external = spec.get("type"), list(spec.get("externalIPs") or ())
    if kind == "ExternalName":
        return str(spec.get("externalName", ""))
    if kind in ("ClusterIP", "NodePort"):
        return ",".join(external) or NONE
    if kind != "LoadBalancer":
        return UNKNOWN
    balancer = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    addresses = sorted({item.get("ip") or item.get("hostname") or "" for item in balancer} - {""})
    return ",".join([*addresses, *external]) or "<pending>"


def _service_ports(obj: Json, now: datetime) -> str:
    def port(item: Json) -> str:
        on_node = f":{item['nodePort']}" if item.get("nodePort") else ""
        return f"{item['port']}{on_node}/{item['protocol']}"

    return ",".join(port(item) for item in obj["spec"].get("ports") or ()) or NONE


def _node_status(obj: Json, now: datetime) -> str:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    ready = [item for item in conditions if item.get("type") == "Ready"]
    word = "Unknown"
    if ready:
        word = "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if obj["spec"].get("unschedulable") else word


_ROLE_PREFIX: Final = "node-role.kubernetes.io/"


def _node_roles(obj: Json, now: datetime) -> str:
    labels = obj["metadata"].get("labels") or {}
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        addresses = (obj.get("status") or {}).get("addresses") or ()
        return next((item["address"] for item in addresses if item.get("type") == kind), NONE)

    return cell


def _node_info(field: str) -> Cell:
    read = _at(f"status.nodeInfo.{field}")
    return lambda obj, now: read(obj, now) or UNKNOWN


def _several(items: list[str]) -> str:
    """The first three of a list, and how many more there are."""
    shown = ",".join(items[:3])
    return f"{shown} + {len(items) - 3} more..." if len(items) > 3 else shown or UNSET


def _slice_ports(obj: Json, now: datetime) -> str:
    return _several([str(port.get("port", port.get("name", "*"))) for port in obj.get("ports") or ()])


def _slice_endpoints(obj: Json, now: datetime) -> str:
    return _several([address for item in obj.get("endpoints") or () for address in item.get("addresses") or ()])


# Volumes


_MODES: Final = (
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
)
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


def _modes(modes: Any) -> str:
    return ",".join(short for mode, short in _MODES if mode in (modes or ()))


def _phase(obj: Json, now: datetime) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    return str((obj.get("status") or {}).get("phase", ""))


def _class(obj: Json, now: datetime) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(_BETA_CLASS) or obj["spec"].get("storageClassName") or ""


def _claim_capacity(obj: Json, now: datetime) -> str:
    if not obj["spec"].get("volumeName"):
        return ""
    return quantities.canonical(((obj.get("status") or {}).get("capacity") or {}).get("storage", "0"))


def _claim_modes(obj: Json, now: datetime) -> str:
    return _modes((obj.get("status") or {}).get("accessModes")) if obj["spec"].get("volumeName") else ""


def _volume_claim(obj: Json, now: datetime) -> str:
    claim = obj["spec"].get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _class_name(obj: Json, now: datetime) -> str:
    annotations = obj["metadata"].get("annotations") or {}
    is_default = "true" in (
        annotations.get("storageclass.kubernetes.io/is-default-class"),
        annotations.get("storageclass.beta.kubernetes.io/is-default-class"),
    )
    return f"{obj['metadata']['name']} (default)" if is_default else str(obj["metadata"]["name"])


# Events, budgets, access


def _first_seen(obj: Json, now: datetime) -> str:
    return since(obj.get("firstTimestamp") or obj.get("eventTime"), now)


def _last_seen(obj: Json, now: datetime) -> str:
    if obj.get("series") is not None:
        return since(obj["series"].get("lastObservedTime"), now)
    return since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else _first_seen(obj, now)


def _count(obj: Json, now: datetime) -> int:
    return int(obj["series"]["count"] if obj.get("series") is not None else obj.get("count") or 1)


def _involved(obj: Json, now: datetime) -> str:
    involved = obj["involvedObject"]
    kind = involved.get("kind", "").lower()
    return f"{kind}/{involved['name']}" if involved.get("name") else kind


def _source(obj: Json, now: datetime) -> str:
    source = obj.get("source") or {}
    component = source.get("component") or obj.get("reportingComponent") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    return f"{component}, {host}" if host else component


def _limit(path: str) -> Cell:
    read = _at(path, "N/A")
    return lambda obj, now: str(read(obj, now))


def _role(obj: Json, now: datetime) -> str:
    return f"{obj['roleRef']['kind']}/{obj['roleRef']['name']}"


def _subjects(kind: str) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        found = [subject for subject in obj.get("subjects") or () if subject["kind"] == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{one.get('namespace', '')}/{one['name']}" for one in found)
        return ", ".join(one["name"] for one in found)

    return cell


def _quota(wanted: bool) -> Cell:
    def cell(obj: Json, now: datetime) -> str:
        status = obj.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        names = [name for name in sorted(hard) if name.startswith("limits.") == wanted]
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return cell


_WORKLOAD_SELECTOR: Final = _wide("Selector", _label_selector("spec.selector"))
_WEBHOOKS: Final = (_column("Webhooks", _length("webhooks"), "integer"), AGE)
_BINDINGS: Final = (
    _column("Role", _role),
    AGE,
    _wide("Users", _subjects("User")),
    _wide("Groups", _subjects("Group")),
    _wide("ServiceAccounts", _subjects("ServiceAccount")),
)

TABLES: Final[Mapping[str, tuple[Column, ...]]] = {
    "pods": (
        _column("Ready", pods.ready),
        _column("Status", pods.status),
        _column("Restarts", pods.restarts),
        AGE,
        _wide("IP", pods.address),
        _wide("Node", pods.node),
        _wide("Nominated Node", pods.nominated_node),
        _wide("Readiness Gates", pods.readiness_gates),
    ),
    "podtemplates": (
        *(_column(column.name, column.cell) for column in _pods_of("template")),
        _column("Pod Labels", lambda obj, now: _labels(_at("template.metadata.labels", {})(obj, now))),
    ),
    "poddisruptionbudgets": (
        _column("Min Available", _limit("spec.minAvailable")),
        _column("Max Unavailable", _limit("spec.maxUnavailable")),
        _number("Allowed Disruptions", "status.disruptionsAllowed"),
        AGE,
    ),
    "deployments": (
        _column("Ready", _ready_of_wanted),
        _column("Up-to-date", _at("status.updatedReplicas", 0)),
        _column("Available", _at("status.availableReplicas", 0)),
        AGE,
        *_pods_of("spec.template"),
        _wide("Selector", _label_selector("spec.selector", empty="", broken="<invalid>")),
    ),
    "replicasets": (
        _number("Desired", "spec.replicas"),
        _number("Current", "status.replicas"),
        _number("Ready", "status.readyReplicas"),
        AGE,
        *_pods_of("spec.template"),
        _WORKLOAD_SELECTOR,
    ),
    "statefulsets": (_column("Ready", _ready_of_wanted), AGE, *_pods_of("spec.template")),
    "daemonsets": (
        _number("Desired", "status.desiredNumberScheduled"),
        _number("Current", "status.currentNumberScheduled"),
        _number("Ready", "status.numberReady"),
        _number("Up-to-date", "status.updatedNumberScheduled"),
        _number("Available", "status.numberAvailable"),
        _column("Node Selector", lambda obj, now: _labels(_at("spec.template.spec.nodeSelector", {})(obj, now))),
        AGE,
        *_pods_of("spec.template"),
        _WORKLOAD_SELECTOR,
    ),
    "controllerrevisions": (_column("Controller", _controller), _column("Revision", _at("revision", 0)), AGE),
    "jobs": (
        _column("Status", _job_status),
        _column("Completions", _job_completions),
        _column("Duration", _job_duration),
        AGE,
        *_pods_of("spec.template"),
        _WORKLOAD_SELECTOR,
    ),
    "cronjobs": (
        _column("Schedule", _at("spec.schedule")),
        _column("Timezone", _at("spec.timeZone", NONE)),
        _column("Suspend", _suspend, "boolean"),
        _column("Active", _length("status.active"), "integer"),
        _column("Last Schedule", _last_schedule),
        AGE,
        *_pods_of("spec.jobTemplate.spec.template"),
        _wide("Selector", _label_selector("spec.jobTemplate.spec.selector")),
    ),
    "services": (
        _column("Type", _at("spec.type")),
        _column("Cluster-IP", _cluster_ip),
        _column("External-IP", _external_ip),
        _column("Port(s)", _service_ports),
        AGE,
        _wide("Selector", lambda obj, now: _labels(obj["spec"].get("selector"))),
    ),
    "endpointslices": (
        _column("AddressType", _at("addressType")),
        _column("Ports", _slice_ports),
        _column("Endpoints", _slice_endpoints),
        AGE,
    ),
    "nodes": (
        _column("Status", _node_status),
        _column("Roles", _node_roles),
        AGE,
        _column("Version", _at("status.nodeInfo.kubeletVersion")),
        _wide("Internal-IP", _node_address("InternalIP")),
        _wide("External-IP", _node_address("ExternalIP")),
        _wide("OS-Image", _node_info("osImage")),
        _wide("Kernel-Version", _node_info("kernelVersion")),
        _wide("Container-Runtime", _node_info("containerRuntimeVersion")),
    ),
    "events": (
        _column("Last Seen", _last_seen),
        _column("Type", _at("type")),
        _column("Reason", _at("reason")),
        _column("Object", _involved),
        _wide("Subobject", _at("involvedObject.fieldPath")),
        _wide("Source", _source),
        _column("Message", lambda obj, now: obj.get("message", "").strip()),
        _wide("First Seen", _first_seen),
        _wide("Count", _count),
        Column(name="Name", format="name", priority=1, description=NAME_COLUMN.description, cell=NAME_COLUMN.cell),
    ),
    "namespaces": (_column("Status", _at("status.phase")), AGE),
    "secrets": (_column("Type", _at("type")), _column("Data", _length("data")), AGE),
    "serviceaccounts": (_column("Secrets", _length("secrets")), AGE),
    "configmaps": (
        _column("Data", lambda obj, now: len(obj.get("data") or ()) + len(obj.get("binaryData") or ())),
        AGE,
    ),
    "persistentvolumes": (
        _column("Capacity", lambda obj, now: (obj["spec"].get("capacity") or {}).get("storage", "0")),
        _column("Access Modes", lambda obj, now: _modes(obj["spec"].get("accessModes"))),
        _column("Reclaim Policy", _at("spec.persistentVolumeReclaimPolicy")),
        _column("Status", _phase),
        _column("Claim", _volume_claim),
        _column("StorageClass", _class),
        _column("VolumeAttributesClass", _at("spec.volumeAttributesClassName", UNSET)),
        _column("Reason", _at("status.reason")),
        AGE,
        _wide("VolumeMode", _at("spec.volumeMode", UNSET)),
    ),
    "persistentvolumeclaims": (
        _column("Status", _phase),
        _column("Volume", _at("spec.volumeName")),
        _column("Capacity", _claim_capacity),
        _column("Access Modes", _claim_modes),
        _column("StorageClass", _class),
        _column("VolumeAttributesClass", _at("spec.volumeAttributesClassName", UNSET)),
        AGE,
        _wide("VolumeMode", _at("spec.volumeMode", UNSET)),
    ),
    "leases": (_column("Holder", _at("spec.holderIdentity")), AGE),
    "storageclasses": (
        Column(name="Name", format="name", description=NAME_COLUMN.description, cell=_class_name),
        _column("Provisioner", _at("provisioner")),
        _column("ReclaimPolicy", _at("reclaimPolicy", "Delete")),
        _column("VolumeBindingMode", _at("volumeBindingMode", "Immediate")),
        _column("AllowVolumeExpansion", _at("allowVolumeExpansion", False)),
        AGE,
    ),
    "priorityclasses": (
        _number("Value", "value"),
        _column("Global-Default", _at("globalDefault", False), "boolean"),
        AGE,
        _column("PreemptionPolicy", _at("preemptionPolicy")),
    ),
    "rolebindings": _BINDINGS,
    "clusterrolebindings": _BINDINGS,
    "roles": (CREATED_COLUMN,),
    "clusterroles": (CREATED_COLUMN,),
    "limitranges": (CREATED_COLUMN,),
    "customresourcedefinitions": (CREATED_COLUMN,),
    "resourcequotas": (_column("Request", _quota(False)), _column("Limit", _quota(True)), AGE),
    "mutatingwebhookconfigurations": _WEBHOOKS,
    "validatingwebhookconfigurations": _WEBHOOKS,
}
