"""Write `src/kruise/local/server/messages.json`: how native objects are laid out in Kubernetes' binary form.

    python hack/kubernetes/proto_messages.py API_DIRECTORY APIMACHINERY_DIRECTORY

The directories hold the source of the Go modules `k8s.io/api` and `k8s.io/apimachinery`. Types come from their `.proto`
files; the names of fields in JSON, which fields stand inline, and which can be told apart from absent ones (pointers),
come from the Go structs. The same sources give the same file.

A field is `number: "name type"`. Types: `s` text, `y` bytes, `i` whole number, `b` boolean, `@name` a message; `[]T` is
a list and `{}T` a map by text; `?` at the end: a zero counts. A field without a name stands inline.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

OUTPUT = Path(__file__).resolve().parents[2] / "src/kruise/local/server/messages.json"
GROUPS = {
    "core/v1": "v1",
    "apps/v1": "apps/v1",
    "authentication/v1": "authentication.k8s.io/v1",
    "authorization/v1": "authorization.k8s.io/v1",
    "autoscaling/v1": "autoscaling/v1",
    "autoscaling/v2": "autoscaling/v2",
    "batch/v1": "batch/v1",
    "certificates/v1": "certificates.k8s.io/v1",
    "coordination/v1": "coordination.k8s.io/v1",
    "discovery/v1": "discovery.k8s.io/v1",
    "events/v1": "events.k8s.io/v1",
    "networking/v1": "networking.k8s.io/v1",
    "node/v1": "node.k8s.io/v1",
    "policy/v1": "policy/v1",
    "rbac/v1": "rbac.authorization.k8s.io/v1",
    "scheduling/v1": "scheduling.k8s.io/v1",
    "storage/v1": "storage.k8s.io/v1",
    "admissionregistration/v1": "admissionregistration.k8s.io/v1",
}
META = "pkg/apis/meta/v1"
SCALARS = {"string": "s", "bytes": "y", "bool": "b", "int32": "i", "int64": "i"}
PREFIXES = (
    ("k8s.io.api.", ""),
    ("k8s.io.apimachinery.pkg.apis.meta.", "meta."),
    ("k8s.io.apimachinery.pkg.", ""),
)
# Read by hand: their JSON is not their layout.
SPECIAL = {
    "meta.v1.Time",
    "meta.v1.MicroTime",
    "meta.v1.Duration",
    "meta.v1.FieldsV1",
    "meta.v1.Verbs",
    "api.resource.Quantity",
    "util.intstr.IntOrString",
    "runtime.RawExtension",
    "authentication.v1.ExtraValue",
    "authorization.v1.ExtraValue",
    "certificates.v1.ExtraValue",
}
MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(r"^  (?:map<string, ([\w.]+)>|(optional|repeated) ([\w.]+)) (\w+) = (\d+);", re.MULTILINE)
STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
MEMBER = re.compile(r"^\t(?:\w+ +)?([\w.*\[\]]+) +`(.*?)`", re.MULTILINE)
TAG = re.compile(r'(json|protobuf):"([^"]*)"')


def short(name: str, package: str) -> str:
    full = name.removeprefix(".") if "." in name else f"{package}.{name}"
    for prefix, instead in PREFIXES:
        if full.startswith(prefix):
            return instead + full.removeprefix(prefix)
    raise SystemExit(f"{full}: a package that is not known")


def members(directory: Path) -> dict[str, dict[str, tuple[str, bool]]]:
    """For each struct, by the name in the binary form: the name in JSON (empty: inline), and whether zero counts."""
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for file in sorted(directory.glob("*.go")):
        if file.name.startswith(("generated", "zz_")) or file.name.endswith("_test.go"):
            continue
        for struct, body in STRUCT.findall(file.read_text()):
            for kind, tags in MEMBER.findall(body):
                tag = dict(TAG.findall(tags))
                name = next((part[5:] for part in tag.get("protobuf", "").split(",") if part.startswith("name=")), "")
                if name and "json" in tag:
                    found.setdefault(struct, {})[name] = (tag["json"].partition(",")[0], kind.startswith("*"))
    return found


def messages(directory: Path, package: str) -> dict[str, dict[str, str]]:
    names = members(directory)
    found: dict[str, dict[str, str]] = {}
    for message, body in MESSAGE.findall((directory / "generated.proto").read_text()):
        known = names.get(message, {})
        fields: dict[str, str] = {}
        for value, label, kind, name, number in FIELD.findall(body):
            shown, counts = known.get(name, (name, False))
            inner = value or kind
            word = SCALARS.get(inner) or f"@{short(inner, package)}"
            mark = "{}" if value else "[]" if label == "repeated" else ""
            fields[number] = f"{shown} {mark}{word}{'?' if counts and not mark and not word.startswith('@') else ''}"
        found[short(message, package)] = fields
    return found


def reachable(table: dict[str, dict[str, str]], start: list[str]) -> dict[str, dict[str, str]]:
    kept: dict[str, dict[str, str]] = {}
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        if name in kept or name in SPECIAL:
            continue
        kept[name] = table[name]
        for field in table[name].values():
            kind = field.partition(" ")[2].removeprefix("[]").removeprefix("{}")
            if kind.startswith("@"):
                waiting.append(kind[1:])
    return dict(sorted(kept.items()))


def main() -> None:
    api, machinery = Path(sys.argv[1]), Path(sys.argv[2])
    table = messages(machinery / META, "k8s.io.apimachinery.pkg.apis.meta.v1")
    kinds = {}
    for directory, group_version in GROUPS.items():
        package = "k8s.io.api." + directory.replace("/", ".")
        found = messages(api / directory, package)
        table |= found
        for name, fields in found.items():
            is_kind = fields.get("1", "") == "metadata @meta.v1.ObjectMeta"
            if is_kind and "Template" not in name.removesuffix("PodTemplate"):
                kinds[f"{group_version}/{name.rpartition('.')[2]}"] = name
    kept = reachable(table, [*kinds.values(), "meta.v1.DeleteOptions"])
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(kept[name], separators=(',', ':'))}" for name in kept)
    listed = ",\n".join(f"{json.dumps(kind)}: {json.dumps(name)}" for kind, name in sorted(kinds.items()))
    OUTPUT.write_text(f'{{\n"kinds": {{\n{listed}\n}},\n"messages": {{\n{lines}\n}}\n}}\n')


if __name__ == "__main__":
    main()
