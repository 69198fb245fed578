"""What makes the container image: the parts that need neither root nor packages of Debian."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from hack.image import application, base, oci, sbom

EPOCH = 315532800


def a_tree(root: Path, order: list[str]) -> Path:
    for name in order:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / "link").symlink_to("b/one")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    (root / "b/run").chmod(0o700)
    return root


def test_a_layer_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    names = ["b/one", "a", "b/run", "c/d/e"]
    first = oci.layer(a_tree(tmp_path / "1", names), "x", EPOCH)
    second = a_tree(tmp_path / "2", names[::-1])
    os.utime(second / "a", (1, 1))
    (second / "a").chmod(0o640)
    assert oci.layer(second, "x", EPOCH).tar == first.tar
    (second / "a").write_text("other")
    assert oci.layer(second, "x", EPOCH).tar != first.tar


def test_a_layer_belongs_to_root_and_nobody_else_may_write(tmp_path: Path) -> None:
    layer = oci.layer(a_tree(tmp_path / "1", ["b/one", "b/run"]), "x", EPOCH)
    with tarfile.open(fileobj=io.BytesIO(layer.tar)) as tar:
        found = {each.name: each for each in tar}
    assert {(each.uid, each.gid, each.mtime) for each in found.values()} == {(0, 0, EPOCH)}
    assert {name: oct(each.mode) for name, each in found.items()} == {
        "b": "0o755",
        "b/one": "0o644",
        "b/run": "0o755",
        "link": "0o777",
        "tmp": "0o1777",
    }
    assert found["link"].linkname == "b/one"


def an_image(tmp_path: Path, architecture: str = "amd64") -> oci.Image:
    layer = oci.layer(a_tree(tmp_path / architecture, ["b/one", "b/run"]), "made", EPOCH)
    return oci.image([layer], architecture=architecture, epoch=EPOCH, running={"User": "1:1"}, labels={"a": "b"})


def test_an_image_says_what_it_is_made_of(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    manifest = json.loads(image.manifest)
    [layer] = manifest["layers"]
    config = json.loads(image.blobs[manifest["config"]["digest"]])
    assert config["rootfs"]["diff_ids"] == [oci.digest_of(gzip.decompress(image.blobs[layer["digest"]]))]
    assert config["config"]["User"] == "1:1"
    assert config["created"] == "1980-01-01T00:00:00Z"
    assert image.digest == oci.digest_of(image.manifest)


def test_a_layout_is_read_as_it_was_written(tmp_path: Path) -> None:
    image = an_image(tmp_path)
    oci.write_layout(tmp_path / "layout", [image], "some/name:1.0")
    assert oci.read_layout(tmp_path / "layout") == image
    oci.write_archive(tmp_path / "layout", tmp_path / "one.tar")
    oci.write_archive(tmp_path / "layout", tmp_path / "two.tar")
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_two_architectures_share_a_name(tmp_path: Path) -> None:
    images = [an_image(tmp_path, each) for each in ("amd64", "arm64")]
    oci.write_layout(tmp_path / "layout", images, "some/name:1.0")
    [entry] = json.loads((tmp_path / "layout/index.json").read_text())["manifests"]
    assert entry["annotations"] == {oci.CONTAINERD_NAME: "some/name:1.0", oci.REF_NAME: "1.0"}
    index = json.loads((tmp_path / "layout/blobs/sha256" / entry["digest"][7:]).read_text())
    assert [each["platform"]["architecture"] for each in index["manifests"]] == ["amd64", "arm64"]


def test_a_bill_names_every_package() -> None:
    debian = [{"Package": "libssl3", "Version": "3.0+1", "Architecture": "amd64", "Maintainer": "Somebody"}]
    python = [
        {"name": "PyYAML", "version": "6.0", "licence": "MIT"},
        {"name": "pykruise", "version": "1", "licence": "Apache-2.0"},
    ]
    digest = oci.digest_of(b"image")
    bill = sbom.bill("pykruise", "1", debian, python, architecture="amd64", epoch=EPOCH, digest=digest)
    assert [each["purl"] for each in bill["components"]] == [
        f"pkg:deb/debian/libssl3@3.0%2B1?arch=amd64&distro=debian-{base.SUITE}",
        "pkg:pypi/pyyaml@6.0",
    ]
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest[7:]}]
    assert sbom.bill("pykruise", "1", debian, python, architecture="amd64", epoch=EPOCH, digest=digest) == bill


def test_the_image_has_the_versions_that_are_tested() -> None:
    def locked(name: str) -> dict[str, str]:
        text = (application.ROOT / "requirements" / name).read_text()
        return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, re.MULTILINE))

    runtime, everything = locked("runtime.txt"), locked("dev.txt")
    assert {"aiohttp", "cryptography", "uvloop"} <= set(runtime)
    assert not {"pytest", "mypy"} & set(runtime)
    assert {name: everything.get(name) for name in runtime} == runtime


def test_a_record_tells_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    record = tmp_path / "RECORD"
    record.write_text("a,x,1\n../../bin/gone,x,1\n")
    application._keep_true(record, tmp_path)
    assert record.read_text() == "a,x,1\n"


def test_an_unknown_architecture_is_refused(tmp_path: Path) -> None:
    with pytest.raises(base.PrerequisiteError, match="no image for 'mips'"):
        application.install_dependencies(tmp_path, "mips")
