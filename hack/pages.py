"""What mkdocs needs to know of these documents beside mkdocs.yml, which loads this file. See `make site`.

The documents are written to be read where they lie, beside the sources. In the site there are none: a link to one is
only its text there. CHANGELOG.md and CONTRIBUTING.md become pages, and the start page stands for the README.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hack.version import version

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ADDED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages that are not in docs/, by their file."""
_PAGES = {**ADDED, "README.md": "index.md"}
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?://|mailto:|#)([^)#\s]+)(#[^)\s]*)?\)")
_FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=[\"']?((?:https?:)?//[^\s\"'>]+)")
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def for_site(text: str, folder: str) -> str:
    """A document of a folder (`docs`, or empty: the root) as a page of the site. Code in it stays as it is."""
    parts = _FENCED.split(text)
    return "".join(
        part if part.startswith("```") else _LINK.sub(lambda found: _link(found, folder), part) for part in parts
    )


def _link(found: re.Match[str], folder: str) -> str:
    text, target, anchor = found[1], found[2], found[3] or ""
    path = _from_root(folder, target)
    if path in _PAGES:
        return f"[{text}]({_PAGES[path]}{anchor})"
    if path.startswith("docs/"):
        return f"[{text}]({path.removeprefix('docs/')}{anchor})"
    return text


def _from_root(folder: str, target: str) -> str:
    parts: list[str] = []
    for part in f"{folder}/{target}".split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def fetched(html: str) -> list[str]:
    """What a browser would get from others to show a page: they would know who reads it."""
    return _FETCHED.findall(html)


# What mkdocs calls


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    from pymdownx.slugs import slugify

    toc: dict[str, Any] = config.mdx_configs.setdefault("toc", {})
    toc["slugify"] = slugify(case="lower")  # anchors as code hosts make them, which the documents are written for
    config.copyright = f"PyKruise {version()}, Apache-2.0"
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    from mkdocs.structure.files import File

    for source, page in ADDED.items():
        files.append(File.generated(config, page, content=for_site((ROOT / source).read_text(), "")))
    return files


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    from mkdocs.exceptions import PluginError

    found = fetched(output)
    if found:
        raise PluginError(f"{page.file.src_uri} fetches something from elsewhere: {', '.join(found)}")
    return output


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    return markdown if page.file.src_uri in ADDED.values() else for_site(markdown, "docs")
