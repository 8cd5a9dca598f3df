"""Makes the book's pages from the files of the repository that the outline names. No text of the book is kept twice.

`Book` maps files to pages, and `Book.page` rewrites one file: its links, code names, Rust documentation and tables of attacks.
"""

import os
import re
from pathlib import Path, PurePosixPath
from posixpath import join, normpath, relpath

ROOT = Path(__file__).resolve().parents[2]
HERE = "site/book"
OUTLINE = f"{HERE}/SUMMARY.md"
IMAGES = {".png", ".svg"}
# What `build --api` makes beside the book, and the page that leads to it.
REFERENCES = {"crates/countersign/README.md": "rust/countersign/index.html", "bindings/js/README.md": "js/index.html"}
LANGUAGES = {".rs": "rust", ".mjs": "js", ".ts": "ts", ".py": "python"}

ENTRY = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
SHORTCUT = re.compile(r"\[(\0\d+\0)\](?![(\[])")
TICKED = re.compile(r"(`+)(.+?)\1", re.S)
FENCE = re.compile(r"^\s*(```+|~~~+)(.*)$")
CONDITION = re.compile(r"#!\[cfg_attr\((.*), doc = \"(.*)\"\)\]")


def name_of_page(path):
    """Returns where the page of a file is in the book."""
    if path == "README.md":
        return "index.md"
    path = path.lower().removeprefix("docs/").removeprefix(f"{HERE}/")
    path = path.replace("crates/countersign/src/guide", "guide").replace("crates/client/src/guide", "platform")
    path = path.replace("/src/lib.rs", "/library.rs").replace("/mod.rs", ".rs").replace("/readme.md", ".md")
    return str(PurePosixPath(path).with_suffix(".md"))


def slug(text):
    """Returns the anchor of a heading, as mdBook and GitHub make it."""
    return "".join(c for c in text.strip().lower().replace(" ", "-") if c.isalnum() or c in "-_")


def documentation(text):
    """Returns the documentation of a Rust file's head as Markdown, and the code below it."""
    prose, lines = [], text.split("\n")
    while lines and (lines[0].startswith("//!") or CONDITION.match(lines[0])):
        line = lines.pop(0)
        condition = CONDITION.match(line)
        if not condition:
            prose.append(line.removeprefix("//!").removeprefix(" "))
        elif not condition[1].startswith("not("):
            prose.append(condition[2])
    return "\n".join(prose), "\n".join(lines).strip() + "\n"


def blocks(text):
    """Yields the text in parts: whether each is a block of code, and its lines."""
    part, fence = [], None
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence is None and found:
            yield False, part
            part, fence = [line], found[1]
        elif fence is not None and found and found[1].startswith(fence) and not found[2].strip():
            yield True, [*part, line]
            part, fence = [], None
        else:
            part.append(line)
    yield fence is not None, part


