"""The deliberate differences between weir's words and nginx's, each with its reason."""

import re

# Patterns of whole texts: the kinds, the names, the words; whether nginx takes the case; the reason.
_ROWS = [
    ("value", r".*", r"\d+[yM].*", False, "weir takes years and months in every time; nginx in those that it reads in seconds"),
    ("value", r".*", r"\d+ms", False, "weir takes milliseconds in every time"),
    ("value", r".*", r"\d+[gG]|.*[ =:]10g\b.*", False, "weir takes gigabytes in every size; nginx only in offsets of files"),
    ("value", r".*", r"9223372036854775808|18446744073709551616", True, "no machine has such a size"),
    ("once|twice|value|count", r"degradation|degrade|ssl_ech_file", r".*", True, "weir does not have the module or the function: it names the directive"),
    ("value", r"ssl_protocols|.*_ssl_protocols", r"(SSLv[23]|TLSv1|TLSv1\.1)( .*)?", True, "weir has no TLS before 1.2"),
    ("value", r"ssl_ciphers", r"AES128-SHA|ECDHE-RSA-AES128-SHA256|EDH\+AESGCM", True, "weir has no cipher suites with CBC or without forward secrecy"),
    ("value", r"ssl_ciphers", r"TLS_AES_128_GCM_SHA256", False, "weir reads a suite of TLS 1.3 there as OpenSSL documents it elsewhere: only TLS 1.3 is spoken"),
    ("value", r"ssl_ecdh_curve", r"X448|secp256k1", True, "weir does not have the group"),
    ("value", r"ssl_conf_command", r"VerifyMode Peer", True, "ssl_verify_client says it; to ignore the command would open the server"),
    ("value", r".*_ssl_conf_command", r".*", True, "nginx reads the command only where a location uses TLS"),
    ("value", r"error_log", r"memory:.*", True, "weir keeps no log in memory"),
    ("value", r"listen", r"127\.0\.0\.1:1 multipath", True, "weir does not speak Multipath TCP"),
    ("value", r"listen", r"127\.0\.0\.1:1 quic( ssl)?", False, "weir accepts the listener without effect; nginx wants its certificate"),
    ("value", r"listen", r"127\.0\.0\.1", True, "nginx of stream binds a port of its choice"),
    ("value", r"worker_processes", r"0|1000", True, "weir has a bound of its own, and needs a worker"),
    ("value", r"slice", r".*", True, "weir keeps a slice in memory: a slice has a bound"),
    ("value", r"preread_buffer_size|proxy_(buffer_size|downstream_buffer|upstream_buffer)", r"0", True, "a relay needs a buffer"),
    ("value", r"user", r"nobody", False, "weir looks a group up only when it starts"),
    ("value", r"random", r"two least_time=header", False, "a method of NGINX Plus"),
    ("value", r"resolver", r"127\.0\.0\.1 status_zone=z", False, "a parameter of NGINX Plus"),
    ("value", r"zone", r"z", False, "weir's zones need no size"),
    # Directives without effect read their value loosely, because no value has an effect.
    ("value", r"(connection|request)_pool_size|directio_alignment|gzip_hash|gzip_no_buffer|postpone_gzipping|(fastcgi|proxy|scgi|uwsgi)_(busy_buffers_size|"
     r"temp_file_write_size|max_temp_file_size|send_lowat|buffers?|buffer_size)|tunnel_send_lowat|send_lowat|http2_streams_index_size|open_file_cache.*|aio|aio_write|"
     r"output_buffers|.*_hash_(max|bucket)_size|thread_pool|client_body_in_single_buffer|msie_padding|directio|large_client_header_buffers|epoll_events|"
     r"read_ahead|ssl_buffer_size|http2_.*|ssi_.*|subrequest_output_buffer_size|timer_resolution|worker_aio_requests|quic_.*|http3_.*", r".*", False,
     "the directive has no effect in weir, so weir does not judge each value"),
    ("twice", r"thread_pool", r".*", False, "the directive has no effect in weir"),
    ("value", r"proxy_temp_path", r"a [0x]", False, "weir makes no levels of directories"),
    ("value", r"keepalive", r"4294967296", False, "weir bounds the number itself"),
]
ROWS = [(re.compile(kind), re.compile(name), re.compile(words), takes, reason) for kind, name, words, takes, reason in _ROWS]


def find(kind, name, block, words, nginx_takes):
    """The reason of the first row that fits a case; `None` if there is none."""
    text = words[1:-1] if words.startswith('"') and words.endswith('"') else words
    for kinds, names, texts, takes, reason in ROWS:
        if kinds.fullmatch(kind) and names.fullmatch(name) and texts.fullmatch(text) and takes == nginx_takes:
            return reason
    return None
