"""Finds what is dead in a folder of pages: links to pages, anchors and images that are not there, and what needs a network."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.loads = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids.update(value for name in ("id", "name") if (value := attributes.get(name)) and (name == "id" or tag == "a"))
        self.links += [value for name in ("href", "src") if (value := attributes.get(name)) is not None]
        # What a page loads by itself, not what a reader may follow.
        if tag != "a":
            self.loads += [value for name in ("href", "src") if (value := attributes.get(name))]


def faults(folder, skip=()):
    """Returns what is wrong with the pages below a folder, and how many pages and links were looked at.

    `skip` are folders whose pages are targets only: another tool has made them.
    """
    folder = Path(folder).resolve()
    read = cache(lambda path: Page(path.read_text()))
    pages = [path for path in sorted(folder.rglob("*.html")) if not any(path.is_relative_to(folder / each) for each in skip)]
    found, links = [], 0
    for path in pages:
        name = path.relative_to(folder)
        found += [f"{name}: needs a network: {load}" for load in read(path).loads if re.match(r"(https?:)?//", load)]
        for link in read(path).links:
            links += 1
            if re.match(r"(https?|mailto|data):|//", link):
                continue
            place, anchor = urldefrag(link)
            if place.startswith("/"):
                found.append(f"{name}: works only at the root of a server: {link}")
                continue
            target = (path.parent / unquote(place)).resolve() if place else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: no such file: {link}")
            elif anchor and target.suffix == ".html" and unquote(anchor) not in read(target).ids:
                found.append(f"{name}: no such anchor: {link}")
    return found, len(pages), links
