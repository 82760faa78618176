"""The documentation site: examples, shown commands and links."""

import functools
import re
import runpy
import shlex
import sys
from pathlib import Path

import pytest

import mrn
from mrn import cli
from mrn.critics import CRITICS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def run_blocks(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """Execute the Python blocks of a page in order, with one thread and little training."""
    train = mrn.train
    tiny = {"cycles": 1, "gradient_steps": 2, "eval_episodes": 4, "epochs": 1, "threads": 1}
    monkeypatch.setattr(mrn, "train", lambda task, **given: train(task, **given | tiny))
    monkeypatch.chdir(folder)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    assert blocks
    names: dict = {"__name__": "example"}
    for block in blocks:
        exec(block, names)
    return names


@pytest.mark.parametrize("page", ["../README.md", "get-started.md", "zoo.md", "reference/api.md"])
def test_first_examples_run(page, tmp_path, monkeypatch):
    names = run_blocks(page, tmp_path, monkeypatch)
    assert names["agent"].config.task == "FetchReach"


def test_critics_page_lists_every_critic_and_its_example_runs(tmp_path, monkeypatch):
    page = (DOCS / "critics.md").read_text()
    listed = re.findall(r"^\| `([a-z-]+)` \| .+ \| (yes|no).* \|$", page, re.M)
    assert {name for name, _ in listed} == set(CRITICS)
    for name, guarantee in listed:
        critic = mrn.make_critic(name, 25, 4, 3)
        assert getattr(critic, "is_quasimetric", False) is (guarantee == "yes"), name
    q = run_blocks("critics.md", tmp_path, monkeypatch)["q"]
    assert q.shape == (8,)
    assert (q <= 0).all()


SHOWN = [
    (page, line)
    for page in ("../README.md", *sorted(path.name for path in DOCS.glob("*.md")))
    for block in re.findall(r"```bash\n(.*?)```", (DOCS / page).read_text(), re.S)
    for line in block.splitlines()
    if re.match(r"(mrn|torchrun .* -m mrn) ", line)
]


def test_pages_show_commands():
    assert len(SHOWN) > 30


@pytest.mark.parametrize(("page", "line"), SHOWN, ids=[" ".join(shown) for shown in SHOWN])
def test_shown_commands_have_valid_arguments(page, line, monkeypatch):
    """Parse each command line of a page without running it."""
    words = shlex.split(line.partition(" -m ")[2] or line, comments=True)
    arguments = [word for word in words[1:] if word != "--help"]
    called = []
    available = {
        name: functools.wraps(function)(lambda *_, _name=name, **__: called.append(_name))
        for name, function in cli.commands(arguments).items()
    }
    monkeypatch.setattr(cli, "commands", lambda arguments=(): available)
    monkeypatch.setattr("sys.argv", ["mrn", *arguments])
    cli.main()
    assert called == arguments[:1]


def test_readme_stays_short():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 110
    assert len(text.split()) <= 800


@pytest.fixture(scope="module")
def hooks() -> dict:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        return runpy.run_path(str(ROOT / "scripts" / "site_hooks.py"))
    finally:
        sys.path.remove(str(ROOT / "scripts"))


@pytest.mark.parametrize(
    ("page", "link", "repository", "expected"),
    [
        ("docs/toy.md", "[t](theory.md#4-x)", None, "[t](theory.md#4-x)"),
        ("docs/toy.md", "![f](../results/toy/toy.png)", None, "![f](results/toy/toy.png)"),
        (
            "docs/reference/api.md",
            "[r](../../results/README.md)",
            None,
            "[r](../results/README.md)",
        ),
        ("results/README.md", "[toy](../docs/toy.md)", None, "[toy](../toy.md)"),
        ("CONTRIBUTING.md", "[c](CHANGELOG.md)", None, "[c](changelog.md)"),
        ("CHANGELOG.md", "[d](docs/design.md)", None, "[d](design.md)"),
        ("docs/scale.md", "[m](../Makefile)", None, "m"),
        (
            "docs/scale.md",
            "[m](../Makefile)",
            "https://host/x/",
            "[m](https://host/x/blob/main/Makefile)",
        ),
        ("docs/toy.md", "[gone](gone.md)", None, "[gone](gone.md)"),
        ("docs/toy.md", "[a](https://arxiv.org/abs/1)", None, "[a](https://arxiv.org/abs/1)"),
    ],
)
def test_links_of_the_repository_become_links_of_the_site(hooks, page, link, repository, expected):
    translated = hooks["LINK"].sub(lambda found: hooks["translate"](found, page, repository), link)
    assert translated == expected


@pytest.mark.parametrize("path", ["docs/toy.md", "results/README.md", "CHANGELOG.md"])
def test_paths_of_the_site_and_of_the_repository_are_inverse(hooks, path):
    assert hooks["repository_path"](hooks["site_path"](path)) == path
