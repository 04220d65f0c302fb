//! `weir swap`: the request and the line of each difference. One run has many planted changes, and each must be found
//! with its own line.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use needs::{Need, cases};
use serde_json::Value;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const NGINX: &str = "/usr/sbin/nginx";

fn main() -> ExitCode {
    needs::run(cases![
        [] => each_change_is_found_by_weir, origins_see_their_own_names_by_weir, an_address_has_no_file;
        [Need::Root, Need::Program(NGINX)] => each_change_is_found_by_nginx, origins_see_their_own_names_by_nginx, the_line_that_two_programs_read_differently;
    ])
}

/// A changed line: the part that shows it, its request, A's text and B's text. An empty text: the line is not there.
struct Planted(&'static str, &'static str, &'static str, &'static str);

const PLANTED: &[Planted] = &[
    Planted(
        "log $bytes",
        "/header",
        "log_format own '$request $status';",
        "log_format own '$request $status $bytes_sent';",
    ),
    Planted("field content-encoding", "/header", "gzip_types text/css text/x;", "gzip_types text/css;"),
    Planted("field x-a", "/header", "add_header X-A 1;", "add_header X-A 2;"),
    Planted(
        "field location",
        "/rewrite/x",
        "rewrite ^/rewrite/(.*)$ /to/$1 redirect;",
        "rewrite ^/rewrite/(.*)$ /at/$1 redirect;",
    ),
    Planted("field cache-control", "/expires", "expires 1h;", "expires 2h;"),
    Planted("field x-cache", "/cache", "proxy_cache_valid 200 1h;", "proxy_cache_valid 404 1h;"),
    Planted("origin field x-b", "/set", "proxy_set_header X-B 1;", "proxy_set_header X-B 2;"),
    Planted("field set-cookie", "/cookie", "proxy_cookie_path / /a;", ""),
    Planted("status", "/error", "error_page 404 = @found;", "error_page 404 =202 @found;"),
    Planted("status", "/return", "return 403;", "return 402;"),
    Planted("origin request", "/uri/x", "proxy_pass http://app/one/;", "proxy_pass http://app/two/;"),
    Planted("field x-included", "/included", "add_header X-Included 1;", "add_header X-Included 2;"),
    Planted("field x-new", "/new", "", "add_header X-New 1;"),
    Planted("origin field q", "/cgi?a", "fastcgi_param Q 1;", "fastcgi_param Q 2;"),
];

/// The main file. `@N` is the line of the planted change N.
const MAIN: &str = r#"worker_processes 1;
events {}
http {
    @0
    access_log logs/access.log own;
    proxy_cache_path cache keys_zone=c:1m;
    default_type text/x;
    upstream app { server ORIGIN; }
    gzip on;
    gzip_min_length 1;
    gzip_proxied any;
    @1
    server {
        listen 127.0.0.1:18080;
        location /header {
            @2
            return 200 "header\n";
        }
        location /rewrite { @3 }
        location /expires {
            @4
            return 200 "e\n";
        }
        location /cache {
            proxy_cache c;
            @5
            add_header X-Cache $upstream_cache_status;
            proxy_pass http://app;
        }
        location /set {
            @6
            proxy_pass http://ORIGIN;
        }
        location /cookie {
            @7
            proxy_pass http://app;
        }
        location /error {
            @8
            return 404;
        }
        location @found { return 200 "found\n"; }
        location /return {
            @9
        }
        location /uri/ {
            @10
        }
        location /cgi {
            @13
            fastcgi_param REQUEST_METHOD $request_method;
            fastcgi_param REQUEST_URI $request_uri;
            fastcgi_pass unix:CGI;
        }
        include other.conf;
        location /new {
            @12
            return 200 "new\n";
        }
    }
}
"#;

const OTHER: &str = "location /included {\n    @11\n    return 200 \"i\\n\";\n}\n";

