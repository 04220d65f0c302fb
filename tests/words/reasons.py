"""The deliberate differences between weir's words and nginx's, each with its reason."""

# (kinds, names, block, words, whether nginx takes it) as patterns of the whole text, and the reason.
ROWS = []


def find(kind, name, block, words, nginx_takes):
    """The first row that fits a case; `None` if there is none."""
