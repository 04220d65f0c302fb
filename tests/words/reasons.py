"""The deliberate differences between weir's words and nginx's, each with its reason."""

import re

# Patterns of whole texts: the kinds, the names, the words; whether nginx takes the case; the reason.
_ROWS = [
    ("once|twice|value", r"degradation|degrade|ssl_ech_file", r".*", True, "weir does not have the module or the function: it names the directive"),
    ("value", r"ssl_protocols|.*_ssl_protocols", r"(SSLv[23]|TLSv1|TLSv1\.1|SSLV[23]|TLSV1|TLSV1\.1)", True, "weir has no TLS before 1.2, and no other version is in the list"),
    ("value", r"ssl_ciphers", r"AES128-SHA|ECDHE-RSA-AES128-SHA256|EDH\+AESGCM", True, "weir has no cipher suites with CBC or without forward secrecy"),
    ("value", r"ssl_ciphers", r"TLS_AES_128_GCM_SHA256", False, "weir reads a suite of TLS 1.3 there as OpenSSL documents it elsewhere: only TLS 1.3 is spoken"),
    ("value", r"ssl_ecdh_curve", r"X448|secp256k1", True, "weir does not have the group"),
    ("value", r"ssl_conf_command", r"VerifyMode Peer", True, "ssl_verify_client says it; to ignore the command would open the server"),
    ("value", r"proxy_ssl_conf_command", r"What a", True, "nginx reads the command only where a location uses TLS; weir names a mistake everywhere"),
    ("value", r"error_log", r"memory:.*", True, "weir keeps no log in memory"),
    ("value", r"listen", r"127\.0\.0\.1:1 multipath", True, "weir does not speak Multipath TCP"),
    ("value", r"listen", r"127\.0\.0\.1", True, "nginx of stream binds a port that the kernel chooses, which no client knows"),
    ("value", r"worker_processes", r"0|1000", True, "weir needs a worker, and has a bound of its own"),
    ("value", r"slice", r"2147483648|9223372036854775807", True, "weir keeps a slice in memory: a slice has a bound"),
    ("value", r"preread_buffer_size|proxy_(buffer_size|downstream_buffer|upstream_buffer)", r"0|2147483648|9223372036854775807", True,
     "a relay of stream needs a buffer, and its size has a bound"),
    ("value", r"user", r"nobody", False, "without a group, weir takes the user's own; nginx wants a group of the user's name"),
    ("value", r"random", r"two least_time=header", False, "a method of NGINX Plus"),
    ("value", r"resolver", r"127\.0\.0\.1 status_zone=z", False, "a parameter of NGINX Plus"),
    ("value", r"zone", r"z", False, "weir's zones need no size"),
    ("value", r"aio", r"threads=a", False, "weir has no pools of threads, so it knows none by name"),
    ("twice", r"thread_pool", r"a threads=1 \| a threads=1", False, "weir has no pools of threads, so no name is taken"),
    ("value", r"(variables|types|proxy_headers)_hash_(bucket|max)_size", r"0|214748364[78]|4294967296|9223372036854775807", False, "weir builds no table of this size, so none is too small or too large"),
    ("value", r"keepalive", r"4294967296", False, "nginx reserves memory for so many connections; weir does not"),
    ("value", r"(fastcgi|proxy|scgi|uwsgi)_buffer_size", r"64k|1[mM]|2147483648|9223372036854775807", False,
     "nginx derives busy_buffers_size from it, which its small default buffers do not hold; weir's buffers hold an answer's head of any size"),
    ("value", r"proxy_buffers", r"2 8k", False, "nginx derives busy_buffers_size from it, which these two buffers do not hold; weir has no such limit of its own"),
]
ROWS = [(re.compile(kind), re.compile(name), re.compile(words), takes, reason) for kind, name, words, takes, reason in _ROWS]


def find(kind, name, block, words, nginx_takes):
    """The reason of the first row that fits a case; `None` if there is none."""
    text = words[1:-1] if words.startswith('"') and words.endswith('"') else words
    for kinds, names, texts, takes, reason in ROWS:
        if kinds.fullmatch(kind) and names.fullmatch(name) and texts.fullmatch(text) and takes == nginx_takes:
            return reason
    return None
