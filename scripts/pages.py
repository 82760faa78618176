"""Generated sections of Markdown pages: `python -m scripts.pages` (`make pages`).

Sections lie between the comments `<!-- NAME: begin -->` and `<!-- NAME: end -->`. Their content
comes from the published runs, from stored measurements and from the code. Nothing is measured here.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import precision, ranks, report
from mrn.analysis.tables import markdown
from mrn.utils.errors import UserError, report_errors
from mrn.utils.files import write_atomically
from mrn.utils.tables import Table, markdown_table, with_section
from scripts import processors, recipes, zoo
from scripts.critic_scale import scale_table
from scripts.studies import ROOT, find_studies, read_table, summarize_study

Content = Callable[[], str]
MARK = re.compile(r"<!-- (.+?): begin -->")


def study_sections(study: Path) -> dict[str, Content]:
    """Return the sections of a study's page: its tables, and its own analyses."""
    sections: dict[str, Content] = {
        f"{name} table".strip(): partial(_stripped, summary)
        for name, summary in summarize_study(study).items()
    }
    times = study.parents[1] / "benchmarks" / "results" / "recipe_cycles.json"
    own: dict[str, dict[str, Callable[[], Table | str]]] = {
        "fast-recipe": {
            "solved": lambda: recipes.solved_table(study),
            "levels": lambda: recipes.level_table(study),
            "contributions": lambda: recipes.ablation_table(study),
            "minutes": lambda: recipes.minutes_section(study, _read(times)),
        },
        "fetch-push": {"processors": lambda: processors.processor_table(study)},
        "shadow-hand": {
            "policies": lambda: read_table(study / "policies.json"),
            "goals": lambda: read_table(study / "goals.json"),
        },
        "third-party-envs": {"routes": lambda: read_table(study / "routes.json")},
    }
    for name, make in own.get(study.name, {}).items():
        sections[name] = partial(_as_markdown, make)
    return sections


def _stripped(summary: Any) -> str:
    return markdown(summary).strip()


def _as_markdown(make: Callable[[], Table | str]) -> str:
    content = make()
    return content if isinstance(content, str) else markdown_table(content)


def docs_sections(root: Path) -> dict[tuple[str, str], Content]:
    """Return the sections of the documentation, by page and name."""
    measured = root / "benchmarks" / "results"
    exploration = root / "results" / "fast-recipe" / "exploration.json"
    rank_tables = partial(ranks.tables, _read(measured / "ranks.json"))
    return {
        ("performance", "measured"): lambda: report.measured(_read(measured / "latest.json")),
        ("performance", "solve"): lambda: report.solve_section(_read(measured / "solve.json")),
        ("performance", "precision"): lambda: precision.section(_read(measured / "precision.json")),
        ("scale", "measured"): lambda: markdown_table(rank_tables()["measured"]),
        ("scale", "computed"): lambda: markdown_table(rank_tables()["computed"]),
        ("recipes", "moved"): lambda: markdown_table(read_table(exploration)),
        ("differences", "starts"): lambda: markdown_table(scale_table()),
        ("zoo", "cards"): zoo.cards,
    }


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def generated_sections(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield page, name and content of every generated section.

    Raises:
        UserError: A page has a section that no code generates, or lacks one.
    """
    for study in find_studies(root / "results"):
        page, sections = study / "README.md", study_sections(study)
        for name in MARK.findall(page.read_text(encoding="utf-8")):
            if name not in sections:
                raise UserError(f"{page}: no code generates the section {name!r}")
            yield page, name, sections[name]()
    for (stem, name), content in docs_sections(root).items():
        pages = sorted((root / "docs").glob(f"{stem}.md"))
        found = [page for page in pages if name in MARK.findall(page.read_text(encoding="utf-8"))]
        if not found:
            raise UserError(f"no page docs/{stem}.md has the section {name!r}")
        for page in found:
            yield page, name, content()


def outdated_pages(root: Path) -> dict[Path, str]:
    """Return the new text of all pages whose sections are not up to date."""
    texts: dict[Path, str] = {}
    for page, name, content in generated_sections(root):
        texts[page] = with_section(
            texts.get(page) or page.read_text(encoding="utf-8"), name, content
        )
    return {page: text for page, text in texts.items() if text != page.read_text(encoding="utf-8")}


def update_pages(root: Path) -> None:
    """Write all generated sections."""
    for page, text in outdated_pages(root).items():
        write_atomically(page, text.encode())
        print(f"updated {page.relative_to(root)}")


if __name__ == "__main__":
    with report_errors():
        update_pages(ROOT)
