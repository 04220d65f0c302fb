//! The targets of configurations (`fuzz/README.md`).

#![allow(clippy::panic)]

#[path = "mutate/oracle.rs"]
mod oracle;

use weir_edge::family::ALL;
use weir_mutate::{Random, generate, mutate};

const SEEDS: &[&str] = &[
    "events { }",
    "worker_processes 2; events { worker_connections 64; }\nhttp {\n  server { listen 127.0.0.1:8080 backlog=5; return 204; }\n}",
    "events { } http { upstream u { zone u 64k; least_conn; server 127.0.0.1:1 weight=2 max_fails=0; server unix:/a backup;
      keepalive 4; } server { server_name a.b *.c ~^(?<n>x+)$; location / { proxy_pass http://u/$n; proxy_set_header A $http_b; } } }",
    "events { } http { map $args $m { default 1; ~^a(b) $1; x.* 'two words'; include a.conf; } log_format l '$m \"$request\"';
      access_log off; server { location ~ \\.(php|html)$ { root /r; try_files $uri $uri/ @n; } location @n { return 404 $m; } } }",
    "events { } http { geo $g { default 0; 10.0.0.0/8 1; 192.0.2.1 2; } limit_req_zone $g zone=z:1m rate=2r/s;
      limit_conn_zone $binary_remote_addr zone=c:1m; server { listen [::1]:80 proxy_protocol; set_real_ip_from unix:;
      location = /a { limit_req zone=z burst=3 nodelay; limit_conn c 1; allow 10.0.0.0/8; deny all; satisfy any; } } }",
    "events { } http { gzip on; gzip_types text/plain; types { text/html html htm; } server { error_page 404 =200 /e;
      if ($host ~* ^(.*)\\.x$) { rewrite ^/(.*)$ /$1?a=$2 last; } set $v \"a${host}b\"; add_header X $v always; expires 1d;
      location ^~ /i/ { alias /j/; internal; limit_except GET { deny all; } } } }",
];

/// What a mutation inserts besides names of directives.
const WORDS: &[&str] = &[
    "{",
    "}",
    ";",
    " ",
    "\n",
    "\"",
    "'",
    "\\",
    "#",
    "$",
    "${",
    "$1",
    "~",
    "~*",
    "@",
    "=",
    "!",
    "*",
    "/",
    ":",
    "-",
    "on",
    "off",
    "default",
    "0",
    "1",
    "-1",
    "99999999999999999999",
    "1m",
    "1k",
    "10y",
    "1r/s",
    "text/html",
    "http://u/",
    "http://[::1]:1/",
    "unix:/s",
    "127.0.0.1:80",
    "[::1]",
    "1-65536",
    "8000-8003",
    "10.0.0.0/33",
    "localhost",
    "nothing",
    "zone=z:1m",
    "zone=z:9999999999g",
    "a=b",
    "$args",
    "$http_",
    "$nobody",
    "(",
    ")",
    "(?<n>.)",
    "[",
    "\\d+",
    "%00",
    "é",
    "\0",
    "\u{feff}",
    "include a.conf;",
    "include *;",
    "server { ",
    "location / { ",
    "if ($args) { ",
    "http { ",
    "events { }",
    "upstream u { ",
];

#[test]
fn changed_configurations() {
    mutate(SEEDS, &words(), oracle::configuration);
}

#[test]
fn strings_of_words() {
    let words = words();
    let make = |random: &mut Random| {
        let words: Vec<&str> = (0..random.below(24)).filter_map(|_| random.pick(&words).copied()).collect();
        words.join(if random.below(3) == 0 { "" } else { " " }).into_bytes()
    };
    generate(make, oracle::configuration);
}

/// Every directive in every kind of block, with arguments that are right for others.
#[test]
fn every_directive_with_any_arguments() {
    let names = directive_names();
    // A word that leaves the statement whole.
    let whole = |word: &&str| !word.contains(['{', '}', ';', '"', '\'', '\\', '#', '\n']);
    let arguments: Vec<&str> = WORDS.iter().copied().filter(whole).collect();
    let make = |random: &mut Random| {
        let mut statements = String::new();
        for _ in 0..4 {
            statements.push_str(random.pick(&names).copied().unwrap_or_default());
            for _ in 0..random.below(4) {
                statements.push(' ');
                statements.push_str(random.pick(&arguments).copied().unwrap_or_default());
            }
            let ends = [";", ";", ";", " { }", " { a 1; default 2; }"];
            statements.push_str(random.pick(&ends).copied().unwrap_or_default());
        }
        let around = [
            "@ events { } http { server { } }",
            "events { @ }",
            "events { } http { @ server { } }",
            "events { } http { server { @ } }",
            "events { } http { server { location /a/ { @ } } }",
            "events { } http { server { location ~ (a) { if ($args) { @ } } } }",
            "events { } http { upstream u { server 127.0.0.1:1; @ } server { location / { proxy_pass http://u; } } }",
            "events { } http { server { location / { limit_except GET { @ } } } }",
        ];
        random.pick(&around).copied().unwrap_or_default().replace('@', &statements).into_bytes()
    };
    generate(make, oracle::configuration);
}

fn directive_names() -> Vec<&'static str> {
    ALL.all.iter().flat_map(|family| family.directives).map(|directive| directive.name).collect()
}

/// Two in three are of [`WORDS`].
fn words() -> Vec<&'static str> {
    let names = directive_names();
    let times = 2 * names.len() / WORDS.len();
    WORDS.iter().copied().cycle().take(times * WORDS.len()).chain(names).collect()
}
