"""Is a built site whole? ``python tools/check_site.py build/docs`` lists what is not.

Links within the site lead to a page and an anchor that are there, and no page loads anything from the network: scripts,
styles, fonts and pictures are all part of the site. Links outward are not followed.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {  # tag: attributes whose address a browser fetches by itself
    "script": ["src"],
    "img": ["src", "srcset"],
    "source": ["src", "srcset"],
    "video": ["src", "poster"],
    "audio": ["src"],
    "track": ["src"],
    "iframe": ["src"],
    "embed": ["src"],
    "object": ["data"],
    "input": ["src"],
    "image": ["href", "xlink:href"],
    "use": ["href", "xlink:href"],
}
FETCHED = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "manifest", "preconnect", "dns-prefetch"}
IN_STYLE = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """Anchors of a page, where its links lead, what it loads."""

    def __init__(self, text: str):
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.in_style = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value is not None}
        self.anchors.update(given[name] for name in ("id", "name") if name in given and (name == "id" or tag == "a"))
        if tag in ("a", "area") and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and FETCHED & set(given.get("rel", "").lower().split()):
            self.loads.append(given.get("href", ""))
        for name in LOADED.get(tag, []):
            if name in given:
                self.loads += _addresses(given[name]) if name == "srcset" else [given[name]]
        if "style" in given:
            self.loads += in_style(given["style"])
        self.in_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style:
            self.loads += in_style(data)


def _addresses(srcset: str) -> list[str]:
    return [part.split()[0] for part in srcset.split(",") if part.split()]


def in_style(text: str) -> list[str]:
    """Addresses that a style sheet loads."""
    return [a or b for a, b in IN_STYLE.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))]


def complaints(site: Path) -> Iterator[str]:
    """What is wrong, a line each."""
    site = site.resolve()
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        here = path.relative_to(site)
        for address in dict.fromkeys(page.loads):
            yield from (f"{here}: {text}" for text in _loaded(address, path, site))
        for address in dict.fromkeys(page.links):
            yield from (f"{here}: {text}" for text in _linked(address, path, site, pages))
    for path in sorted(site.rglob("*.css")):
        for address in in_style(path.read_text(encoding="utf-8")):
            yield from (f"{path.relative_to(site)}: {text}" for text in _loaded(address, path, site))


def _loaded(address: str, path: Path, site: Path) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme == "data" or not (parts.path or parts.netloc):
        return
    if parts.scheme or parts.netloc:
        yield f"loads {address} from the network"
    elif not _file(parts.path, path, site).is_file():
        yield f"loads {address}, which is not there"


def _linked(address: str, path: Path, site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        if parts.scheme not in ("http", "https", "mailto"):
            yield f"links to {address}"
        return
    target = _file(parts.path, path, site) if parts.path else path
    if not target.is_file():
        yield f"links to {address}, which is not there"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        yield f"links to {address}: no such place on that page"


def _file(address: str, path: Path, site: Path) -> Path:
    start = site if address.startswith("/") else path.parent
    target = (start / unquote(address).lstrip("/")).resolve()
    return target / "index.html" if target.is_dir() else target


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=Path, help="the folder with index.html")
    site = parser.parse_args(argv).site
    if not (site / "index.html").is_file():
        parser.error(f"{site} has no index.html: build the site first (make docs)")
    found = list(complaints(site))
    print("\n".join(found) or f"{site}: all links lead somewhere, nothing is loaded from the network")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
