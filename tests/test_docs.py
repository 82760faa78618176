"""Documentation pages: code blocks, documented defaults and generated tables."""

import re

import mrn
from mrn.algorithms import ALGORITHMS
from mrn.sweeps.space import read_space
from mrn.sweeps.suites import find_suite
from mrn.utils.tables import markdown_table, with_section
from scripts.critic_scale import scale_table as starts_table
from tests.examples.helpers import DOCS, run_blocks


def test_custom_suite_and_published_figures(tmp_path, monkeypatch, capsys):
    text = re.search(r"```toml\n(.*?)```", (DOCS / "sweeps.md").read_text(), re.S)[1]
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("my_package.envs:MyReach-v0", "FetchReach"))
    configs = find_suite(str(file)).configs()
    assert len(configs) == 2 * 3 * 4 * 3 == 72
    name = "learning_rate=0.001+batch_size=256"
    chosen = {"action_penalty": 0.5, "learning_rate": 0.001, "batch_size": 256, "variant": name}
    assert configs[0] == mrn.Config.of("FetchPush", seed=100, epochs=20, **chosen)
    assert configs[12] == mrn.Config.of("FetchReach", seed=100, epochs=5, **chosen)
    assert configs[2].method == "ddpg-mrn+learning_rate=0.002+batch_size=256"
    run_blocks("sweeps.md", DOCS.parent, monkeypatch)
    shown = capsys.readouterr().out
    assert "| FetchPush | MRN | 3 |" in shown
    assert re.search(r"^17 \{1: True, 2: (True|False), ", shown, re.M)


def test_algorithms_page_documents_each_algorithm_and_its_defaults():
    page = (DOCS / "algorithms.md").read_text()
    for name, algorithm in ALGORITHMS.items():
        section = page.partition(f", `{name}`\n")[2].partition("\n## ")[0]
        assert section, name
        for setting, value in re.findall(r"`(\w+)` = (-?[\d.]+)", section):
            assert getattr(algorithm.Settings(), setting) == float(value), setting


def test_differences_page_has_the_current_initial_values():
    page = (DOCS / "differences.md").read_text()
    assert with_section(page, "starts", markdown_table(starts_table())) == page


def test_documented_search_spaces_are_valid(tmp_path):
    text = re.search(r"```toml\n(.*?)```", (DOCS / "tune.md").read_text(), re.S)[1]
    file = tmp_path / "space.toml"
    file.write_text(text)
    space = read_space(file, "FetchPush", "ddpg", "auto", "fast")
    assert list(space.searched) == ["learning_rate", "action_penalty", "batch_size", "critic"]
    assert space.fixed == {"epochs": 8, "hidden_dim": 128}
    example = DOCS.parent / "examples" / "reach_space.toml"
    space = read_space(example, "FetchReach", "ddpg", "auto", "fast")
    assert space.values_in(mrn.Config.of("FetchReach", recipe="fast")) is not None
