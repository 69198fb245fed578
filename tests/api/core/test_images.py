"""Names of images as kubelets read them. The texts are those of a kubelet 1.34."""

from __future__ import annotations

import pytest

from kruise.api.core.images import problem

DIGEST = "sha256:" + "a" * 64
UPPER = "A" * 64


@pytest.mark.parametrize(
    "image",
    [
        "nginx",
        "nginx:1.25",
        "library/nginx",
        "docker.io/nginx:x_Y-1.2",
        "index.docker.io/nginx",
        "registry:5000/a/b__c/d--e:1",
        "[::1]:5000/a:1",
        "localhost/a",
        "Registry/a:1",
        f"nginx@{DIGEST}",
        f"nginx:1.25@{DIGEST}",
        "a" * 247 + ":" + "t" * 128,
    ],
)
def test_good_names(image: str) -> None:
    assert problem(image) == ""


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ("Nginx:1:2", "invalid reference format: repository name (library/Nginx) must be lowercase"),
        ("nginx:1:2", "invalid reference format"),
        ("nginx:", "invalid reference format"),
        ("a/B:1", "invalid reference format: repository name (a/B) must be lowercase"),
        ("http://nginx", "invalid reference format"),
        (":1", "invalid reference format"),
        ("a b", "invalid reference format"),
        ("nginx:" + "t" * 129, "invalid reference format"),
        ("nginx@sha256:abc", "invalid reference format"),
        (f"nginx@SHA256:{UPPER}", "invalid reference format: repository name (library/nginx@SHA256) must be lowercase"),
        (f"nginx@md5:{'a' * 32}", "unsupported digest algorithm"),
        (f"nginx@sha256:{UPPER}", "invalid checksum digest format"),
        (f"nginx@{DIGEST}a", "invalid checksum digest length"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
        ("a" * 248, "repository name must not be more than 255 characters"),
    ],
)
def test_bad_names(image: str, reason: str) -> None:
    assert (
        problem(image) == f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {reason}'
    )