class Book:
    def __init__(self, repository="", api=None):
        """`repository` is the address below which files of code are, or empty. `api` is the folder of the references, or None."""
        self.repository, self.api = repository.rstrip("/"), api
        self.outline = (ROOT / OUTLINE).read_text()
        entries = [(title, normpath(f"{HERE}/{path}")) for title, path in ENTRY.findall(self.outline)]
        self.titles = {path: title for title, path in entries}
        self.pages = {path: name_of_page(path) for _, path in entries}
        if len(self.titles) != len(entries) or len(set(self.pages.values())) != len(self.pages):
            raise ValueError(f"{OUTLINE}: two entries are one page")
        self.codes = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/codes.md").read_text(), re.M))
        # The images that pages show, and the links that lead nowhere.
        self.images, self.dead = set(), []

    def summary(self):
        """Returns mdBook's outline."""
        return ENTRY.sub(lambda entry: f"[{entry[1]}]({self.pages[normpath(f'{HERE}/{entry[2]}')]})", self.outline)

    def llms(self):
        """Returns llms.txt with the links of the book, to the Markdown of its pages."""
        text = (ROOT / "llms.txt").read_text()
        return LINK.sub(lambda found: f"[{found[2]}]({goes})" if (goes := self.target("llms.txt", found[3], "")) else found[2], text)

    def below(self, folder):
        """Returns the first page of a folder: its README, or else the first one of the outline."""
        for name in ("README.md", "mod.rs", "src/lib.rs"):
            if f"{folder}/{name}" in self.pages:
                return f"{folder}/{name}"
        return next((path for path in self.pages if path.startswith(f"{folder}/")), None)

    def target(self, file, link, base):
        """Returns where a link of a file leads, seen from `base`; `None` if it leads to code and no repository is known."""
        if re.match(r"(https?|mailto):", link):
            return link
        path, _, anchor = link.partition("#")
        anchor = f"#{anchor}" if anchor else ""
        if not path:
            return link
        path = normpath(join(os.path.dirname(file), path))
        page = path if path in self.pages else self.below(path)
        if page:
            return relpath(self.pages[page], base or ".") + anchor
        if not (ROOT / path).exists():
            return self.item(file, link, base)
        return f"{self.repository}/{path}{anchor}" if self.repository else None

    def item(self, file, link, base):
        """Returns where a link of rustdoc leads: a page of a guide, or the item in rustdoc's pages, if these are there."""
        if not file.startswith("crates/") or ("/" in link and not link.endswith("/index.html")):
            self.dead.append(f"{file}: {link} does not exist")
            return None
        path, _, anchor = link.partition("#")
        words = path.removesuffix("/index.html").replace("/", "::").split("::")
        own = file.split("/")[1]
        guide = f"crates/{own}/src/guide"
        page = f"{guide}/{words[-1]}.rs" if words[-1] != "guide" else f"{guide}/mod.rs"
        if page in self.pages and words[0] in ("crate", "super", words[-1]):
            return relpath(self.pages[page], base or ".") + (f"#{anchor}" if anchor else "")
        # The page of a family is the README of its crate.
        readme = f"crates/{words[-1]}/README.md"
        if own == "countersign" and words[0] == "crate" and len(words) == 2 and readme in self.pages:
            return relpath(self.pages[readme], base or ".") + (f"#{anchor}" if anchor else "")
        if self.api is None or words[0] in ("std", "serde", "super"):
            return None
        crate = "countersign" if own == "countersign" else f"countersign_{own.replace('-', '_')}"
        if words[0] == "crate" or words[0].startswith("countersign"):
            crate = crate if words[0] == "crate" else words[0]
            words = words[1:]
        place, up = self.api / "rust" / crate, f"{relpath('api/rust', base or '.')}/{crate}"
        for count in (len(words), len(words) - 1):
            found = sorted(place.glob("/".join([*words[: count - 1], f"*.{words[count - 1]}.html"]))) if count > 0 else []
            for page in found:
                at = [f"#{kind}.{words[-1]}" for kind in ("method", "variant", "tymethod", "structfield")] if count < len(words) else [""]
                at = [each for each in at if not each or f'id="{each[1:]}"' in page.read_text()]
                if at:
                    return f"{up}/{page.relative_to(place).as_posix()}{at[0]}"
        module = "/".join(words)
        return f"{up}/{module}/index.html" if (place / module / "index.html").exists() else None

    def prose(self, file, text, base):
        """Rewrites the links of a text without blocks of code. Codes and paths in backticks become links too."""
        ticked = []

        def hide(found):
            ticked.append(found[0])
            return f"\0{len(ticked) - 1}\0"

        def show(text, linked):
            def one(found):
                code = ticked[int(found[1])]
                name = code.strip("`")
                path, _, anchor = name.partition("#")
                if not linked and name in self.codes and file != "docs/codes.md":
                    return f"[{code}]({relpath(self.pages['docs/codes.md'], base or '.')}#{name})"
                if not linked and path in self.pages and self.pages[path] != self.current:
                    return f"[{code}]({relpath(self.pages[path], base or '.')}{anchor and '#' + anchor})"
                return code

            return re.sub(r"\0(\d+)\0", one, text)

        def link(found):
            bang, words, to = found.groups()
            if bang and Path(to).suffix in IMAGES and ":" not in to:
                image = normpath(join(os.path.dirname(file), to))
                if not (ROOT / image).is_file():
                    self.dead.append(f"{file}: {to} does not exist")
                    return words
                self.images.add(image)
                return f"![{words}]({relpath(image.removeprefix('docs/'), base or '.')})"
            goes = self.target(file, to, base)
            words = show(words, linked=True)
            if goes:
                return f"[{words}]({goes})"
            # Without a repository the reader sees where the code is.
            code = normpath(join(os.path.dirname(file), to.partition("#")[0]))
            return f"{words} (`{code}`)" if (ROOT / code).exists() and words.strip("`") not in code else words

        text = LINK.sub(link, TICKED.sub(hide, text))
        if file.startswith("crates/"):

            def shortcut(found):
                words = show(found[1], linked=True)
                goes = self.item(file, words.strip("`").removesuffix("()"), base)
                return f"[{words}]({goes})" if goes else words

            text = SHORTCUT.sub(shortcut, text)
        return show(text, linked=False)

    def anchors(self, file, lines):
        """Gives each row of the list of codes, and of a table of attacks, an address."""
        taken, kind = {}, None
        for line in lines:
            cells = line.split(" | ")
            first = cells[0].removeprefix("| ")
            if not line.startswith("|"):
                kind = None
            elif kind is None:
                kind = first.strip("` ")
            elif not line.startswith("|-") and (kind == "attack" or (file == "docs/codes.md" and kind == "code")):
                at = first.strip("`") if kind == "code" else slug(first)
                taken[at] = taken.get(at, 0) + 1
                at = at if taken[at] == 1 else f"{at}-{taken[at]}"
                shown = f"[{first}](#{at})" if kind == "code" else first
                line = line.replace(f"| {first} |", f'| <a id="{at}"></a>{shown} |', 1)
            yield line

    def page(self, file):
        """Returns the page of a file."""
        text, code = (ROOT / file).read_text(), ""
        suffix = Path(file).suffix
        self.current = self.pages[file]
        base = os.path.dirname(self.current)
        if suffix == ".rs":
            text, code = documentation(text)
            text = demoted(text)
            code = code if file.startswith("examples/") else ""
        elif suffix != ".md":
            text, code = "", text
        elif text.startswith("---\n"):
            text = text.split("\n---\n", 1)[1]
        if suffix != ".md":
            text = f"# {self.titles[file]}\n\n{text}"
        out, is_rustdoc = [], file.startswith("crates/")
        for is_code, lines in blocks(text):
            if is_code:
                # Rust's documentation names no language for Rust.
                rust = is_rustdoc and lines[0].strip() in ("```", "```no_run", "```ignore", "```compile_fail")
                out.append("\n".join(["```rust" if rust else lines[0], *lines[1:]]))
            else:
                out.append(self.prose(file, "\n".join(self.anchors(file, lines)), base))
        if code:
            out.append(f"```{LANGUAGES[suffix]}\n{code}```\n")
        page, reference = "\n".join(out), REFERENCES.get(file)
        if reference and self.api and (self.api / reference).exists():
            page = page.replace("\n", f"\n\n[Every item: the reference.]({relpath(f'api/{reference}', base or '.')})\n", 1)
        return page


def demoted(text):
    """Makes headings one level lower: the page has a title, which rustdoc makes itself."""
    parts = []
    for is_code, lines in blocks(text):
        parts.append("\n".join(lines if is_code else [f"#{line}" if line.startswith("#") else line for line in lines]))
    return "\n".join(parts)
