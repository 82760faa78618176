"""CITATION.cff: the fields that format 1.2.0 requires, and agreement with the package."""

from pathlib import Path

import yaml

import mrn

FILE = Path(__file__).parents[1] / "CITATION.cff"
PERSON = {"family-names", "given-names"}
ENTITY = {"name"}


def test_citation_is_valid_and_has_the_package_version():
    citation = yaml.safe_load(FILE.read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["cff-version"] == "1.2.0"
    assert citation["type"] == "software"
    assert str(citation["version"]) == mrn.__version__
    assert citation["authors"] == [{"name": "mrn maintainers"}]
    assert all(isinstance(citation[key], str) for key in ("message", "title", "license"))


def test_preferred_citation_is_the_paper():
    paper = yaml.safe_load(FILE.read_text())["preferred-citation"]
    assert {"type", "title", "authors"} <= set(paper)
    assert paper["type"] == "conference-paper"
    assert all(set(author) in (PERSON, ENTITY) for author in paper["authors"])
    assert [author["family-names"] for author in paper["authors"]] == [
        "Liu",
        "Feng",
        "Liu",
        "Stone",
    ]
    assert set(paper["conference"]) >= ENTITY
    assert (paper["year"], type(paper["year"])) == (2023, int)
    for identifier in paper["identifiers"]:
        assert identifier["type"] in ("doi", "url", "swh", "other")
        assert isinstance(identifier["value"], str)
    assert "2208.08133" in paper["url"]
