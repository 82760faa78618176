"""Settings that are JSON tables."""

import pytest

import mrn


def test_env_kwargs_have_json_types():
    config = mrn.Config.of("Pond-v0", env_kwargs={"size": (3, 4)})
    assert config.env_kwargs == {"size": [3, 4]}
    for value in ({1, 2}, float("nan")):
        with pytest.raises(mrn.UserError, match="env_kwargs must be representable as JSON"):
            mrn.Config.of("Pond-v0", env_kwargs={"size": value})