/// A folder with the configurations of A and B, and a log.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str, origin: SocketAddr) -> Folder {
        let folder = Folder(std::env::temp_dir().join(format!("weir-test-swap-cause-{}-{name}", std::process::id())));
        for (side, is_b) in [("a", false), ("b", true)] {
            fs::create_dir_all(folder.0.join(side)).unwrap();
            for (file, text) in [("nginx.conf", MAIN), ("other.conf", OTHER)] {
                let text = text.replace("CGI", &folder.0.join("cgi.sock").display().to_string());
                fs::write(folder.0.join(side).join(file), planted(&text, origin, is_b)).unwrap();
            }
        }
        cgi(&folder.0.join("cgi.sock"));
        folder.log(&PLANTED.iter().map(|Planted(_, target, ..)| *target).collect::<Vec<_>>());
        folder
    }

    /// Writes the access log: each target twice, by two clients.
    fn log(&self, targets: &[&str]) {
        let line = |client: &str, target: &str| {
            format!("{client} - - [30/Nov/2026:08:00:00 +0000] \"GET {target} HTTP/1.1\" 200 1 \"-\" \"test\"\n")
        };
        let of = |client| targets.iter().map(move |target| line(client, target)).collect::<String>();
        let text = of("127.0.0.1") + &of("127.0.0.2");
        fs::write(self.0.join("access.log"), text).unwrap();
    }

    fn swap(&self, a: &str, b: &str, more: &[&str]) -> Value {
        let log = self.0.join("access.log");
        let mut command = Command::new(WEIR);
        command
            .current_dir(&self.0)
            .args(["swap", a, b, "--json", "-", "--rate", "500", "--traffic"])
            .arg(log)
            .args(more);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{text}{said}");
        let report = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{said}"));
        schema::valid("swap", &report);
        report
    }
}

fn planted(text: &str, origin: SocketAddr, is_b: bool) -> String {
    let mut text = text.replace("ORIGIN", &origin.to_string());
    // From the last one, because `@1` is in `@12`.
    for (number, Planted(_, _, a, b)) in PLANTED.iter().enumerate().rev() {
        text = text.replace(&format!("@{number}"), if is_b { b } else { a });
    }
    text
}

/// An origin that answers each request with a cookie; it ends with the test's process.
fn origin() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// A FastCGI application at a socket of the file system.
fn cgi(place: &Path) {
    let socket = UnixListener::bind(place).unwrap();
    // nginx's workers have another user.
    fs::set_permissions(place, fs::Permissions::from_mode(0o666)).unwrap();
    std::thread::spawn(move || {
        for stream in socket.incoming().flatten() {
            std::thread::spawn(move || cgi_answer(stream));
        }
    });
}

/// Reads the records up to the empty one that ends the body, and answers.
fn cgi_answer(mut stream: UnixStream) -> Option<()> {
    let mut head = [0; 8];
    while stream.read_exact(&mut head).is_ok() {
        let content = usize::from(u16::from_be_bytes([head[4], head[5]]));
        stream.read_exact(&mut vec![0; content + usize::from(head[6])]).ok()?;
        if head[1] == 5 && content == 0 {
            let text = b"Content-Type: text/x\r\n\r\ncgi\n";
            let stdout = [&[1, 6, 0, 1, 0, u8::try_from(text.len()).ok()?, 0, 0], &text[..]].concat();
            let end = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            return stream.write_all(&[&stdout[..], &end].concat()).ok();
        }
    }
    None
}

fn answer(mut stream: TcpStream) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut line, mut cookie, mut host, mut is_redirect) = (String::new(), "", String::new(), false);
    while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
        if line.starts_with("GET /cookie") {
            cookie = "Set-Cookie: k=v; Path=/\r\n";
        }
        is_redirect |= line.starts_with("GET") && line.contains("redirect");
        if let Some(value) = line.strip_prefix("Host: ") {
            host = value.trim().to_owned();
        }
        line.clear();
    }
    if is_redirect {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: http://{host}/m/to\r\nConnection: close\r\n");
        let _ = stream.write_all((head + "Content-Length: 0\r\n\r\n").as_bytes());
        return;
    }
    let body = "the same body for all requests ".repeat(10);
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n{cookie}X-Host: {host}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes());
    let _ = stream.read(&mut [0]);
}

/// The line of a text in a file, from 1.
fn line_of(file: &Path, text: &str) -> u64 {
    let all = fs::read_to_string(file).unwrap();
    let at = all.lines().position(|line| line.contains(text)).unwrap_or_else(|| panic!("no {text} in {all}"));
    at as u64 + 1
}

/// True if this is the only cause of a difference, and the place is right.
fn is_cause(folder: &Folder, difference: &Value, Planted(_, _, a, b): &Planted) -> bool {
    let (side, text) = if b.is_empty() { ("a", a) } else { ("b", b) };
    let [cause] = difference["causes"].as_array().unwrap().as_slice() else { return false };
    let file = PathBuf::from(cause["file"].as_str().unwrap());
    let shown = text.replace('\'', "\"");
    cause["side"] == side
        && file.starts_with(folder.0.join(side))
        && [shown.as_str(), text].contains(&cause["text"].as_str().unwrap())
        && cause["line"] == line_of(&file, text)
}

