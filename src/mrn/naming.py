"""Names of files, and of what is compared."""


def safe_name(name: str) -> str:
    """A name that can be a folder's: everything but letters, digits and -_. becomes _."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in name)


def method_name(agent: str, critic: str) -> str:
    """AGENT-CRITIC: what is compared on a task, and the folder of its runs."""
    return safe_name(f"{agent}-{critic}")


def split_method(method: str) -> tuple[str, str]:
    """Agent and critic of a method's name; an agent's name has no dash, a critic's may."""
    agent, _, critic = method.partition("-")
    return agent, critic
