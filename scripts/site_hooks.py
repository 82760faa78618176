"""MkDocs hooks: pages from outside docs/, links that also work on GitHub, generated reference.

The repository keeps results/, CONTRIBUTING.md and CHANGELOG.md outside docs/. The site includes
them. Links in Markdown files are relative to the repository, as GitHub needs them, and translated
here.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from site_reference import commands_page, settings_page

ROOT = Path(__file__).resolve().parents[1]
TOP_LEVEL = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Top-level files of the repository and their paths in the site."""
RESULT_FILES = ("*.md", "*.png")
"""Files of results/ that the site shows; table.md repeats what a README contains."""
GENERATED = {"reference/cli.md": commands_page, "reference/configuration.md": settings_page}
"""Pages whose last part is generated from the code."""
LINK = re.compile(r"\[([^\]]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and figures that live outside docs/."""
    found = [
        path
        for pattern in RESULT_FILES
        for path in sorted((ROOT / "results").rglob(pattern))
        if path.name != "table.md"
    ]
    for path in [*(ROOT / name for name in TOP_LEVEL), *found]:
        source = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, site_path(source) or source, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Translate links, and append the generated part of reference pages."""
    if generate := GENERATED.get(page.file.src_uri):
        markdown += "\n" + generate()
    source = repository_path(page.file.src_uri)
    return LINK.sub(lambda link: translate(link, source, config.repo_url), markdown)


def translate(link: re.Match[str], source: str, repo_url: str | None) -> str:
    """Return a Markdown link for the site.

    Args:
        link: A relative link; its groups are text, path and anchor.
        source: Path of the page in the repository.
        repo_url: Address of the repository. Files outside the site link to it.
    """
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
    if not (ROOT / target).exists():
        return link[0]  # MkDocs reports it
    here, there = site_path(source) or source, site_path(target)
    if there is None:
        base = (repo_url or "").rstrip("/")
        return f"[{link[1]}]({base}/blob/main/{target})" if base else link[1]
    path = posixpath.relpath(there, posixpath.dirname(here))
    return f"[{link[1]}]({path}{link[3] or ''})"


def site_path(path: str) -> str | None:
    """Return the path in the site of a file of the repository, None if the site lacks it."""
    if path in TOP_LEVEL:
        return TOP_LEVEL[path]
    if path == "README.md":
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path.startswith("results/") and path.endswith((".md", ".png")):
        return path
    return None


def repository_path(src_uri: str) -> str:
    """Return the path in the repository of a page of the site."""
    if src_uri in TOP_LEVEL.values():
        return src_uri.upper().replace(".MD", ".md")
    return src_uri if src_uri.startswith("results/") else f"docs/{src_uri}"
