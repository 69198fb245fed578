"""What the manager can be told: its flags and environment, as one value."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from kruise import kinds
from kruise.admission.inventory import FAILURE_POLICIES
from kruise.faces.face import Face
from kruise.flags import (
    FeatureFlag,
    Flag,
    FlagError,
    address,
    boolean,
    duration,
    number,
    one_of,
    parse_flags,
    positive,
    text,
    whole,
)
from kruise.manager import gates as feature_gates

if TYPE_CHECKING:
    from kruise.feature import Feature

T = TypeVar("T")

WORKER_NAMES = (
    "advancedcronjob",
    "broadcastjob",
    "cloneset",
    "crr",
    "daemonset",
    "imagepulljob",
    "nodeimage",
    "nodepodprobe",
    "persistentpodstate",
    "podprobemarker",
    "podunavailablebudget",
    "resourcedistribution",
    "sidecarset",
    "sidecarterminator",
    "statefulset",
    "uniteddeployment",
    "workloadspread",
)
DEFAULT_WORKERS = 3
DEFAULT_SHUTDOWN_DELAY = 15.0
"""Longer than it takes until readiness was asked often enough, and all nodes have heard of the answer."""

FLAGS_FOR_TRYING_OUT: Mapping[str, Any] = {"nodeimage-creation-delay": 0.0}
"""Flags of features that a local cluster has set: there nothing has to settle first."""

_NO_PROFILER = "attach a sampling profiler to the process instead"
_NO_EXPECTATIONS = "controllers see their own writes, there are no expectations to time out"
_WAITS = "the manager waits for as long as it takes, and readiness says for what"
_KLOG = "logs go to standard error"

FLAGS: Mapping[str, Flag] = {
    "role": Flag(one_of("all", "controllers", "webhook"), "all", "what this process does"),
    "kubeconfig": Flag(text, "", "path of a kubeconfig; empty: KUBECONFIG, in-cluster identity, or ~/.kube/config"),
    "context": Flag(text, "", "context of the kubeconfig"),
    "metrics-addr": Flag(address, ":8080", "address of /metrics, 0 switches it off"),
    "metrics-per-workload": Flag(boolean, True, "/metrics names workloads: their pods, rollouts, and what holds those"),
    "journal-addr": Flag(address, ":8443", "address of /journal and /waiting, HTTPS, 0 switches it off"),
    "health-probe-addr": Flag(address, ":8000", "address of /healthz and /readyz, 0 switches it off"),
    "enable-pprof": Flag(boolean, True, "profiling endpoint", _NO_PROFILER),
    "pprof-addr": Flag(text, ":8090", "address of the profiling endpoint", _NO_PROFILER),
    "allow-privileged": Flag(boolean, True, "pod templates with privileged containers pass validation"),
    "enable-leader-election": Flag(boolean, True, "controllers run only while this process holds the lease"),
    "leader-election-namespace": Flag(text, "", "namespace of the lease (default: the manager's own)"),
    "leader-election-id": Flag(text, "kruise-manager", "name of the lease"),
    "leader-election-resource-lock": Flag(one_of("leases"), "leases", "kind of the lock"),
    "leader-election-lease-duration": Flag(duration, 15.0, "how long others wait before they take over"),
    "leader-election-renew-deadline": Flag(duration, 10.0, "how long the leader tries to renew before it gives up"),
    "leader-election-retry-period": Flag(duration, 2.0, "time between tries"),
    "namespace": Flag(text, "", "restrict watches to one namespace"),
    "sync-period": Flag(text, "", "periodic reconcile of every object, as a Go duration; 0 or empty: none"),
    "controller-cache-sync-timeout": Flag(duration, 120.0, "time-out of the first lists", _WAITS),
    "webhook-initialize-timeout": Flag(duration, 60.0, "time-out of the first certificates", _WAITS),
    "rest-config-qps": Flag(number, 0.0, "cap on API writes per second; 0: adaptive, no fixed cap"),
    "rest-config-burst": Flag(whole, 0, "burst above the cap"),
    "feature-gates": Flag(text, "", "comma-separated Name=true|false"),
    "rate-limiter-base-delay": Flag(duration, 0.005, "first delay of a failed key"),
    "rate-limiter-max-delay": Flag(duration, 1000.0, "longest delay of a failed key"),
    "rate-limiter-qps": Flag(number, 0.0, "cap on retries per second over all keys; 0: none"),
    "rate-limiter-bucket-size": Flag(whole, 100, "burst above that cap"),
    "expectation-timeout": Flag(duration, 300.0, "time-out of expectations", _NO_EXPECTATIONS),
    "shutdown-delay": Flag(
        duration,
        DEFAULT_SHUTDOWN_DELAY,
        "how long webhooks are answered while this process ends; with WEBHOOK_HOST 0 unless it is given",
    ),
    "pod-failure-policy": Flag(
        one_of(*FAILURE_POLICIES),
        "Fail",
        "failurePolicy for new pods, where this process has to make the webhook configuration again",
    ),
    "protection-log-path": Flag(text, "/log", "directory of protection.log"),
    "disable-no-deepcopy": Flag(boolean, False, "cache tuning", "cached objects are immutable"),
    "logging-format": Flag(one_of("text", "json", ""), "text", "text or json"),
    "v": Flag(whole, 0, "verbosity: 4 and more logs details"),
    "logtostderr": Flag(boolean, True, "klog flag", _KLOG),
    "alsologtostderr": Flag(boolean, False, "klog flag", _KLOG),
    "stderrthreshold": Flag(text, "", "klog flag", _KLOG),
    "log_dir": Flag(text, "", "klog flag", _KLOG),
    "log_file": Flag(text, "", "klog flag", _KLOG),
    "log_file_max_size": Flag(text, "", "klog flag", _KLOG),
    "log_backtrace_at": Flag(text, "", "klog flag", _KLOG),
    "one_output": Flag(boolean, False, "klog flag", _KLOG),
    "add_dir_header": Flag(boolean, False, "klog flag", _KLOG),
    "skip_headers": Flag(boolean, False, "klog flag", _KLOG),
    "skip_log_headers": Flag(boolean, False, "klog flag", _KLOG),
    "vmodule": Flag(text, "", "klog flag", "verbosity is the same everywhere"),
    **{f"{name}-workers": Flag(positive, DEFAULT_WORKERS, f"{name} reconciles at a time") for name in WORKER_NAMES},
}


class Role(enum.StrEnum):
    ALL = "all"
    CONTROLLERS = "controllers"
    WEBHOOK = "webhook"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    host: str = ""
    """Set where the manager runs outside the cluster: the API server then calls https://host:port/path."""
    port: int = 9876
    secret_name: str = "kruise-webhook-certs"
    service_name: str = "kruise-webhook-service"
    directory: str = "/tmp/kruise-webhook-certs"
    writer: str = ""
    renew_before: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    role: Role = Role.ALL
    kubeconfig: str = ""
    context: str = ""
    own_namespace: str = "kruise-system"
    daemon_namespace: str = "kruise-daemon-config"
    namespace: str = ""
    metrics_address: str = ":8080"
    metrics_per_workload: bool = True
    journal_address: str = ":8443"
    health_address: str = ":8000"
    allow_privileged: bool = True
    elect: bool = True
    lease_namespace: str = "kruise-system"
    lease_name: str = "kruise-manager"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    sync_period: float = 0.0
    qps: float = 0.0
    burst: int = 0
    retry_base_delay: float = 0.005
    retry_max_delay: float = 1000.0
    retry_qps: float = 0.0
    retry_burst: int = 100
    shutdown_delay: float = 0.0
    pod_failure_policy: str = "Fail"
    protection_log_path: str = "/log"
    log_json: bool = False
    verbosity: int = 0
    workers: Mapping[str, int] = dataclasses.field(default_factory=dict)
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Values of flags that features have declared, where they are given."""
    gates: Mapping[str, bool] = dataclasses.field(default_factory=lambda: feature_gates.resolve({}))
    webhook: WebhookOptions = WebhookOptions()
    notices: tuple[str, ...] = ()
    """What the user asked for and does not get, to be logged at the start."""

    def flag(self, declared: FeatureFlag[T]) -> T:
        value: T = self.flags.get(declared.name, declared.default)
        return value

    def workers_of(self, name: str) -> int:
        return self.workers.get(name, DEFAULT_WORKERS)

    def faces(self) -> Sequence[Face]:
        return kinds.faces()


def table_of(features: Iterable[Feature]) -> dict[str, Flag]:
    """Every flag of a manager with these features."""
    return {**{one.name: one.flag for feature in features for one in feature.flags}, **FLAGS}


def parse(
    arguments: Sequence[str], environment: Mapping[str, str], features: Sequence[Feature] | None = None
) -> Options:
    """Options of a command line and environment, with the flags that the features declare (None: of all kinds that are
    known); raises `FlagError` or `FeatureGateError`."""
    table = table_of(kinds.features() if features is None else features)
    parsed = parse_flags(arguments, table)
    value = parsed.values
    notices = [
        f"--{name} has no effect: {table[name].without_effect}"
        for name in sorted(parsed.given)
        if table[name].without_effect and table[name].without_effect != _KLOG
    ]
    chosen = feature_gates.parse(value["feature-gates"])
    notices += [
        f"feature gate {name} has no effect: {why}"
        for name, why in feature_gates.WITHOUT_EFFECT.items()
        if chosen.get(name)
    ]
    if not (
        value["leader-election-lease-duration"]
        > value["leader-election-renew-deadline"]
        > 1.2 * value["leader-election-retry-period"]
        > 0
    ):
        raise FlagError(
            "flags --leader-election-*: lease-duration must be above renew-deadline, "
            "and renew-deadline above 1.2 times retry-period"
        )
    is_given = "shutdown-delay" in parsed.given
    own_namespace = environment.get("POD_NAMESPACE") or "kruise-system"
    sync_period, notice = _sync_period(value["sync-period"])
    return Options(
        role=Role(value["role"]),
        kubeconfig=value["kubeconfig"],
        context=value["context"],
        own_namespace=own_namespace,
        daemon_namespace=environment.get("KRUISE_DAEMON_CONFIG_NS") or "kruise-daemon-config",
        namespace=value["namespace"],
        metrics_address=value["metrics-addr"],
        metrics_per_workload=value["metrics-per-workload"],
        journal_address=value["journal-addr"],
        health_address=value["health-probe-addr"],
        allow_privileged=value["allow-privileged"],
        elect=value["enable-leader-election"],
        lease_namespace=value["leader-election-namespace"] or own_namespace,
        lease_name=value["leader-election-id"],
        lease_duration=value["leader-election-lease-duration"],
        renew_deadline=value["leader-election-renew-deadline"],
        retry_period=value["leader-election-retry-period"],
        sync_period=sync_period,
        qps=value["rest-config-qps"],
        burst=value["rest-config-burst"],
        retry_base_delay=value["rate-limiter-base-delay"],
        retry_max_delay=value["rate-limiter-max-delay"],
        retry_qps=value["rate-limiter-qps"],
        retry_burst=value["rate-limiter-bucket-size"],
        # Whoever calls an address of this process alone finds nobody else.
        shutdown_delay=0.0 if environment.get("WEBHOOK_HOST") and not is_given else value["shutdown-delay"],
        pod_failure_policy=value["pod-failure-policy"],
        protection_log_path=value["protection-log-path"],
        log_json=value["logging-format"] == "json",
        verbosity=value["v"],
        workers=MappingProxyType({name: value[f"{name}-workers"] for name in WORKER_NAMES}),
        flags=MappingProxyType({name: value[name] for name in parsed.given - FLAGS.keys()}),
        gates=MappingProxyType(
            feature_gates.resolve(chosen, custom_resource_enable=environment.get("CUSTOM_RESOURCE_ENABLE", ""))
        ),
        webhook=_webhook_options(environment),
        notices=(*notices, *notice),
    )


def _sync_period(written: str) -> tuple[float, tuple[str, ...]]:
    if written in ("", "0"):
        return 0.0, ()
    try:
        return duration(written), ()
    except ValueError as error:
        return 0.0, (f"--sync-period={written} is ignored: {error}",)


def _webhook_options(environment: Mapping[str, str]) -> WebhookOptions:
    defaults = WebhookOptions()
    port = environment.get("WEBHOOK_PORT") or str(defaults.port)
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise FlagError(f"environment WEBHOOK_PORT={port}: not a port number, use 1 to 65535")
    writer = environment.get("WEBHOOK_CERT_WRITER", "")
    if writer not in ("", "fs", "secret"):
        raise FlagError(f"environment WEBHOOK_CERT_WRITER={writer}: use fs or secret")
    return WebhookOptions(
        host=environment.get("WEBHOOK_HOST", ""),
        port=int(port),
        secret_name=environment.get("SECRET_NAME") or defaults.secret_name,
        service_name=environment.get("SERVICE_NAME") or defaults.service_name,
        directory=environment.get("WEBHOOK_CERT_DIR") or defaults.directory,
        writer=writer,
        renew_before=environment.get("CERTS_RENEW_BEFORE", ""),
    )
