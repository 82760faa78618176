"""Display names of methods, shared by figures, tables and the report page."""

from collections import Counter
from collections.abc import Iterable

from mrn.recipes import RECIPES
from mrn.utils.naming import NO_CRITIC, Method
from mrn.utils.renames import SETTINGS as RENAMED_SETTINGS

CRITICS = {
    "mrn": "MRN",
    "mrn-sym": "MRN, symmetric only",
    "mrn-asym": "MRN, asymmetric only",
    "mrn-sag": "MRN, SAG",
    "mrn-squared": "MRN, squared",
    "monolithic": "Monolithic",
    "bvn": "BVN",
    "uvfa": "UVFA",
    "dn": "Deep norm",
    "wn": "Wide norm",
    "pqe": "PQE",
    "iqe": "IQE",
    "dn-released": "Deep norm, released",
    "wn-released": "Wide norm, released",
    "pqe-released": "PQE, released",
    "mrn-shared": "MRN, shared encoder",
    "dn-shared": "Deep norm, shared encoder",
    "wn-shared": "Wide norm, shared encoder",
    "pqe-shared": "PQE, shared encoder",
    "iqe-shared": "IQE, shared encoder",
}
SETTINGS = {
    "target_update_interval=0": "slow targets",
    "policy_delay=1": "no policy delay",
    "warmup_episodes=0": "no warmup",
    "redraws=0": "no redraws",
}
"""Grid labels that have a plain name."""


def display_names(methods: Iterable[str]) -> dict[str, str]:
    """Return readable names, for example "MRN, slow targets (fast)" for ddpg-mrn+fast+slow-targets.

    The algorithm is left out if all methods share it and have a critic. Methods whose readable
    names would be equal keep their full names.
    """
    methods = list(methods)
    parsed = {method: Method.parse(method) for method in methods}
    single_algo = len({each.algo for each in parsed.values()}) == 1
    names = {method: _display_name(method, each, single_algo) for method, each in parsed.items()}
    counts = Counter(names.values())
    return {method: name if counts[name] == 1 else method for method, name in names.items()}


def critic_name(critic: str) -> str:
    """Return the readable name of a critic; custom ones are shown as they are."""
    return CRITICS.get(critic, critic)


def _display_name(full: str, method: Method, single_algo: bool) -> str:
    if not method.critic:  # not named ALGO-CRITIC: a CSV from elsewhere
        return full
    algo = method.algo.upper() if method.algo.isidentifier() else method.algo
    if method.critic == NO_CRITIC:
        name = algo
    else:
        name = (
            critic_name(method.critic) if single_algo else f"{algo} + {critic_name(method.critic)}"
        )
    first, _, rest = method.variant.partition("+")
    recipe, variant = (first, rest) if first in RECIPES else ("", method.variant)
    labels = [_variant_label(part) for part in variant.split("+") if part]
    return ", ".join([name, *labels]) + (f" ({recipe})" if recipe else "")


def _variant_label(part: str) -> str:
    """Return the readable form of a variant's name or of a grid label NAME=VALUE."""
    setting, separator, value = part.partition("=")
    if not separator:
        return part.replace("-", " ").replace("_", " ")
    setting = RENAMED_SETTINGS.get(setting, setting)
    label = f"{setting}={value}"
    return SETTINGS.get(label, f"{setting.replace('_', ' ')} {value}")
