"""Sequences that nobody thought of: the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from kruise.api.native.pod import PODS
from tests.local.fields.steps import (
    OPEN,
    RESOURCES,
    TYPED,
    Json,
    Step,
    apply,
    cm,
    container,
    create,
    deployment,
    merge,
    opened,
    pod,
    put,
    service,
    strategic,
    typed,
)


def _some(rng: random.Random, choices: dict[str, Callable[[], Any]], most: int = 4) -> Json:
    """A few members, each with a value of its own."""
    names = rng.sample(sorted(choices), rng.randint(0, min(most, len(choices))))
    return {name: choices[name]() for name in names}


def _random_typed(rng: random.Random) -> Json:
    def word() -> str:
        return rng.choice(("1", "2", "<&>"))

    def named() -> list[Json]:
        names = rng.sample(("x", "y", "z", "w"), rng.randint(0, 3))
        extra: dict[str, Callable[[], Any]] = {"value": word, "tags": lambda: [word()]}
        return [{"name": name, **_some(rng, extra)} for name in names]

    def ports() -> list[Json]:
        pairs = rng.sample([(port, protocol) for port in (1, 2, 10) for protocol in ("", "TCP", "UDP")], 2)
        made = [{"port": port, **({"protocol": protocol} if protocol else {})} for port, protocol in pairs]
        return [{**port, **_some(rng, {"name": word})} for port in made]

    def strange() -> Any:
        return rng.choice((1, "x", [1], {"b": 1}, {"b": {"c": [1]}, "d": "x"}, {}))

    choices: dict[str, Callable[[], Any]] = {
        "size": lambda: rng.randint(1, 3),
        "text": word,
        "flag": lambda: rng.random() < 0.5,
        "either": lambda: rng.choice((1, "1")),
        "items": named,
        "ports": ports,
        "tags": lambda: rng.sample(("a", "b", "c"), rng.randint(0, 3)),
        "order": lambda: rng.sample(("a", "b"), rng.randint(0, 2)),
        "whole": lambda: _some(rng, {"a": word, "b": word}),
        "options": lambda: _some(rng, {"a": word, "b": word, "c": word}),
        "nested": lambda: _some(rng, {"a": word, "b": word, "deep": lambda: _some(rng, {"c": word})}),
        "any": lambda: _some(rng, {"a": strange, "b": strange}),
        "closed": lambda: _some(rng, {"a": word, "b": word}),
    }
    return typed(_some(rng, choices, 5))


def _random_open(rng: random.Random) -> Json:
    def strange() -> Any:
        return rng.choice((1, "x", True, [1], [], [{"n": 1}], {"b": 1}, {"b": {"c": [1]}, "d": "x"}, {}))

    return opened(_some(rng, {"a": strange, "b": strange, "c": strange}))


def _random_config_map(rng: random.Random) -> Json:
    def word() -> str:
        return rng.choice(("1", "2"))

    metadata: dict[str, Callable[[], Any]] = {
        "labels": lambda: _some(rng, {"l": word, "m": word}),
        "annotations": lambda: _some(rng, {"n": word, "o": word}),
        "finalizers": lambda: rng.sample(("kruise.io/a", "kruise.io/b", "kruise.io/c"), rng.randint(0, 3)),
    }
    return cm(_some(rng, {"a": word, "b": word, "c": word}), **_some(rng, metadata, 2))


def _random_container(rng: random.Random, name: str) -> Json:
    def env() -> list[Json]:
        return [{"name": key, "value": rng.choice(("1", "2"))} for key in rng.sample("ABC", rng.randint(0, 2))]

    def ports() -> list[Json]:
        pairs = rng.sample([(80, "TCP"), (80, "UDP"), (81, "TCP")], rng.randint(0, 2))
        return [{"containerPort": port, "protocol": protocol} for port, protocol in pairs]

    more: dict[str, Callable[[], Any]] = {
        "env": env,
        "ports": ports,
        "command": lambda: rng.choice((["a"], ["a", "b"])),
        "resources": lambda: {
            "limits": _some(rng, {"cpu": lambda: rng.choice(("1", "1000m")), "memory": lambda: "1Gi"})
        },
        "imagePullPolicy": lambda: rng.choice(("Always", "Never")),
        "livenessProbe": lambda: {"tcpSocket": {"port": rng.choice((80, "web"))}},
        "securityContext": lambda: _some(rng, {"runAsUser": lambda: 1, "privileged": lambda: True}),
    }
    return container(name, rng.choice(("nginx:1", "nginx:2")), **_some(rng, more))


def _random_deployment(rng: random.Random) -> Json:
    def strategy() -> Json:
        return {"rollingUpdate": _some(rng, {"maxSurge": lambda: rng.choice((1, "30%")), "maxUnavailable": lambda: 1})}

    spec: dict[str, Callable[[], Any]] = {
        "replicas": lambda: rng.randint(0, 2),
        "minReadySeconds": lambda: rng.randint(0, 2),
        "strategy": strategy,
        "paused": lambda: True,
    }
    template: dict[str, Callable[[], Any]] = {
        "tolerations": lambda: [{"key": rng.choice("ab"), "operator": "Exists"}],
        "nodeSelector": lambda: {"disk": rng.choice(("ssd", "hdd"))},
        "volumes": lambda: [{"name": name, "emptyDir": {}} for name in rng.sample("vw", rng.randint(0, 2))],
        "imagePullSecrets": lambda: [{"name": rng.choice("st")}],
        "hostAliases": lambda: [{"ip": rng.choice(("1.1.1.1", "2.2.2.2")), "hostnames": ["x"]}],
    }
    names = rng.sample(("main", "side", "third"), rng.randint(1, 2))
    containers = [_random_container(rng, name) for name in names]
    return deployment(
        containers, template=_some(rng, template, 3), labels={"l": rng.choice("12")}, **_some(rng, spec, 3)
    )


def _random_service(rng: random.Random) -> Json:
    pairs = rng.sample([(port, protocol) for port in (80, 443, 53) for protocol in ("TCP", "UDP")], rng.randint(1, 3))
    ports = [{"port": port, "protocol": protocol, "name": f"{protocol.lower()}-{port}"} for port, protocol in pairs]
    for port in ports:
        port |= _some(rng, {"targetPort": lambda: rng.choice((8080, "web")), "appProtocol": lambda: "x"})
    more: dict[str, Callable[[], Any]] = {
        "selector": lambda: {"app": rng.choice("ab")},
        "sessionAffinity": lambda: rng.choice(("None", "ClientIP")),
        "publishNotReadyAddresses": lambda: True,
    }
    return service(*ports, **_some(rng, more))


def _random_pod(rng: random.Random) -> Json:
    labels = _some(rng, {"l": lambda: rng.choice("12"), "m": lambda: rng.choice("12"), "n": lambda: "1"})
    spec = [container(image=rng.choice(("nginx:1", "nginx:2")))] if rng.random() < 0.7 else []
    return pod(*spec, labels=labels)


MAKERS: tuple[Callable[[random.Random], Json], ...] = (
    _random_typed,
    _random_typed,
    _random_open,
    _random_config_map,
    _random_deployment,
    _random_service,
    _random_pod,
)


def random_sequence(seed: int) -> list[Step]:
    rng = random.Random(seed)
    make = MAKERS[seed % len(MAKERS)]
    first = make(rng)
    resource = RESOURCES[first["kind"]]
    steps = [apply("one", first) if rng.random() < 0.6 else create("maker", first)]
    for _ in range(rng.randint(5, 9)):
        manager = rng.choice(("one", "two", "maker"))
        body = make(rng)
        kind = rng.random()
        if kind < 0.65:
            steps.append(apply(manager, body, force=rng.random() < 0.35, dry=rng.random() < 0.05))
        elif kind < 0.8 or resource is PODS:
            changes = {name: body[name] for name in ("data", "spec") if name in body}
            changes["metadata"] = {name: value for name, value in body["metadata"].items() if name != "name"}
            if resource is PODS:
                changes.pop("spec", None)
            patch = merge if resource in (OPEN, TYPED) or rng.random() < 0.5 else strategic
            steps.append(patch(manager, resource, changes))
        else:
            steps.append(put(manager, resource, _replaced_by(body)))
        if resource in (TYPED, PODS) and rng.random() < 0.25:
            conditions = [{"type": name, "status": rng.choice(("True", "False"))} for name in rng.sample("ABC", 2)]
            said = {**(typed() if resource is TYPED else pod()), "status": {"conditions": conditions}}
            steps.append(apply(manager, said, sub="status", force=rng.random() < 0.5))
    return steps


def _replaced_by(body: Json) -> Callable[[Json], None]:
    def change(obj: Json) -> None:
        for name in ("data", "spec"):
            if name in body and obj.get("kind") not in ("Deployment", "Service"):
                obj[name] = body[name]
        if obj.get("kind") == "Deployment":
            obj["spec"]["template"]["spec"]["containers"] = body["spec"]["template"]["spec"]["containers"]
            obj["spec"]["replicas"] = body["spec"].get("replicas", 1)
        if obj.get("kind") == "Service":
            obj["spec"]["ports"] = body["spec"]["ports"]
        for name in ("labels", "annotations", "finalizers"):
            if name in body["metadata"]:
                obj["metadata"][name] = body["metadata"][name]

    return change
