"""Makes docs/rights.md: every right of an installation, from the table that the roles are made of.

python hack/rights.py            write docs/rights.md
python hack/rights.py --check    only say whether it is up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from kruise.manager.installation import grants, rbac
from kruise.manager.installation.grants import Grant
from kruise.manager.installation.manager import SECRET

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rights.md"
COMMAND = "python hack/rights.py"

_HEAD = """\
# What manager and daemons may do

The roles of an installation hold what the gates need that are on, and nothing else: `kruise install`, the chart and
the kustomize base make them of one table, and so is this page (by `{command}`; a test compares them). A gate that is
switched on or off brings or takes its rights with the next `kruise install` or `helm upgrade`; an installation
without an image (`kruise install` alone, the manager runs elsewhere) has the rights for all gates. Verbs that give
the same power come together: who may list objects may get and watch them, who may patch them may update them.

`kruise doctor` compares the roles of a cluster with what the gates need, names every right that is missing, and gives
it back with `--fix`. Without a right, what needs it stops and says so in the words of the API server (`cannot create
resource "pods" in API group ""`), in the log, in events or in `kruise why`; readiness details name kinds that cannot
be read. Given back, it goes on by itself. The tests take every single right away and see just that, and the suites on
a real Kubernetes run manager and daemons with these roles and no capability.

Pods of both run as other users than root, without any capability, with the seccomp profile of the runtime and a
read-only root file system: [installing](install.md).
"""
_HELD_HEAD = """\
## Held though nothing uses them

On kinds of its own, and on Jobs, OpenKruise's manager has all verbs, and its daemon may write NodeImages. Policies of
clusters and people compare with that, so these stay, too. A test sees that nothing uses them.
"""
_TAIL = """\
## Less than OpenKruise

Its manager may, and this one may not: list every object of every kind, whatever the gates (only with
`DeletionProtectionForCRDCascadingGate` here); read, write and delete Secrets of all namespaces, whatever the gates;
read and delete ConfigMaps of all namespaces without `ResourceDistributionGate`; delete events; write the status of
Deployments and StatefulSets; resize pods without `InPlaceWorkloadVerticalScaling`; write webhook configurations and
definitions with `EnableExternalCerts`. Rights on kinds whose gates are off are not there at all. Nobody may evict or
bind pods, or read volumes and Services.

## Kinds of others

Budgets and WorkloadSpread read the `scale` of workloads of any kind. The object itself the manager may only read if
somebody says so: for workloads that are listed in `kruise-configuration` ([WorkloadSpread](workloadspread.md),
[PersistentPodState](persistentpodstate.md)) `get`, for budgets over workloads without a `scale` subresource `list`.
Until then `kruise why` says that the manager may not read them, and nobody is taken for gone.

```sh
kubectl create clusterrole kruise-games --verb=get,list --resource=gamesets.games.example.io
kubectl create clusterrolebinding kruise-games --clusterrole=kruise-games \\
    --serviceaccount=kruise-system:kruise-manager
```

## Owners

What a workload makes keeps its owner until it is gone (`blockOwnerDeletion`). Clusters with the admission plugin
`OwnerReferencesPermissionEnforcement`, such as OpenShift, ask for `update` on the `finalizers` of the owner then, and
for `delete` on what is adopted or let go.
"""


def page() -> str:
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield _HEAD.format(command=COMMAND)
    for title, where, listed in _roles():
        yield f"## {title}\n"
        yield f"{where}\n"
        yield from _table(grant for grant in listed if not grant.is_held)
    yield _HELD_HEAD
    yield from _table(grant for _, _, listed in _roles() for grant in listed if grant.is_held)
    yield _TAIL.rstrip("\n")
    yield ""


def _roles() -> Iterator[tuple[str, str, Iterable[Grant]]]:
    yield "The manager", "ClusterRole `kruise-manager-role`, in all namespaces:", grants.MANAGER
    yield "The leader", "Role `kruise-leader-election-role`, in the manager's namespace:", grants.LEADER
    yield "Certificates", "Role `kruise-webhook-role`, in the manager's namespace:", grants.webhook(SECRET)
    yield "The daemon", "ClusterRole `kruise-daemon-role` (gate `KruiseDaemon`), in all namespaces:", grants.DAEMON
    yield (
        "Pull secrets",
        "Role `kruise-daemon-secret-role`, for the daemon, in namespace `kruise-daemon-config`:",
        grants.DAEMON_SECRETS,
    )
    yield (
        "Readers of the journal",
        "Role `kruise-journal-reader`, for people ([who may read it](journal.md#who-may-read-it)):",
        grants.journal_reader(rbac.JOURNAL),
    )


def _table(listed: Iterable[Grant]) -> Iterator[str]:
    yield "| objects | verbs | why | only |"
    yield "|---|---|---|---|"
    for grant in listed:
        yield f"| {_objects(grant)} | {', '.join(sorted(grant.verbs))} | {grant.why} | {_when(grant)} |"
    yield ""


def _objects(grant: Grant) -> str:
    if grant.groups is not None:
        return f"all of the groups of `{grant.groups.path}`"
    named = f" {', '.join(f'`{name}`' for name in grant.names)}" if grant.names else ""
    return ", ".join(f"`{_named(resource, grant.group)}`" for resource in grant.resources) + named


def _named(resource: str, group: str) -> str:
    plural, slash, part = resource.partition("/")
    return f"{plural}{slash}{part}" if group in ("", "*") else f"{plural}.{group}{slash}{part}"


def _when(grant: Grant) -> str:
    parts = []
    if grant.gates:
        parts.append("with " + " or ".join(f"`{name}`" for name in grant.gates))
    if grant.unless:
        parts.append("without " + " or ".join(f"`{name}`" for name in grant.unless))
    return "; ".join(parts)


def main(arguments: list[str]) -> int:
    wanted = page()
    if arguments == ["--check"]:
        if PAGE.read_text() == wanted:
            return 0
        sys.stderr.write(f"docs/rights.md is not up to date: run {COMMAND}\n")
        return 1
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