fn each_change_is_found(name: &str, binary: &[&str]) {
    let folder = Folder::new(name, origin());
    let report = folder.swap("a/nginx.conf", "b/nginx.conf", binary);
    let differences = report["differences"].as_array().unwrap();
    let mut missing = Vec::new();
    for planted in PLANTED {
        let Planted(part, target, _, text) = planted;
        let shows = |one: &&Value| {
            let is_part = one["part"].as_str().unwrap().starts_with(part);
            is_part && (part.starts_with("log") || one["request"]["target"] == target.trim_end_matches("?a"))
        };
        if !differences.iter().filter(shows).any(|one| is_cause(&folder, one, planted)) {
            missing.push(format!("{part} {text}"));
        }
    }
    let shown: Vec<String> = differences
        .iter()
        .map(|one| format!("{} {}: {} {}", one["part"], one["request"], one["causes"], one["cause_note"]))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}\n{shown:#?}");
    // A hit needs the same request before it, of whichever client; an answer of the server itself needs none.
    let before = |one: &Value| one["request"]["before"].as_array().unwrap().len();
    assert!(differences.iter().any(|one| one["part"] == "field x-cache" && before(one) == 1), "{shown:#?}");
    assert!(differences.iter().all(|one| one["part"] != "status" || before(one) == 0), "{shown:#?}");
}

fn each_change_is_found_by_weir() {
    each_change_is_found("weir", &[]);
}

fn each_change_is_found_by_nginx() {
    each_change_is_found("nginx", &["--binary-a", NGINX, "--binary-b", NGINX]);
}

/// The origins of A and B are at other addresses, and nothing else differs: the origins have to see their own names, and
/// a redirect to that name has to be rewritten as without taps.
fn origins_see_their_own_names(name: &str, binary: &[&str]) {
    let [a, b] = [origin(), origin()];
    let folder = Folder::new(name, a);
    let conf = |origin: SocketAddr| {
        format!(
            "events {{}} http {{ server {{ listen 127.0.0.1:18080; location / {{ proxy_pass http://{origin}; }}\n\
             location /n/ {{ proxy_pass http://{origin}/m/; }} }} }}"
        )
    };
    for (side, origin) in [("a", a), ("b", b)] {
        fs::write(folder.0.join(side).join("nginx.conf"), conf(origin)).unwrap();
    }
    folder.log(&["/", "/n/x", "/redirect", "/n/redirect"]);
    let report = folder.swap("a/nginx.conf", "b/nginx.conf", binary);
    let differences = report["differences"].as_array().unwrap();
    let of = |part: &str| differences.iter().find(|one| one["part"] == part).unwrap_or_else(|| panic!("{report:#}"));
    for part in ["field x-host", "origin field host"] {
        assert_eq!((&of(part)["a"], &of(part)["b"]), (&a.to_string().into(), &b.to_string().into()), "{report:#}");
    }
    assert!(differences.iter().all(|one| one["part"] != "field location"), "{report:#}");
    assert_eq!(report["noise"].as_array().map(Vec::len), Some(0), "{report:#}");
}

fn origins_see_their_own_names_by_weir() {
    origins_see_their_own_names("names-weir", &[]);
}

fn origins_see_their_own_names_by_nginx() {
    origins_see_their_own_names("names-nginx", &["--binary-a", NGINX, "--binary-b", NGINX]);
}

fn an_address_has_no_file() {
    let folder = Folder::new("address", origin());
    folder.log(&["/x"]);
    let [a, b] = [origin(), status_origin()].map(|address| format!("http://{address}"));
    let report = folder.swap(&a, &b, &[]);
    let one = &report["differences"][0];
    assert_eq!((&one["part"], one["causes"].as_array().map(Vec::len)), (&"status".into(), Some(0)), "{report:#}");
    assert!(one["cause_note"].as_str().unwrap().contains("is an address"), "{report:#}");
}

/// An origin that answers 404.
fn status_origin() -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in socket.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.read(&mut [0; 1000]);
        }
    });
    address
}

fn the_line_that_two_programs_read_differently() {
    let folder = Folder::new("programs", origin());
    // weir sends `Age` with an answer of its cache, and nginx does not: weir's own deliberate difference. The version is
    // another one.
    let text = fs::read_to_string(folder.0.join("a/nginx.conf")).unwrap();
    let text = text.replace("return 200 \"e\\n\";", "return 200 $nginx_version;");
    fs::write(folder.0.join("a/nginx.conf"), text).unwrap();
    folder.log(&["/expires"]);
    let report = folder.swap("a/nginx.conf", "a/nginx.conf", &["--binary-a", NGINX]);
    let differences = report["differences"].as_array().unwrap();
    let one = differences.iter().find(|one| one["part"] == "body").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(one["causes"][0]["text"], "return 200 $nginx_version;", "{report:#}");
    assert!(one["cause_note"].as_str().unwrap().contains("programs"), "{report:#}");
}
