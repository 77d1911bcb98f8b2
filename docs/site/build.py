#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""build.py ROOT OUT: builds the documentation site of the project ROOT in OUT/html, without network access: all
Markdown pages by Sphinx with MyST, and the headers of the DSL and of the C interface by Doxygen. Sphinx has
CommonMark and GitHub's anchors, so the pages need no changes. A warning of either program, a public function of the C
interface without a comment, and a link of the site that leads nowhere are errors. Exits with 1 if there is one, with
77 if a program is missing. `./dev docs` installs the programs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
from html.parser import HTMLParser

HERE = pathlib.Path(__file__).resolve().parent
FENCE = re.compile(r"^ *```")
# Link targets in Markdown: [text](target) and [label]: target.
LINK = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s]+)")
LANGUAGES = {".c": "c", ".h": "cpp", ".cpp": "cpp", ".cmake": "cmake", ".py": "python", ".sh": "bash"}
CAPTIONS = ("Using Kiln", "Development", "Folders")


def find_pages(root):
    """Returns the paths of all Markdown pages, relative to the root."""
    pages = list(root.glob("*.md"))
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        if not folder.name.startswith(".") and folder.name != "build":
            pages += folder.rglob("*.md")
    broken = root / "tests/docs/broken" # wrong on purpose
    return sorted(page.relative_to(root) for page in pages if broken not in page.parents)


class Stage:
    """Copies the pages and all that they link to into one folder, in which every link target is a page or a picture:
    a folder becomes its README.md or a list of its files, and a source file becomes a page that shows it."""

    def __init__(self, root, out):
        self.root, self.out = root, out

    def place(self, path):
        """Returns the path of a page in that folder."""
        return pathlib.Path("index.md") if str(path) == "README.md" else path

    def write(self, path, text):
        target = self.out / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def add_target(self, path):
        """Adds what a link leads to, and returns its path; the path as it is if it is a page."""
        source = self.root / path
        if source.is_dir():
            if (source / "README.md").exists():
                return self.place(path / "README.md")
            page = path / "files.md"
            names = "".join(f"- `{file.name}`\n" for file in sorted(source.iterdir()))
            self.write(page, f"---\norphan: true\n---\n# {path}\n\n{names}")
            return page
        if path.suffix == ".md" or not source.exists():
            return self.place(path)
        if path.suffix in (".svg", ".png"):
            (self.out / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, self.out / path)
            return path
        page = path.with_name(path.name + ".md")
        language = LANGUAGES.get(path.suffix, "text")
        self.write(page, f"---\norphan: true\n---\n# {path}\n\n``````{language}\n{source.read_text()}``````\n")
        return page

    def add_page(self, path, contents):
        """Adds a page with its links changed to what they lead to, followed by its tables of contents."""
        folder, lines, is_code = path.parent, [], False

        def change(match):
            target = match.group(2)
            if re.match(r"[a-z]+:|#", target):
                return match.group(0)
            name, _, anchor = target.partition("#")
            found = self.add_target(pathlib.Path(os.path.normpath(folder / name)))
            return match.group(1) + os.path.relpath(found, folder) + ("#" + anchor if anchor else "")

        for line in (self.root / path).read_text(encoding="utf-8").splitlines():
            if FENCE.match(line):
                is_code = not is_code
            elif not is_code: # splits off code in backticks, which has no links
                parts = re.split(r"(?<!\[)(`[^`]*`)(?!\])", line)
                line = "".join(part if part.startswith("`") else LINK.sub(change, part) for part in parts)
            lines.append(line)
        for caption, entries in contents:
            lines += ["", "```{toctree}", ":hidden:"] + ([f":caption: {caption}"] if caption else [])
            lines += ["", *(os.path.relpath(entry.with_suffix(""), folder) for entry in entries), "```"]
        self.write(self.place(path), "\n".join(lines) + "\n")


def contents_of(root, pages):
    """Returns the tables of contents of pages: for README.md the pages of its "Next steps" for users, all other pages
    of docs/ for developers, and the remaining pages; for the README.md of docs/decisions, docs/measurements and
    examples the pages below it."""
    steps = (root / "README.md").read_text(encoding="utf-8").partition("## Next steps\n")[2].partition("\n## ")[0]
    for_users = [pathlib.Path(target) for target in re.findall(r"\]\(((?:docs|dsl)/[^)#]+\.md)", steps)]
    contents, remaining = {}, [page for page in pages if str(page) != "README.md"]
    for folder in ("docs/decisions", "docs/measurements", "examples"):
        top = pathlib.Path(folder) / "README.md"
        below = [page for page in remaining if pathlib.Path(folder) in page.parents and page != top]
        contents[top] = [("", below)]
        remaining = [page for page in remaining if page not in below]
    users = [page for page in dict.fromkeys(for_users) if page in remaining] + [pathlib.Path("examples/README.md")]
    remaining = [page for page in remaining if page not in users]
    developers = [page for page in remaining if page.parts[0] in ("docs", "CONTRIBUTING.md")]
    folders = [page for page in remaining if page not in developers]
    users.append(pathlib.Path("api.md"))
    contents[pathlib.Path("README.md")] = list(zip(CAPTIONS, (users, developers, folders)))
    return contents


