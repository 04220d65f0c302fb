"""The ledger's table in docs/security.md."""
import os
import re

BEGIN, END = "<!-- ledger: begin -->", "<!-- ledger: end -->"
RIGHT, SEEN, MISSED, NOT_RUN = "as it should", "hole seen", "hole not seen", "not run"


def path(here):
    return os.path.join(here, "..", "docs", "security.md")


def weir_column(row):
    if row.absent:
        return f"no attack: {row.weir}"
    prefix = "as it should, near it (the attack is not public)" if row.near else RIGHT
    return f"{prefix}: {row.weir}"


def nginx_column(row, result):
    if row.absent:
        return row.absent
    if row.near:
        return "not built: neither the attack nor the source of the fix is at hand"
    if row.unbuilt:
        return f"not built: {row.unbuilt}"
    return stable(result.nginx) if result else SEEN


def stable(text):
    """The result without bytes and numbers that differ between runs."""
    text = re.sub(r"(:| and) b'.*|: \[.*|: film \d+.*", "", text)
    text = re.sub(r"\b\d+(\.\d+)? (MiB|s of CPU)\b", r"many \2", text)
    return text.replace("|", "\\|")[:200]


def table(results):
    lines = ["| CVE | defect in nginx | versions | nginx, attacked | weir, attacked |", "|---|---|---|---|---|"]
    for result in results:
        row = result.row
        lines.append(f"| {row.cve} | {row.title} | {row.holes} | {nginx_column(row, result)} | {weir_column(row)} |")
    return "\n".join(lines)


def parts(here):
    with open(path(here), encoding="utf-8") as file:
        text = file.read()
    before, found, rest = text.partition(BEGIN + "\n")
    inside, ended, after = rest.partition("\n" + END)
    if not found or not ended:
        raise SystemExit(f"docs/security.md has no {BEGIN} and {END}")
    return before + found, inside, ended + after


def write(here, results):
    before, _, after = parts(here)
    with open(path(here), "w", encoding="utf-8") as file:
        file.write(before + table(results) + after)


def is_current(here, rows):
    """Whether the table has a line for each row, with its texts. The column of nginx is the result of a run."""
    wanted = [(row.cve, row.title, row.holes, weir_column(row)) for row in rows]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in parts(here)[1].splitlines()[2:]]
    return wanted == [(cell[0], cell[1], cell[2], cell[-1]) for cell in cells]
