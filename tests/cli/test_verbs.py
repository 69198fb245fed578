"""The everyday verbs from outside, against one `kruise up`: what they print, what they change, how they end."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.apps import DAEMON_SETS, DEPLOYMENTS, STATEFUL_SETS
from kruise.api.native.config import CONFIG_MAPS
from kruise.api.resource import Resource
from tests.support.commandline import Kruise, local_cluster, needs_tmux, plain

CONTAINERS = [
    {"name": "main", "image": "nginx:1.25", "ports": [{"containerPort": 80}]},
    {"name": "side", "image": "redis:7"},
]


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def manifest(kind: Resource[Any], name: str, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": name, "labels": labels},
        "spec": {
            **({"replicas": replicas} if kind is not DAEMON_SETS else {}),
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": CONTAINERS}},
            **spec,
        },
    }


def cloneset(name: str, replicas: int = 2, **rolling: Any) -> dict[str, Any]:
    strategy = {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": "100%", **rolling}}
    return manifest(CLONE_SETS, name, replicas, updateStrategy=strategy)


def read(kruise: Kruise, kind: str, name: str) -> Any:
    """The live object, through a verb that changes nothing."""
    return json.loads("\n".join(kruise.ok("set", "image", f"{kind}/{name}", "*=x", "--dry-run=client", "-o", "json")))


def without_names(lines: list[str]) -> list[str]:
    return [re.sub(r"-[a-z0-9]{5}\b", "-ID", re.sub(r"-[a-z0-9]{8,10}\b", "-HASH", line)) for line in lines]


def test_the_life_of_a_cloneset(kruise: Kruise) -> None:
    """Come up, update, look back, describe, undo, pause, resume, scale."""
    kruise.create(CLONE_SETS, cloneset("web"))
    up = kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
    assert up[-1] == "partitioned roll out complete: 2 new pods have been updated..."

    assert kruise.ok("set", "image", "cloneset/web", "main=nginx:1.26") == ["cloneset.apps.kruise.io/web image updated"]
    assert kruise.ok("rollout", "status", "clone", "web", "--timeout=60s")[-1] == up[-1]
    assert kruise.ok("set", "image", "cloneset/web", "main=nginx:1.26") == ["cloneset.apps.kruise.io/web unchanged"]

    assert kruise.ok("rollout", "history", "cloneset/web") == [
        "cloneset.apps.kruise.io/web",
        "REVISION  CHANGE-CAUSE",
        "1         <none>",
        "2         <none>",
    ]
    shown = kruise.ok("rollout", "history", "cloneset/web", "--revision=1")
    assert shown[:2] == ["cloneset.apps.kruise.io/web with revision #1", "Pod Template:"]
    assert "    Image:      nginx:1.25" in shown
    [old] = yaml.safe_load_all("\n".join(kruise.ok("rollout", "history", "clone/web", "--revision=1", "-o", "yaml")))
    assert old["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.25"

    names = kruise.ok("rollout", "history", "clone/web", "-o", "name")
    assert without_names(names) == ["controllerrevision.apps/web-HASH"] * 2
    assert len(set(names)) == 2
    assert kruise.ok("rollout", "history", "clone/web", "-o", "name", "--revision=2") == names[1:]

    described = without_names(kruise.ok("describe", "rollout", "cloneset/web"))
    assert "Strategy:         RollingUpdate, InPlaceIfPossible" in described
    assert "2          web-HASH   update   2      2       main=nginx:1.26, side=redis:7" in [
        re.sub(r" +(?=update)", "   ", line) for line in described
    ]
    data = json.loads("\n".join(kruise.ok("describe", "rollout", "cloneset/web", "-o", "json")))
    assert [(pod["state"], pod["revision"], pod["restarts"]) for pod in data["pods"]] == [("Ready", 2, 1)] * 2

    preview = kruise.ok("rollout", "undo", "cloneset/web", "--dry-run")
    assert preview[0] == "cloneset.apps.kruise.io/web Pod Template:"
    assert kruise.ok("rollout", "undo", "cloneset/web", "--dry-run=server") == [
        "cloneset.apps.kruise.io/web rolled back (server dry run)"
    ]
    undone = kruise.ok("rollout", "undo", "cloneset/web", "--wait", "--timeout=60s")
    assert (undone[0], undone[-1]) == ("cloneset.apps.kruise.io/web rolled back", up[-1])
    assert kruise.ok("rollout", "undo", "cloneset/web", "--to-revision=3") == [
        "cloneset.apps.kruise.io/web skipped rollback (current template already matches revision 3)"
    ]
    assert "there are 2, 3" in kruise.refused("rollout", "undo", "cloneset/web", "--to-revision=9")

    assert kruise.ok("rollout", "pause", "cloneset/web") == ["cloneset.apps.kruise.io/web paused"]
    assert kruise.refused("rollout", "pause", "clone/web") == 'clonesets.apps.kruise.io "web" is already paused'
    kruise.ok("set", "image", "cloneset/web", "main=nginx:1.27")
    assert kruise("rollout", "status", "cloneset/web", "--watch=false").code == 3
    late = kruise("rollout", "status", "cloneset/web", "--timeout=300ms")
    assert late.code == 3
    assert "timed out after 0.3 s" in late.err
    resumed = kruise.ok("rollout", "resume", "cloneset/web", "--wait", "--timeout=60s")
    assert (resumed[0], resumed[-1]) == ("cloneset.apps.kruise.io/web resumed", up[-1])
    assert kruise.refused("rollout", "resume", "clone/web") == 'clonesets.apps.kruise.io "web" is not paused'

    assert kruise.ok("scale", "clone/web", "--replicas=3", "--current-replicas=2", "--wait", "--timeout=60s")[0] == (
        "cloneset.apps.kruise.io/web scaled"
    )
    assert "expected replicas to be 2, was 3" in kruise.refused(
        "scale", "clone/web", "--replicas=1", "--current-replicas=2"
    )


def test_step_by_step_on_to_the_end_and_back(kruise: Kruise) -> None:
    """A partition, a promotion; another partition, and all pods go back."""
    kruise.create(CLONE_SETS, cloneset("steps", 3, partition=2))
    kruise.ok("rollout", "status", "cloneset/steps", "--timeout=60s")
    kruise.ok("set", "image", "cloneset/steps", "main=nginx:1.26", "--wait", "--timeout=60s")
    assert kruise.ok("set", "partition", "cloneset/steps", "34%", "--dry-run=server") == [
        "cloneset.apps.kruise.io/steps partition updated (server dry run)"
    ]
    lines = kruise.ok("set", "partition", "cloneset/steps", "1", "--wait", "--timeout=60s")
    assert lines[0] == "cloneset.apps.kruise.io/steps partition updated"
    assert lines[-1] == "partitioned roll out complete: 2 new pods have been updated..."
    assert kruise.ok("rollout", "promote", "cloneset/steps", "-o", "name") == ["cloneset.apps.kruise.io/steps"]
    done = kruise.ok("rollout", "status", "cloneset/steps", "--timeout=60s")
    assert done[-1] == "partitioned roll out complete: 3 new pods have been updated..."
    assert kruise.ok("rollout", "promote", "cloneset/steps") == ["cloneset.apps.kruise.io/steps unchanged"]
    assert "no rollout is under way that could be aborted" in kruise.refused("rollout", "abort", "cloneset/steps")

    kruise.ok("set", "partition", "cloneset/steps", "2")
    kruise.ok("set", "image", "cloneset/steps", "main=nginx:1.27", "--wait", "--timeout=60s")
    assert kruise.ok("rollout", "abort", "cloneset/steps", "--wait", "--timeout=60s")[0] == (
        "cloneset.apps.kruise.io/steps aborted"
    )
    shown = json.loads("\n".join(kruise.ok("describe", "rollout", "cloneset/steps", "-o", "json")))
    assert shown["images"][0] == "main=nginx:1.26"
    assert len({pod["revision"] for pod in shown["pods"]}) == 1
    assert "no partition" in kruise.refused("set", "partition", "cloneset/steps", "many", code=2)


def test_pods_that_are_replaced_when_somebody_deletes_them(kruise: Kruise) -> None:
    """The first creation can be waited for; after that nothing rolls out, which is said once."""
    kruise.create(CLONE_SETS, manifest(CLONE_SETS, "by-hand", updateStrategy={"type": "OnDelete"}))
    up = kruise.ok("rollout", "status", "cloneset/by-hand", "--timeout=60s")
    assert up[-1] == "all 2 pods are ready and have the newest template"
    kruise.ok("set", "image", "cloneset/by-hand", "main=nginx:1.26")
    done = kruise("rollout", "status", "cloneset/by-hand", "--timeout=60s")
    assert done.code == 1
    assert (done.out + done.err).count("rollout status is only available for RollingUpdate") == 1


def test_restart_recreates_pods_and_says_so(kruise: Kruise) -> None:  # KK-3
    kruise.create(CLONE_SETS, cloneset("again", replicas=1))
    kruise.ok("rollout", "status", "clone/again", "--timeout=60s")
    before = json.loads("\n".join(kruise.ok("describe", "rollout", "clone/again", "-o", "json")))["pods"]
    done = kruise("rollout", "restart", "clone/again", "--wait", "--timeout=60s")
    assert done.code == 0
    assert done.lines[0] == "cloneset.apps.kruise.io/again restarted"
    assert "note: cloneset.apps.kruise.io/again: the pods are recreated: RESTARTED_AT changes" in done.err
    after = json.loads("\n".join(kruise.ok("describe", "rollout", "clone/again", "-o", "json")))["pods"]
    assert {pod["name"] for pod in before} & {pod["name"] for pod in after} == set()


def test_events_for_programs(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("events", replicas=1))
    events = [json.loads(line) for line in kruise.ok("rollout", "status", "clone/events", "-o", "json", "-d")]
    assert events[-1]["phase"] == "Done"
    assert (events[-1]["object"], events[-1]["updated"]) == ("cloneset.apps.kruise.io/events", 1)
    assert [pod["ready"] for pod in events[-1]["pods"]] == [True]
    assert all(one != other for one, other in itertools.pairwise(events))
    lines = kruise.ok("rollout", "status", "clone/events", "-d")
    assert without_names(lines) == [
        "partitioned roll out complete: 1 new pods have been updated...",
        "updated and ready pods: [events-ID]",
        "updated pods that are not ready: []",
    ]


def test_a_deployment(kruise: Kruise) -> None:
    kruise.create(DEPLOYMENTS, manifest(DEPLOYMENTS, "api", replicas=1))
    assert kruise.ok("rollout", "status", "deploy/api", "--timeout=60s")[-1] == (
        'deployment "api" successfully rolled out'
    )
    updated = kruise.ok("set", "image", "deploy/api", "main=nginx:1.26", "--record", "--wait", "--timeout=60s")
    assert updated[0] == "deployment.apps/api image updated"
    assert kruise.ok("rollout", "history", "deploy/api")[:2] == ["deployment.apps/api", "REVISION  CHANGE-CAUSE"]
    assert kruise.ok("rollout", "undo", "deploy/api", "-o", "name") == ["deployment.apps/api"]
    assert read(kruise, "deploy", "api")["spec"]["template"]["spec"]["containers"][0]["name"] == "main"
    assert kruise.ok("rollout", "restart", "deploy/api") == ["deployment.apps/api restarted"]
    data = json.loads("\n".join(kruise.ok("describe", "rollout", "deploy/api", "-o", "json")))
    assert data["settings"]["Max Surge"] == "25% (1 pod)"


def test_a_native_statefulset_and_a_daemonset(kruise: Kruise) -> None:
    kruise.create(STATEFUL_SETS, manifest(STATEFUL_SETS, "db", replicas=1, serviceName="db"))
    kruise.create(DAEMON_SETS, manifest(DAEMON_SETS, "agent"))
    for word in ("sts/db", "ds/agent"):
        kruise.ok("rollout", "status", word, "--timeout=60s")
    assert kruise.ok("set", "image", "sts/db", "ds/agent", "*=nginx:1.26") == [
        "statefulset.apps/db image updated",
        "daemonset.apps/agent image updated",
    ]
    rolled = kruise.ok("rollout", "status", "sts/db", "--timeout=60s")[-1]
    assert rolled.startswith("statefulset rolling update complete 1 pods at revision db-")
    assert kruise.ok("rollout", "status", "ds/agent", "--timeout=60s")[-1] == (
        'daemon set "agent" successfully rolled out'
    )
    for word in ("sts/db", "ds/agent"):
        assert kruise.ok("rollout", "history", word)[1:] == [
            "REVISION  CHANGE-CAUSE",
            "1         <none>",
            "2         <none>",
        ]
    assert kruise.ok("scale", "sts", "db", "--replicas=0") == ["statefulset.apps/db scaled"]
    assert kruise.refused("scale", "ds", "agent", "--replicas=0") == "a DaemonSet cannot be scaled: it has no replicas"
    assert kruise.ok("rollout", "undo", "sts/db", "-o", "name") == ["statefulset.apps/db"]
    assert kruise.ok("rollout", "restart", "ds/agent") == ["daemonset.apps/agent restarted"]
    assert kruise.refused("rollout", "pause", "sts/db") == 'statefulsets.apps "db" pausing is not supported'


def test_environment_resources_and_accounts(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("env", replicas=0))
    kruise.create(CONFIG_MAPS, {"metadata": {"name": "conf"}, "data": {"log.level": "debug"}})
    name = "cloneset.apps.kruise.io/env"
    assert kruise.ok("set", "env", "clone/env", "A=1", "B=2", "-c", "main") == [f"{name} env updated"]
    assert kruise.ok("set", "env", "clone/env", "A-", "--from=cm/conf", "-c", "main") == [f"{name} env updated"]
    assert kruise.ok("set", "env", "clone/env", "-", "-c=side", stdin="C=3\n# no\nD=4\n") == [f"{name} env updated"]
    assert kruise.ok("set", "env", "clone/env", "--list") == [
        "# CloneSet env, container main",
        "B=2",
        "# LOG_LEVEL from configmap conf, key log.level",
        "# CloneSet env, container side",
        "C=3",
        "D=4",
    ]
    assert "LOG_LEVEL=debug" in kruise.ok("set", "env", "clone/env", "--list", "--resolve")
    assert "already has a value (2)" in kruise.refused("set", "env", "clone/env", "B=3", "--overwrite=false")
    assert 'ConfigMap "nope" not found' in kruise.refused("set", "env", "clone/env", "--from=cm/nope")
    assert "at least one environment variable" in kruise.refused("set", "env", "clone/env", code=2)
    assert kruise.ok("set", "resources", "clone/env", "--limits=cpu=1,memory=1Gi", "-c", "side") == [
        f"{name} resource requirements updated"
    ]
    assert kruise.ok("set", "serviceaccount", "clone/env", "robot") == [f"{name} serviceaccount updated"]
    spec = read(kruise, "clone", "env")["spec"]["template"]["spec"]
    assert spec["containers"][1]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert spec["serviceAccountName"] == "robot"


def test_expose_and_selector(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("shop", replicas=0))
    [preview] = yaml.safe_load_all("\n".join(kruise.ok("expose", "clone/shop", "--dry-run=client", "-o", "yaml")))
    assert preview["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert kruise.ok("expose", "clone", "shop", "--port=8080", "--target-port=80") == ["service/shop exposed"]
    assert kruise.refused("expose", "clone/shop") == '(AlreadyExists): services "shop" already exists'
    assert kruise.ok("set", "selector", "svc", "shop", "app=shop,tier=a") == ["service/shop selector updated"]
    assert "no rollout" in kruise.refused("rollout", "status", "svc/shop")


def test_migrate_and_scaledown(kruise: Kruise) -> None:  # KK-4
    kruise.create(DEPLOYMENTS, manifest(DEPLOYMENTS, "old", replicas=2))
    move = ("migrate", "CloneSet", "--from", "Deployment", "--src-name=old", "--dst-name=new")
    assert "name the namespace with -n" in kruise.refused(*move, "--create", code=2)
    assert kruise.ok(*move, "--create", "-n", "default") == ["cloneset.apps.kruise.io/new created"]
    assert "exists already" in kruise.refused(*move, "--create", "-n", "default")
    moved = kruise.ok(*move, "-n", "default", "--max-surge=2", "--timeout-seconds=60")
    assert moved[-1] == "deployment.apps/old 0/0, cloneset.apps.kruise.io/new 2/2: 2 pods moved"
    pods = json.loads("\n".join(kruise.ok("describe", "rollout", "clone/new", "-o", "json")))["pods"]
    first, kept = pods[0]["name"], pods[1]["name"]
    assert "has no pod nope" in kruise.refused("scaledown", "clone/new", "--pods=nope")
    told = f"# new delete pods [{first}] successfully"
    scaledown = ("scaledown", "clone/new", f"--pods={first}")
    assert kruise.ok(*scaledown, "--dry-run=server") == [f"{told} (server dry run)"]
    shown = yaml.safe_load("\n".join(kruise.ok(*scaledown, "--dry-run=client", "-o", "yaml")))
    assert shown["spec"]["scaleStrategy"]["podsToDelete"] == [first]
    assert kruise.ok(*scaledown) == [told]
    kruise.ok("rollout", "status", "clone/new", "--timeout=60s")
    left = json.loads("\n".join(kruise.ok("describe", "rollout", "clone/new", "-o", "json")))["pods"]
    assert [pod["name"] for pod in left if pod["state"] != "Terminating"] == [kept]
    assert "deployment.apps cannot become statefulset.apps. This can be migrated: clonesets" in kruise.refused(
        "migrate", "sts", *move[2:], "-n", "default", code=2
    )


def test_files_selectors_and_all(kruise: Kruise, tmp_path: Path) -> None:
    """A file with several objects, a directory, the standard input, a selector, everything; and no server at all."""
    documents = [cloneset("one", replicas=0), cloneset("two", replicas=0)]
    for document in documents:
        document["metadata"]["labels"] = {"team": "files"}
        kruise.create(CLONE_SETS, document)
    file = tmp_path / "both.yaml"
    file.write_text(yaml.dump_all(documents))
    both = [f"cloneset.apps.kruise.io/{name} image updated" for name in ("one", "two")]
    assert kruise.ok("set", "image", "-f", str(file), "main=x:1") == both
    assert kruise.ok("set", "image", "-f", str(tmp_path), "main=x:2") == both
    assert kruise.ok("set", "image", "-f", "-", "main=x:3", stdin=file.read_text()) == both
    assert kruise.ok("set", "image", "clone", "-l", "team=files", "main=x:4") == both
    assert "takes one object, not 2" in kruise.refused("rollout", "status", "-f", str(file), code=2)
    assert 'no clonesets found in namespace "default"' in kruise.refused("set", "image", "clone", "-l", "a=b", "main=x")
    assert "cannot be read" in kruise.refused("set", "image", "-f", str(tmp_path / "none.yaml"), "main=x", code=2)
    everything = kruise.ok("set", "image", "all", "--all", "*=nginx:1.27", "--dry-run=client")
    assert {f"{line} (dry run)" for line in both} <= set(everything)
    changed = list(
        yaml.safe_load_all("\n".join(kruise.ok("set", "image", "--local", "-f", str(file), "main=y:1", "-o", "yaml")))
    )
    images = [one["spec"]["template"]["spec"]["containers"][0]["image"] for one in changed]
    assert (images, [one["metadata"]["name"] for one in changed]) == (["y:1", "y:1"], ["one", "two"])
    assert "--local works on files" in kruise.refused("set", "image", "--local", "clone/one", "main=x", code=2)


def test_one_failure_does_not_stop_the_others(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("first", replicas=0))
    kruise.create(CLONE_SETS, cloneset("second", replicas=0))
    kruise.ok("rollout", "pause", "clone/first")
    done = kruise("rollout", "pause", "clone/first", "clone/second")
    assert (done.code, done.lines) == (1, ["cloneset.apps.kruise.io/second paused"])
    assert 'error: clonesets.apps.kruise.io "first" is already paused' in done.err
    assert "1 of 2 objects could not be changed" in done.err


def test_mistakes_are_named(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("right-name", replicas=0))
    assert kruise.refused("rollout", "status", "clone/rihgt-name") == (
        'clonesets.apps.kruise.io "rihgt-name" not found in namespace "default"; did you mean right-name?'
    )
    assert kruise.refused("set", "image", "clone/right-name", "mian=x") == (
        'unable to find container named "mian" in cloneset.apps.kruise.io/right-name; its containers are main, side'
    )
    assert re.search(r"known are .*\bcloneset\b", kruise.refused("set", "image", "foo/x", "a=b", code=2))
    assert "--timeout: " in kruise.refused("rollout", "status", "clone/right-name", "--timeout=soon", code=2)
    assert 'there is no context "nope"' in kruise.refused("rollout", "status", "clone/web", "--context=nope")
    refused = kruise.refused("set", "resources", "clone/right-name", "--limits=cpu=1", "--requests=cpu=2")
    assert "must be less than or equal to cpu limit" in refused, "admission's own words"


def test_shell_completion_knows_live_names(kruise: Kruise) -> None:
    kruise.create(CLONE_SETS, cloneset("complete-me", replicas=0))

    def offered(*words: str) -> list[str]:
        variables = {
            "_KRUISE_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["kruise", *words]),
            "COMP_CWORD": str(len(words)),
        }
        return [line.partition(",")[2] for line in kruise(environment=variables).lines if line]

    assert offered("rollout", "status", "clone/comp") == ["clone/complete-me"]
    assert offered("rollout", "status", "clone", "comp") == ["complete-me"]
    assert offered("rollout", "status", "clone") == ["cloneset"]
    assert offered("set", "image", "clone/complete-me", "") == ["main=", "side="]
    assert offered("rollout", "status", "-n", "kube-s") == ["kube-system"]
    assert offered("rollout", "status", "nokind/") == []
    assert offered("rollout", "status", "--kubeconfig", "/nowhere", "clone/") == []
    assert {"rollout", "set"} <= set(offered(""))
    for shell in ("bash", "zsh", "fish", "kubectl"):
        assert "_KRUISE_COMPLETE" in "\n".join(kruise.ok("completion", shell))


def test_the_live_view_in_a_terminal(kruise: Kruise) -> None:
    """A pseudo-terminal gets a view that is redrawn in place, and the last frame stays."""
    kruise.create(CLONE_SETS, cloneset("live"))
    drawn = kruise.drawn("rollout", "status", "clone/live", "--timeout=60s", TERM="xterm")
    assert "\x1b[1A" in drawn, "the cursor goes up to draw again"
    shown = plain(drawn)
    last = shown[shown.rindex("cloneset.apps.kruise.io/live") :]
    assert "Done" in last
    assert "2/2 ready 2/2" in last
    assert len(re.findall(r"● +live-", last)) == 2


@needs_tmux
def test_one_frame_is_left_on_the_screen(kruise: Kruise) -> None:
    """However often it was drawn: each frame takes the place of the one before."""
    kruise.create(CLONE_SETS, cloneset("framed"))
    shown = kruise.screen("rollout", "status", "clone/framed", "--timeout=60s")
    assert sum("cloneset.apps.kruise.io/framed" in line for line in shown) == 1, shown
    assert sum(re.search(r"● +framed-", line) is not None for line in shown) == 2, shown
    assert "2/2 ready 2/2" in "\n".join(shown)


def test_without_our_definitions(tmp_path: Path) -> None:
    with local_cluster(tmp_path, "--bare", "--nodes=0") as kubeconfig:
        kruise = Kruise(kubeconfig)
        remedy = "install PyKruise first: kruise install"
        assert remedy in kruise.refused("rollout", "status", "cloneset/web")
        assert remedy in kruise.refused("set", "image", "clone", "--all", "*=x")
        assert remedy not in kruise.refused("rollout", "status", "deploy/web")


def test_no_cluster_at_all(tmp_path: Path) -> None:
    kruise = Kruise(tmp_path / "none")
    assert "no cluster is configured" in kruise.refused("rollout", "status", "clone/web")
    assert "127.0.0.1:1" in kruise.refused("-s", "http://127.0.0.1:1", "rollout", "status", "clone/web")


@pytest.mark.parametrize("arguments", [("--help",), ("rollout", "--help"), ("set", "image", "--help")])
def test_help_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    """Help must come at once: neither the client nor what draws is loaded for it."""
    code = f"""
import sys
from kruise.cli import main
sys.argv = ["kruise", *{arguments!r}]
try:
    main.main()
finally:
    print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"aiohttp", "msgspec", "rich", "yaml"}}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