def write_prototypes(root, target):
    """Writes the functions that each generated NAME.h declares, with NAME for the library's name, as a header."""
    source = (root / "compiler/library/CFunctions.cpp").read_text(encoding="utf-8")
    text = "\n\n".join(re.findall(r'R"\((.*?)\)"', source, re.S))
    text = re.sub(r"\{[01]\}", "NAME", text).replace("{{", "{").replace("}}", "}")
    if len(re.findall(r"\bNAME_\w+\(", text)) < 30:
        return "compiler/library/CFunctions.cpp: found too few prototypes of NAME.h"
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */\n"
                      "/* The functions of a generated library, whose name is NAME here. Functions for states,\n"
                      " * training, several processes, self-tests and GPUs are in libraries that have these.\n"
                      " * Each entry is a function NAME_ENTRY, too. */\n" + text, encoding="utf-8")
    return None


def run(command, **options):
    """Runs a program; returns its lines of output, and that it failed if it did."""
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    return lines + ([f"{command[0]}: exit status {result.returncode}"] if result.returncode else [])


def run_doxygen(root, out, name, settings):
    """Runs Doxygen with docs/site/Doxyfile and other settings; returns its warnings."""
    target = out / "html/api" / name
    target.mkdir(parents=True, exist_ok=True)
    settings = dict(settings, OUTPUT_DIRECTORY=target.parent, HTML_OUTPUT=name)
    text = (HERE / "Doxyfile").read_text() + "".join(f"{key} = {value}\n" for key, value in settings.items())
    result = subprocess.run(["doxygen", "-"], input=text, cwd=root, capture_output=True, text=True)
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    if result.returncode:
        lines.append(f"doxygen: exit status {result.returncode}")
    # Members that need no comment may lack one, but not functions.
    return [line for line in lines if not (line.endswith("is not documented.") and "(function) of file" not in line)]


class Links(HTMLParser):
    """Collects the anchors and the link targets of an HTML file."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.targets = set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if key == "id" or (key == "name" and tag == "a"):
                self.anchors.add(value)
            elif key in ("href", "src") and value:
                self.targets.add((tag, value))


def check_links(html):
    """Returns a line for each link within the site that leads nowhere, and for each file that a page would load from
    the network."""
    found = {path: Links(path) for path in html.rglob("*.html")}
    errors = []
    for path, links in found.items():
        name = path.relative_to(html)
        is_api = name.parts[0] == "api"
        for tag, target in sorted(links.targets):
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc:
                if tag != "a" and parts.scheme in ("", "http", "https"):
                    errors.append(f"{name}: loads {target} from the network")
                continue
            goal = path if not parts.path else (path.parent / urllib.parse.unquote(parts.path)).resolve()
            if not goal.is_file():
                errors.append(f"{name}: links to {target}, which is not there")
            elif parts.fragment and goal in found and not is_api and \
                    urllib.parse.unquote(parts.fragment) not in found[goal].anchors:
                errors.append(f"{name}: links to {target}, which has no such anchor")
    return errors if len(found) > 1 else [f"{html}: has no pages"]


def build(root, out):
    shutil.rmtree(out, ignore_errors=True)
    pages, stage = find_pages(root), Stage(root, out / "pages")
    contents = contents_of(root, pages)
    for page in pages:
        stage.add_page(page, contents.get(page, []))
    shutil.copyfile(HERE / "api.md.in", out / "pages/api.md")
    html = out / "html"
    errors = run(["sphinx-build", "-q", "-W", "--keep-going", "-b", "html", "-c", HERE, out / "pages", html])
    shutil.rmtree(html / ".doctrees", ignore_errors=True)
    prototypes = out / "c/NAME.h"
    if error := write_prototypes(root, prototypes):
        return errors + [error]
    errors += run_doxygen(root, out, "dsl", {
        "PROJECT_NAME": '"Kiln: headers of the DSL"', "INPUT": "dsl/include/kiln", "INCLUDE_PATH": "dsl/include",
        "STRIP_FROM_PATH": "dsl/include", "EXTRACT_ALL": "YES", "EXTENSION_MAPPING": "h=C++",
        "INPUT_FILTER": f'"awk -f {HERE}/dsl_rows.awk"'})
    errors += run_doxygen(root, out, "c", {
        "PROJECT_NAME": '"Kiln: C interface"', "INPUT": f'{prototypes} "runtime/include"', "EXTRACT_STATIC": "YES",
        "STRIP_FROM_PATH": f"{out}/c runtime/include", "OPTIMIZE_OUTPUT_FOR_C": "YES",
        "INPUT_FILTER": f'"awk -f {HERE}/c_comments.awk"'})
    return errors + check_links(html.resolve())


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: build.py ROOT OUT")
    for program in ("sphinx-build", "doxygen", "awk"):
        if not shutil.which(program):
            print(f"skipped: there is no {program}")
            return 77
    if subprocess.run(["/usr/bin/python3", "-c", "import myst_parser"], capture_output=True).returncode:
        print("skipped: Python has no myst_parser (package python3-myst-parser)")
        return 77
    out = pathlib.Path(sys.argv[2]).resolve()
    errors = build(pathlib.Path(sys.argv[1]).resolve(), out)
    print("\n".join(errors) if errors else f"{out / 'html/index.html'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
