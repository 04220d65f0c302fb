//! A bounded fuzzer of configurations for every CI run: seeds, a deterministic generator, and the properties of
//! `config_fuzz/oracle.rs`. `WEIR_FUZZ_ROUNDS` sets the rounds per test, `WEIR_FUZZ_SEED` another beginning;
//! a failure prints its input.

#![allow(clippy::panic)]

#[path = "config_fuzz/oracle.rs"]
mod oracle;

use std::panic::{AssertUnwindSafe, catch_unwind};

use weir_edge::family::FAMILIES;

/// Rounds per test unless asked for more; a second or two in a debug build.
const ROUNDS: u64 = 1_500;

/// Longest input the mutations grow to.
const INPUT_BYTES_MAX: usize = 2_048;

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
    let check = |random: &mut Random| {
        let mut input = random.choose(SEEDS).as_bytes().to_vec();
        for _ in 0..=random.below(6) {
            random.change(&mut input);
        }
        input.truncate(INPUT_BYTES_MAX);
        input
    };
    for seed in SEEDS {
        oracle::configuration(seed.as_bytes());
    }
    fuzz(ROUNDS, check);
}

#[test]
fn strings_of_words() {
    fuzz(ROUNDS, |random| {
        let words = (0..random.below(24)).map(|_| random.word()).collect::<Vec<_>>();
        words.join(if random.below(3) == 0 { "" } else { " " }).into_bytes()
    });
}

/// Every directive in every kind of block, with arguments that are right for others.
#[test]
fn every_directive_with_any_arguments() {
    let names = directive_names();
    fuzz(ROUNDS.max(4 * names.len() as u64), |random| {
        let mut statements = String::new();
        for _ in 0..4 {
            statements.push_str(names.get(random.below(names.len())).copied().unwrap_or_default());
            for _ in 0..random.below(4) {
                statements.push(' ');
                statements.push_str(random.argument());
            }
            statements.push_str(random.choose(&[";", ";", ";", " { }", " { a 1; default 2; }"]));
        }
        let around = random.choose(&[
            "@ events { } http { server { } }",
            "events { @ }",
            "events { } http { @ server { } }",
            "events { } http { server { @ } }",
            "events { } http { server { location /a/ { @ } } }",
            "events { } http { server { location ~ (a) { if ($args) { @ } } } }",
            "events { } http { upstream u { server 127.0.0.1:1; @ } server { location / { proxy_pass http://u; } } }",
            "events { } http { server { location / { limit_except GET { @ } } } }",
        ]);
        around.replace('@', &statements).into_bytes()
    });
}

fn directive_names() -> Vec<&'static str> {
    FAMILIES.iter().flat_map(|family| family.directives).map(|directive| directive.name).collect()
}

fn fuzz(rounds: u64, make: impl Fn(&mut Random) -> Vec<u8>) {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let mut random = Random(number("WEIR_FUZZ_SEED").unwrap_or(0x5eed));
    for round in 0..number("WEIR_FUZZ_ROUNDS").unwrap_or(rounds) {
        let input = make(&mut random);
        if catch_unwind(AssertUnwindSafe(|| oracle::configuration(&input))).is_err() {
            panic!("round {round}: {}", input.escape_ascii());
        }
    }
}

/// SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn choose<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let index = self.below(from.len());
        from.get(index).copied().unwrap_or_default()
    }

    fn word(&mut self) -> &'static str {
        if self.below(3) == 0 {
            let names = directive_names();
            return names.get(self.below(names.len())).copied().unwrap_or_default();
        }
        self.choose(WORDS)
    }

    /// A word that leaves the statement whole.
    fn argument(&mut self) -> &'static str {
        let whole = |word: &&str| !word.contains(['{', '}', ';', '"', '\'', '\\', '#', '\n']);
        let words: Vec<&'static str> = WORDS.iter().copied().filter(whole).collect();
        self.choose(&words)
    }

    /// One change: a bit, a word, a cut, a repetition, or a piece of a seed.
    fn change(&mut self, input: &mut Vec<u8>) {
        let from = self.below(input.len() + 1);
        let to = (from + self.below(24)).min(input.len());
        match self.below(6) {
            0 => {
                if let Some(byte) = input.get_mut(from) {
                    *byte ^= 1 << (self.next() % 8);
                }
            }
            1 => drop(input.splice(from..from, self.word().bytes())),
            2 => drop(input.splice(from..to, self.word().bytes())),
            3 => drop(input.drain(from..to)),
            4 => {
                let piece = input.get(from..to).unwrap_or_default().to_vec();
                drop(input.splice(to..to, piece));
            }
            _ => {
                let other = self.choose(SEEDS).as_bytes();
                let start = self.below(other.len());
                let end = (start + self.below(80)).min(other.len());
                let piece = other.get(start..end).unwrap_or_default().to_vec();
                drop(input.splice(from..from, piece));
            }
        }
    }
}
