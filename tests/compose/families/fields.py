"""Fields of the answer."""
from family import Family

FAMILIES = [
    Family("add_header", 5, "http server location if", """
        add_header {X-H1|X-H2|Cache-Control|Last-Modified|ETag|Vary|Set-Cookie|Location|X-Q|Content-Type} {<variable>|<text>|1|""}{| always}
        add_header {X-H1|X-H3|Link|Server|Date|Warning|WWW-Authenticate} {<variable>|<text>}{| always} ~50
        add_header_inherit {on|off|merge} ~20
        """),
    Family("add_trailer", 2, "http server location", "add_trailer X-T1 {$upstream_status|<variable>}{| always}\nadd_trailer X-T2 <text> ~30", asks="TE: trailers ~40"),
    Family("expires", 3, "http server location if", "expires {1h|-1|max|epoch|off|0|modified 1h|$pick|1d|@1h}\netag {on|off} ~20\nif_modified_since {exact|before|off} ~20", asks="If-Modified-Since: {Tue, 14 Nov 2023 22:13:20 GMT|Tue, 14 Nov 2028 22:13:20 GMT} ~40\nIf-None-Match: {\"e1\"|*|W/\"e1\"|\"6553f100-4f\"} ~20"),
    Family("range", 3, "http server location", menu="""
        max_ranges {0|1|2}
        P_force_ranges on
        P_cache_max_range_offset {0|10}
        """, asks="Range: {bytes=0-9|bytes=5-|bytes=-7|bytes=0-1,5-9|bytes=99999999-|x|bytes=3-1} ~70\nIf-Range: {\"e1\"|Tue, 14 Nov 2023 22:13:20 GMT|\"x\"} ~25"),
]
