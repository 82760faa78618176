"""Text forms of a configuration."""

import pytest

import mrn
from mrn import Config


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"recipe": "fast", "epochs": 3, "batch_size": 64},
        {"algo": "sac", "critic": "iqe", "recipe": "fast", "her_ratio": 0.5, "variant": "a"},
        {"algo": "gcsl", "env_kwargs": {"size": [1, 2]}, "async_envs": True},
    ],
)
def test_repr_recreates_the_configuration(settings):
    config = mrn.Config.of("FetchPush", **settings)
    names = sorted(settings)
    assert sorted(config.changed()) == names
    assert eval(repr(config), {"Config": Config}) == config
    assert all(f"{name}=" in repr(config) for name in names)
    assert "her_ratio" not in repr(mrn.Config.of("FetchPush"))


def test_html_has_all_settings_and_is_escaped():
    html = mrn.Config.of("FetchPush", variant="<b>", batch_size=77)._repr_html_()
    assert ">batch_size</th><td style='text-align: left'>77</td>" in html
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
