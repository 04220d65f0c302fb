"""The stream block: sessions of TCP beside the requests."""

SHARE = 10
SHEET = """
stream :
    access_log stream.log told ~80
    log_format told "$status $protocol $bytes_sent $bytes_received $session_upstreams $upstream_addr $one $server_port"
    limit_conn_zone $server_port zone=sessions:1m
    map $server_port $way :
        default 127.0.0.1:9011
        {8090 127.0.0.1:9010|1 2}
    map $upstream_addr $session_upstreams :
        default {some|$protocol}
    map $remote_addr $one :
        default one
    upstream tcp :
        server 127.0.0.1:{9011*3|9010}
        server 127.0.0.1:9011 {backup|down|max_fails=0}
        {least_conn|hash $server_port|random|zone z 64k*5}
    proxy_connect_timeout {1s|2s} ~40
    server :
        listen 8090
        {allow|deny} <where> ~30
        deny all ~8
        limit_conn sessions {1|9} ~20
        proxy_next_upstream {on|off} ~20
        proxy_timeout 1s ~40
        proxy_buffer_size 1 ~10
        proxy_download_rate 100k ~10
        set $set <where> ~20
        {proxy_pass tcp*4|proxy_pass 127.0.0.1:9011*2|proxy_pass $way*2|return "text $server_port $protocol $remote_addr"*2|proxy_pass 127.0.0.1:9010}
"""
