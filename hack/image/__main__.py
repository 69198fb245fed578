"""`python -m hack.image [--arch amd64 --arch arm64] [--output DIRECTORY]`: see `make image`."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from hack.image import build, oci
from hack.image.base import PrerequisiteError

_MB = 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.image", description="Make the container image.")
    parser.add_argument(
        "--arch", action="append", choices=["amd64", "arm64"], help="may be repeated; default: this one's"
    )
    parser.add_argument("--output", type=Path, default=build.ROOT / "dist", help="where to put it; default: dist")
    parser.add_argument(
        "--name", default="", help="the image's name with its tag; default: pykruise/kruise-manager:VERSION"
    )
    parser.add_argument("--fresh", action="store_true", help="take nothing from the cache, as for a release")
    parser.add_argument("--twice", action="store_true", help="make it twice from nothing, and fail where both differ")
    parser.add_argument("--ensure", action="store_true", help="only see to it that the tests find this tree's image")
    parser.add_argument(
        "--trees", type=Path, help="only make the directories of the layers there, as the Dockerfile does"
    )
    given = parser.parse_args()
    architectures = list(dict.fromkeys(given.arch or [build.own_architecture()]))
    began = time.monotonic()
    try:
        if given.ensure:
            for each in architectures:
                build.ensure(each)
            return 0
        if given.trees:
            [architecture] = architectures
            with tempfile.TemporaryDirectory() as work:
                build.make_trees(given.trees, architecture, Path(work))
            return 0
        built = [build.build(each, fresh=given.fresh or given.twice) for each in architectures]
        again = [build.build(each, fresh=True).image for each in architectures] if given.twice else []
    except PrerequisiteError as error:
        print(f"the image cannot be made: {error}", file=sys.stderr)
        return 1
    for one, other in zip(built, again, strict=False):
        if one.image.digest != other.digest:
            print(f"{other.architecture}: {one.image.digest}, then {other.digest}", file=sys.stderr)
            return 1
    name = given.name or f"pykruise/kruise-manager:{built[0].version}"
    layout = given.output / "image"
    shutil.rmtree(layout, ignore_errors=True)
    oci.write_layout(layout, [each.image for each in built], name)
    oci.write_archive(layout, given.output / "image.tar")
    for each in built:
        bill = given.output / f"image-{each.image.architecture}.cdx.json"
        bill.write_text(json.dumps(each.bill, indent=2, sort_keys=True) + "\n")
        print(
            f"{name} for {each.image.architecture}: {each.image.size / _MB:.1f} MB, {each.image.digest}, "
            f"{len(each.bill['components'])} packages in {bill.name}"
        )
    if again:
        print("made twice from nothing, with the same digests")
    print(f"{layout} and {layout}.tar made in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
