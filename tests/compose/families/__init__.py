"""The families: all tables together."""
from families import access, cache, core, errors, fields, filters, rewriting, upstream

ALL = [family for part in (access, cache, core, errors, fields, filters, rewriting, upstream) for family in part.FAMILIES]
