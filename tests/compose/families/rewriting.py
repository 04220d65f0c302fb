"""The rewrite module and the variables."""
from family import Family

GO = """
        rewrite {^*2|^/(.*)$|^/(.)/(.*)$|^/a/(.*)|txt$|^/p/(.*)} {/b/$1|/p/$1|/e|/p/k?o=html|/c/$1?|/b/a.html?z=$arg_a|/q/$1/x|$uri|http://x.test/$1|/i/a.txt|/x.php}{| last| break| redirect| permanent}
        set {$one|$two} {<variable>|<text>|1|$two}
        set $one $two$1
        return {200|201|403|404|500|418|405|410|401} {t|<text>|""}
        return {403|404|503|204|444|401|410|400}
        return {301|302|307|308} {/b/a.html|http://x.test$request_uri|$uri|/p/?x=$args|rel/x}
        break
"""


def inside(block):
    """The sheet GO as the statements of an `if`, of which few are drawn."""
    return "\n".join(f"    {row.strip()} ~{share}" for row, share in zip(GO.strip().split("\n"), (12, 20, 10, 15, 15, 10, 5))) + "\n" + block


FAMILIES = [
    Family("rewrite", 3, "server location", menu=GO),
    Family("if", 4, "server location", "if <condition> :\n" + inside("")),
    Family("if_location", 4, "location", "if <condition> :\n" + inside("""
            P_pass http://<group> ~15
            add_header X-If <text>{| always} ~30
            expires {1h|-1} ~10
            error_page <codes><equals> <page> ~10
            gzip on ~10
            sub_filter foo bar ~5
            charset utf-8 ~5
            root html/d ~5
            limit_rate 900k ~5
            access_log off ~5
            proxy_set_header X-V <text> ~0
""".replace("\n            ", "\n    "))),
    Family("rewrite_log", 1, "http server location", menu="rewrite_log on\nuninitialized_variable_warn off"),
]
