"""What the daemon can be told (DMN section 3). Its gates are the manager's; whoever starts it resolves them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from kruise.flags import Flag, FlagError, address, boolean, number, parse_flags, text, whole

_NO_PROFILER = "attach a sampling profiler to the process instead"
_KLOG = "logs go to standard error"
NO_NODE_NAME = "not found NODE_NAME in environments"

FLAGS: Mapping[str, Flag] = {
    "addr": Flag(address, ":10221", "address of /healthz and /metrics"),
    "enable-pprof": Flag(boolean, True, "profiling endpoint", _NO_PROFILER),
    "pprof-addr": Flag(text, ":10222", "address of the profiling endpoint", _NO_PROFILER),
    "socket-file": Flag(text, "", "name of the runtime's socket below the socket directory; empty: find it"),
    "socket-dir": Flag(text, "/hostvarrun", "where the sockets of the node's runtimes are mounted"),
    "plugin-config-file": Flag(text, "/kruise/CredentialProviderPlugin.yaml", "a kubelet's CredentialProviderConfig"),
    "plugin-bin-dir": Flag(text, "/kruise/plugins", "where the credential provider plugins are"),
    "max-workers-for-pull-image": Flag(whole, -1, "pulls at a time; 0 or less: no limit"),
    "rest-config-qps": Flag(number, 0.0, "cap on API writes per second", "writes are few, and slow down by themselves"),
    "rest-config-burst": Flag(whole, 0, "burst above the cap", "writes are few, and slow down by themselves"),
    "feature-gates": Flag(text, "", "comma-separated Name=true|false, the same as the manager's"),
    "kubeconfig": Flag(text, "", "path of a kubeconfig; empty: KUBECONFIG, or the identity of the pod"),
    "v": Flag(whole, 0, "verbosity: 4 and more logs details"),
    **{
        name: Flag(boolean, False, "klog flag", _KLOG)
        for name in (
            "logtostderr",
            "alsologtostderr",
            "one_output",
            "add_dir_header",
            "skip_headers",
            "skip_log_headers",
        )
    },
    **{
        name: Flag(text, "", "klog flag", _KLOG)
        for name in ("stderrthreshold", "log_dir", "log_file", "log_file_max_size", "log_backtrace_at", "vmodule")
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    node: str
    address: str = ":10221"
    socket_file: str = ""
    socket_directory: str = "/hostvarrun"
    plugin_config_file: str = ""
    plugin_bin_dir: str = ""
    max_pulls: int = 0
    feature_gates: str = ""
    kubeconfig: str = ""
    verbosity: int = 0


def parse(arguments: Sequence[str], environment: Mapping[str, str]) -> Options:
    """Raises FlagError."""
    value = parse_flags(arguments, FLAGS).values
    node = environment.get("NODE_NAME", "")
    if not node:
        raise FlagError(NO_NODE_NAME)
    return Options(
        node=node,
        address=value["addr"],
        socket_file=value["socket-file"],
        socket_directory=value["socket-dir"],
        plugin_config_file=value["plugin-config-file"],
        plugin_bin_dir=value["plugin-bin-dir"],
        max_pulls=max(0, value["max-workers-for-pull-image"]),
        feature_gates=value["feature-gates"],
        kubeconfig=value["kubeconfig"],
        verbosity=value["v"],
    )
