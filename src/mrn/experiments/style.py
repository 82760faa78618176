"""How methods look, in figures and on the report's page: one colour and one order for each."""

COLOURS = {
    "mrn": "#0072B2",
    "monolithic": "#555555",
    "bvn": "#E69F00",
    "dn": "#009E73",
    "wn": "#CC79A7",
    "pqe": "#D55E00",
    "iqe": "#56B4E9",
    "uvfa": "#8C6D31",
    "mrn-sym": "#44AA99",
    "mrn-asym": "#AA4499",
    "mrn-sag": "#999933",
    "mrn-squared": "#F0E442",
}
"""Of critics. Those of the paper have the colours of Okabe and Ito, which people who see colours
differently can tell apart."""
_OTHERS = ("#332288", "#117733", "#882255", "#661100", "#6699CC")


def colours(methods: list[str]) -> dict[str, str]:
    """A colour for each method: that of its critic, unless another method has it already."""
    chosen: dict[str, str] = {}
    spare = list(_OTHERS)
    for method in methods:
        colour = COLOURS.get(method.split("-", 1)[-1])
        if colour is None or colour in chosen.values():
            colour = spare.pop(0)
            spare.append(colour)
        chosen[method] = colour
    return chosen


def in_order(methods: set[str]) -> list[str]:
    """Methods as the paper lists them, others after them."""
    rank = {critic: index for index, critic in enumerate(COLOURS)}
    return sorted(methods, key=lambda m: (rank.get(m.split("-", 1)[-1], len(rank)), m))
