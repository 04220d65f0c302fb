"""Error pages and internal redirects."""
from family import Family

FAMILIES = [
    Family("error_page", 9, "http server location if", """
        error_page <codes><equals> <page>
        error_page <codes><equals> <page> ~30
        P_intercept_errors on ~50
        recursive_error_pages on ~25
        """, asks="""
        ?o={404|403|500|502|503|401|429} ~50
        """),
    Family("post_action", 1, "location", "post_action {/p/after|/c|/i/a.txt|@n1}"),
    Family("log_subrequest", 2, "http server location", "log_subrequest on"),
]
