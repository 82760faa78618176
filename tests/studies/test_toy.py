"""Tests of the toy example: the paper's claims on means over seeds, and the study itself."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from mrn.critics.base import count_parameters
from mrn.studies.toy import figure as toy_figure
from mrn.studies.toy import report as toy_report
from mrn.studies.toy.models import MODELS, make_model
from mrn.studies.toy.square import shortest_path_length
from mrn.studies.toy.study import (
    Fit,
    Settings,
    constant_error,
    measurement_iterations,
    sample_pairs,
    train,
)
from mrn.utils.errors import UserError
from mrn.utils.tables import markdown_table, with_section

ROOT = Path(__file__).parents[2]
SMALL = Settings(etas=(0.3, 0.7), seeds=(1, 2, 3), test_pairs=500, iterations=10)


@pytest.fixture(scope="module")
def claims() -> dict[str, Fit]:
    """The study's networks and pairs, trained half as long, for the etas of the claims."""
    settings = Settings(etas=(0.1, 0.3, 0.9), iterations=500, test_pairs=2000)
    return {name: train(name, settings) for name in ("mrn", "mrn-sym")}


def test_best_error_of_mrn_falls_as_the_strip_widens(claims):
    narrow, middle, wide = claims["mrn"].best.mean(axis=1)
    assert narrow > 1.5 * middle > 1.5 * wide
    assert wide < 0.01


def test_symmetric_part_alone_is_worse_on_narrow_strips(claims):
    both, symmetric = (claims[name].best.mean(axis=1) for name in ("mrn", "mrn-sym"))
    assert (symmetric[:2] > 1.2 * both[:2]).all()


@pytest.mark.parametrize("name", MODELS)
def test_networks_have_the_same_parameter_count(name):
    monolithic = count_parameters(make_model("monolithic", 64))
    assert monolithic == 4 * 64 + 64 + 2 * (64 * 64 + 64) + 64 + 1
    assert count_parameters(make_model(name, 64)) == pytest.approx(monolithic, rel=0.03)


@pytest.mark.parametrize("name", ["mrn", "iqe", "bvn"])
def test_batched_network_learns_as_if_trained_alone(name):
    together = train(name, SMALL)
    alone = train(name, dataclasses.replace(SMALL, etas=(0.7,), seeds=(2,)))
    assert together.errors[:, 1, 1] == pytest.approx(alone.errors[:, 0, 0], rel=1e-4)
    assert not np.allclose(together.errors[:, 0], together.errors[:, 1])


def test_best_weights_give_the_best_error():
    fit = train("mrn", dataclasses.replace(SMALL, iterations=200, learning_rate=0.01))
    assert (fit.best_iteration < 200).any()  # for some networks the last weights are not the best
    for i, eta in enumerate(SMALL.etas):
        for j, seed in enumerate(SMALL.seeds):
            start, goal = sample_pairs(seed, "toy test", SMALL.test_pairs)
            with torch.no_grad():
                learned = fit.model(eta, seed)(start, goal)
            error = (learned - shortest_path_length(start, goal, eta)).square().mean().item()
            assert error == pytest.approx(fit.best[i, j], rel=1e-4)


def test_training_and_test_pairs_are_disjoint():
    training, test = sample_pairs(100, "toy learn", 20), sample_pairs(100, "toy test", 10_000)
    assert test.shape == (2, 10_000, 2)
    assert torch.cdist(training.flatten(0, 1), test.flatten(0, 1)).min() > 0
    assert torch.equal(training, sample_pairs(100, "toy learn", 50)[:, :20])
    assert not torch.equal(training, sample_pairs(200, "toy learn", 20))


def test_measurement_iterations():
    assert measurement_iterations(10) == (0, 1, 2, 3, 4, 6, 8, 10)
    assert measurement_iterations(0) == (0,)
    assert len(measurement_iterations(1000)) < 30


def test_parts_add_up_to_the_distance():
    model = train("mrn", SMALL).model(0.3, 1)
    start, goal = sample_pairs(1, "toy test", 50)
    with torch.no_grad():
        whole = model(start, goal)
    assert torch.allclose(sum(toy_figure.parts(model, start, goal)), whole)


def test_figures_csv_files_and_tables(tmp_path, monkeypatch):
    fits = [train(name, dataclasses.replace(SMALL, iterations=2)) for name in MODELS]
    monkeypatch.setattr(toy_report, "study", lambda workers: fits)
    monkeypatch.setattr(toy_report, "sensitivity", lambda workers: {"less": [fits[0], fits[4]]})
    monkeypatch.setattr(toy_report, "SENSITIVITY_ETAS", SMALL.etas)
    page = tmp_path / "page.md"
    markers = [
        f"<!-- {name}: {end} -->" for name in ("best", "sensitivity") for end in ("begin", "end")
    ]
    page.write_text("\n".join(["before", *markers, "after"]))
    (columns, rows), _ = toy_report.run(tmp_path / "new" / "toy", True, page)
    assert columns == ("best error", "eta = 0.3", "eta = 0.7")
    best = fits[0].best
    means, spread = best.mean(axis=1), best.std(axis=1, ddof=1) / 3**0.5
    assert rows[0] == ("MRN", *(f"{m:.4f} ± {s:.4f}" for m, s in zip(means, spread, strict=True)))
    constant = np.mean([constant_error(SMALL, 0.3, seed) for seed in (1, 2, 3)])
    assert rows[-1][1].startswith(f"{constant:.4f} ±")
    written = page.read_text()
    assert written.startswith("before")
    assert f"| MRN | {rows[0][1]} | {rows[0][2]} |" in written
    assert f"| less | {means[0]:.4f} | {fits[4].best[0].mean():.4f} |" in written
    files = {path.name: path.read_bytes() for path in (tmp_path / "new" / "toy").iterdir()}
    assert files["toy.png"][:4] == files["parts.png"][:4] == b"\x89PNG"
    assert files["toy.pdf"][:4] == files["parts.pdf"][:4] == b"%PDF"
    assert files["shares.csv"].count(b"\n") == 1 + 2 * 3
    num_measurements = len(measurement_iterations(2))
    assert files["curves.csv"].count(b"\n") == 1 + len(MODELS) * 2 * 3 * num_measurements


def test_missing_matplotlib_is_reported_before_training(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"matplotlib is missing: pip install 'mrn-rl\[report\]'"):
        toy_report.run(tmp_path / "toy")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["best", "sensitivity"])
def test_docs_page_matches_the_results(name):
    make = {"best": toy_report.best_table, "sensitivity": toy_report.sensitivity_table}[name]
    page = (ROOT / "docs" / "toy.md").read_text()
    assert with_section(page, name, markdown_table(make(ROOT / "results" / "toy"))) == page
