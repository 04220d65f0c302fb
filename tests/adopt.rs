//! `weir adopt` from outside, with Debian's nginx: each test has namespaces of its own, so that it sees only the nginx
//! processes that it started.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "support/needs.rs"]
mod needs;
#[path = "support/schema.rs"]
mod schema;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use needs::{Need, cases};
use serde_json::{Value, json};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ALL: [Need; 4] =
    [Need::Namespaces, Need::Program("curl"), Need::Program("openssl"), Need::Program("/usr/sbin/nginx")];

fn main() -> ExitCode {
    needs::run(cases![
        ALL => a_plain_site_gives_the_same_answers_and_nothing_of_it_changes, debian_s_own_files_are_ready,
            origins_are_asked_within_bounds_and_mirrors_are_not, servers_behind_tls_are_asked_by_name,
            a_refusal_has_its_place_and_remedy, a_difference_has_its_place,
            a_cached_page_that_changes_with_each_fill_is_not_compared, rights_that_are_missing_are_named,
            a_file_that_changed_since_nginx_read_it_is_named,
            without_nginx_the_installed_one_is_read, several_nginx_have_to_be_told_apart,
            an_nginx_in_a_container_is_looked_at_from_inside, logs_of_any_kind_do_no_harm, a_recording_takes_the_place_of_logs, a_run_that_is_ended_leaves_nothing, wrong_words_are_refused;
        [] => the_guide_s_example_is_still_true;
    ])
}

/// A site in a folder of its own.
struct Site(PathBuf);

impl Drop for Site {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The result of a script: its output, and the exit code of the last command.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Ran {
    fn json(&self) -> Value {
        let json = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err));
        schema::valid("adopt", &json);
        json
    }
}

impl Site {
    fn new(name: &str, http: &str) -> Site {
        let dir = std::env::temp_dir().join(format!("weir-test-adopt-{}-{name}", std::process::id()));
        for folder in ["html/dir", "logs"] {
            fs::create_dir_all(dir.join(folder)).unwrap();
        }
        let site = Site(dir);
        site.file("html/index.html", "hello\n");
        site.file("html/dir/index.html", "in a directory\n");
        site.file("nginx.conf", &conf(http));
        site
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_default()
    }

    /// Runs a script in namespaces of its own; everything that it starts ends with it. `$nginx` starts nginx with this
    /// site, `$ask` is curl, `$weir` is `weir adopt`.
    fn run(&self, script: &str) -> Ran {
        let prelude = format!(
            "ip link set lo up; cd {dir}; nginx='/usr/sbin/nginx -p {dir}/ -c nginx.conf'; ask='curl -s -o /dev/null --max-time 5'; weir='{WEIR} adopt'; export TMPDIR={dir}/room; mkdir -p room; chmod 711 room;",
            dir = self.0.display()
        );
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c"]);
        command.arg(format!("{prelude}\n{script}")).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ran { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// The names of all files, with their sizes, except logs.
    fn files(&self) -> Vec<(String, u64)> {
        let mut all = Vec::new();
        let mut left = vec![self.0.clone()];
        while let Some(folder) = left.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    left.push(path.clone());
                }
                if !path.starts_with(self.0.join("logs")) {
                    all.push((
                        path.display().to_string(),
                        if path.is_dir() { 0 } else { entry.metadata().unwrap().len() },
                    ));
                }
            }
        }
        all.sort();
        all
    }
}

fn conf(http: &str) -> String {
    format!(
        "worker_processes 1;\npid logs/nginx.pid;\nerror_log logs/error.log;\nevents {{ }}\nhttp {{\n    include /etc/nginx/mime.types;\n    access_log logs/access.log;\n{http}\n}}\n"
    )
}

/// A container: a root of its own with the machine's programs, without weir. `$box` is its root as the machine sees it.
const CONTAINER: &str = r#"
box=$PWD/box; mkdir $box; mount -t tmpfs box $box; cd $box
mkdir -p usr dev proc tmp mnt run site old etc/nginx var/log/nginx var/lib/nginx
for name in bin sbin lib lib64; do ln -s usr/$name $name; done
mount --bind /usr usr; mount --bind /dev dev; cp /etc/passwd /etc/group etc; echo hello > site/index.html
echo 'events { } http { access_log off; server { listen 127.0.0.1:8080; root /site; location /api { return 200 api; } } }' > etc/nginx/nginx.conf
unshare --mount --pid --fork --kill-child bash -c 'pivot_root . old && mount -t proc proc /proc && umount -l /old && exec nginx -g "daemon off;"' > /dev/null 2>&1 &
for i in $(seq 100); do $ask http://127.0.0.1:8080/ && break; sleep 0.05; done
"#;

fn an_nginx_in_a_container_is_looked_at_from_inside() {
    let site = Site::new("container", "");
    let ran = site.run(&format!("{CONTAINER}\n$weir --json; code=$?; ls $box/mnt >&2; exit $code"));
    let page = ran.json();
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert_eq!((&page["comparison"]["asked"], &page["comparison"]["differ"]), (&json!(2), &json!(0)), "{page:#}");
    assert_eq!(page["ways"][0]["name"], json!("image"));
    let shown = ran.err.lines().last().unwrap_or_default();
    assert!(shown.contains("requests a second"), "the directory that weir used is empty again: {}", ran.err);
    // Nobody may look into it without root's rights.
    let script =
        format!("{CONTAINER}\nsetpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all {WEIR} adopt");
    let ran = site.run(&script.replace("$PWD/box", "$PWD/box2"));
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("Run weir adopt as root of the machine"), "{}", ran.err);
}

/// Asks for paths, so that the log has them.
fn asks(base: &str, paths: &[&str]) -> String {
    paths.iter().map(|path| format!("$ask '{base}{path}'\n")).collect()
}

fn a_plain_site_gives_the_same_answers_and_nothing_of_it_changes() {
    let site = Site::new(
        "plain",
        "    server {
        listen 127.0.0.1:8080;
        server_name a.test;
        root html;
        location / { }
        location /old/ { return 301 /new/; }
        location /id { add_header X-Id $request_id; return 200 \"$request_id\"; }
        location /listed/ { alias html/; autoindex on; index none; }
        location /gone { return 444; }
    }",
    );
    let paths =
        ["/", "/dir", "/dir/", "/old/x", "/id", "/none", "/listed/", "/gone", "/?a=%20b", "/logout", "/dir/%2e%2e/"];
    let before = site.run(&format!("$nginx; {} exit", asks("http://127.0.0.1:8080", &paths)));
    assert_eq!(before.code, Some(0), "{}", before.err);
    let (files, log) = (site.files(), site.text("logs/access.log"));
    let ran = site.run("$nginx && $weir --json --rate 200");
    let run = ran.json();
    assert_eq!((ran.code, &run["ready"]), (Some(0), &json!(true)), "{}{}", ran.out, ran.err);
    assert_eq!((&run["comparison"]["asked"], &run["comparison"]["differ"]), (&json!(10), &json!(0)), "{}", ran.out);
    let answers = run["comparison"]["answers"].as_array().unwrap();
    let of = |url: &str| answers.iter().find(|one| one["url"].as_str().unwrap().ends_with(url)).unwrap();
    assert_eq!((&of("/gone")["status"], &of("/dir")["status"]), (&json!(0), &json!(301)));
    assert_eq!(of("/id")["noise"], json!(["body", "field x-id"]));
    assert!(of("/old/x")["place"].as_str().unwrap().ends_with("nginx.conf:13 location /old/"), "{}", of("/old/x"));
    let sources = run["comparison"]["sources"].to_string();
    assert!(sources.contains("announce an action: 1 (--ask-all"), "{sources}");
    // Only the log of nginx grew, by weir's own requests.
    assert_eq!(site.files(), files);
    let after = site.text("logs/access.log");
    let own = after.strip_prefix(&log).unwrap();
    assert_eq!((own.lines().count(), own.matches("weir-adopt/").count()), (20, 20), "{own}");
    // They are no URLs of clients.
    let again = site.run("$nginx && $weir --json --rate 500 --ask-all --skip /dir").json();
    assert_eq!(again["comparison"]["asked"], json!(8), "{again:#}");
    let page = site.run("$nginx && $weir --rate 500 --lang ko");
    assert!(page.out.contains("준비됨") && page.out.contains("-s quit"), "{}", page.out);
}

fn debian_s_own_files_are_ready() {
    let site = Site::new("debian", "");
    let own = "mount -t tmpfs x /var/log/nginx; mount -t tmpfs x /run; mount -t tmpfs x /var/www; mkdir -p /var/www/html; echo hi > /var/www/html/index.html;";
    let script = format!(
        "{own} /usr/sbin/nginx -g 'daemon on; master_process on;'; {} ls -R /var/lib/nginx /run > before; $weir; code=$?; ls -R /var/lib/nginx /run | diff before - && exit $code",
        asks("http://127.0.0.1", &["/", "/none", "/index.html"]) + &asks("http://[::1]", &["/"])
    );
    let ran = site.run(&script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for expected in [
        "command                 /usr/sbin/nginx -g 'daemon on; master_process on;'",
        "listens on              0.0.0.0:80, [::]:80",
        "weir refuses nothing of this configuration",
        "Answers: 0 of 6 differ",
        "apt remove weir-nginx",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
}

fn origins_are_asked_within_bounds_and_mirrors_are_not() {
    let http = "    log_format own '$host \"$request\" $status';
    proxy_cache_path cache keys_zone=c:1m;
    server {
        listen 127.0.0.1:8080;
        access_log logs/own.log own;
        location / { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; mirror /copy; }
        location /kept { proxy_pass http://127.0.0.1:3000; proxy_cache c; proxy_cache_valid 1h; add_header X-Cache $upstream_cache_status; }
        location /copy { internal; proxy_pass http://127.0.0.1:3001; }
    }";
    let site = Site::new("origin", http);
    let origin = |port: u16| format!("{WEIR} origin --listen 127.0.0.1:{port} > origin-{port}.txt 2>&1 &\n");
    let script = format!(
        "{}{} sleep 0.5; $nginx; {} curl -s -o /dev/null -X POST -d x http://127.0.0.1:8080/posted; $weir --json --rate 100 --urls 6",
        origin(3000),
        origin(3001),
        asks(
            "http://127.0.0.1:8080",
            &["/1k", "/kept/1k", "/kept/1k", "/?status=404", "/?delay=10ms", "/2k", "/3k", "/4k"]
        )
    );
    let ran = site.run(&script);
    let run = ran.json();
    assert_eq!((ran.code, &run["comparison"]["differ"]), (Some(0), &json!(0)), "{}{}", ran.out, ran.err);
    assert_eq!(run["comparison"]["asked"], json!(6), "the bound on URLs holds: {}", ran.out);
    let answers = run["comparison"]["answers"].as_array().unwrap();
    assert!(answers.iter().all(|one| !one["url"].as_str().unwrap().contains("posted")), "{}", ran.out);
    let kept = answers.iter().find(|one| one["url"].as_str().unwrap().contains("/kept/")).unwrap();
    assert_eq!((&kept["status"], &kept["differences"]), (&json!(200), &json!([])), "weir's cache fills first: {kept}");
    assert_eq!(kept["explained"], json!(["ranges and conditions of a cache"]), "{kept}");
    assert!(run["comparison"]["sources"].to_string().contains("neither GET nor HEAD: 1"), "{}", ran.out);
}

fn servers_behind_tls_are_asked_by_name() {
    let server = |name: &str, more: &str| {
        format!(
            "    server {{ listen 127.0.0.1:8443 ssl{more}; server_name {name}; ssl_certificate {name}.pem; ssl_certificate_key {name}.key; location / {{ return 200 \"$ssl_server_name $server_name $scheme $server_port\"; }} }}\n"
        )
    };
    let site = Site::new(
        "tls",
        &(server("a.test", "")
            + &server("b.test", "")
            + "    server { listen 127.0.0.1:8080; server_name a.test; return 301 https://$host$request_uri; }\n"),
    );
    let pair = |name: &str| {
        format!(
            "openssl req -x509 -newkey rsa:2048 -nodes -days 3 -subj /CN={name} -keyout {name}.key -out {name}.pem 2> /dev/null; chmod 600 {name}.key\n"
        )
    };
    let script = format!(
        "{}{} $nginx; $ask -k --resolve b.test:8443:127.0.0.1 https://b.test:8443/x; $ask http://127.0.0.1:8080/y; $weir --json --rate 100",
        pair("a.test"),
        pair("b.test")
    );
    let ran = site.run(&script);
    let run = ran.json();
    assert_eq!((ran.code, &run["comparison"]["differ"]), (Some(0), &json!(0)), "{}{}", ran.out, ran.err);
    let urls: Vec<&str> =
        run["comparison"]["answers"].as_array().unwrap().iter().map(|one| one["url"].as_str().unwrap()).collect();
    // The log has no host, so each server that writes it gets each URL.
    for expected in ["GET https://a.test:8443/x", "GET https://b.test:8443/y", "GET http://a.test:8080/x"] {
        assert!(urls.contains(&expected), "{urls:?}");
    }
}

fn a_refusal_has_its_place_and_remedy() {
    let site = Site::new(
        "refused",
        "    server { listen 127.0.0.1:8080; proxy_ssl_conf_command Options y;\n location /a { proxy_ssl_conf_command Options x; } }",
    );
    let ran = site.run("$nginx && $weir");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    for expected in [
        "weir refuses this configuration; reasons: 2",
        "SSL_CONF_cmd(\"Options\", \"x\") failed: weir has no such setting",
        "nginx.conf:8",
        "nginx.conf:9",
        "Not ready",
        "weir refuses the configuration, so it cannot answer",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    assert!(ran.out.lines().any(|line| line.trim_start().starts_with("= ")), "{}", ran.out);
    assert!(!ran.out.contains("To switch"), "{}", ran.out);
    let run = site.run("$nginx && $weir --json").json();
    assert_eq!((run["refusals"].as_array().unwrap().len(), &run["ready"]), (2, &json!(false)), "{run:#}");
    assert!(!run["refusals"][0]["remedies"].as_array().unwrap().is_empty(), "{run:#}");
}

fn a_difference_has_its_place() {
    let http = "    server { listen 127.0.0.1:8080; location /same { return 200 same; }\n location = /version { add_header X-Version $nginx_version; return 200 \"of $nginx_version\"; } }";
    let site = Site::new("differs", http);
    let ran = site.run(&format!("$nginx; {} $weir --rate 200", asks("http://127.0.0.1:8080", &["/same", "/version"])));
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    for expected in [
        "Answers: 1 of 2 differ",
        "body differs; URLs: 1",
        "field x-version differs; URLs: 1",
        "GET http://localhost:8080/version",
        "nginx.conf:9 location = /version",
        "nginx: 1.22.1",
        "Not ready",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
}

/// nginx's cache and weir's cache were filled at different times.
fn a_cached_page_that_changes_with_each_fill_is_not_compared() {
    let http = "    proxy_cache_path cache keys_zone=pages:1m; proxy_cache_valid 200 1h;
    server { listen 127.0.0.1:8080; proxy_cache pages; location /app { proxy_pass http://127.0.0.1:8081; } location /version { proxy_pass http://127.0.0.1:8081; } }
    server { listen 127.0.0.1:8081; access_log off; location /app { return 200 $request_id; } location /version { return 200 same; } }";
    let site = Site::new("changing", http);
    let asks = asks("http://127.0.0.1:8080", &["/app", "/version"]);
    let ran = site.run(&format!("$nginx; {asks} $weir --rate 200; echo; $weir --rate 200 --json > run.json"));
    assert!(ran.out.contains("Answers: 0 of 2 differ"), "{}{}", ran.out, ran.err);
    let row = "the application gives another value with each fill of a cache: body \u{d7} 1";
    assert!(ran.out.contains(row) && !ran.out.contains("Not ready"), "{}", ran.out);
    assert!(site.text("run.json").contains("\"changing\": [\n"), "{}", site.text("run.json"));
}

fn rights_that_are_missing_are_named() {
    let site = Site::new("rights", "    server { listen 127.0.0.1:8080; root html; }");
    let script = |more: &str| {
        format!(
            "chmod 755 .; chmod 777 room; $nginx; $ask http://127.0.0.1:8080/; chmod 600 logs/access.log; {more}; install -m 755 {WEIR} /dev/shm/weir 2> /dev/null || mount -t tmpfs x /mnt; install -m 755 {WEIR} /mnt/weir; setpriv --reuid 65534 --regid 65534 --clear-groups /mnt/weir adopt --rate 200"
        )
    };
    let ran = site.run(&format!("mount -t tmpfs x /mnt; {}", script("true")));
    assert_eq!(ran.code, Some(0), "the locations are asked instead: {}{}", ran.out, ran.err);
    for expected in [
        "logs/access.log: permission denied: run weir adopt as root",
        "nginx -T",
        "Permission denied",
        "no log has a URL to ask",
        "Answers: 0 of 1 differ",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let ran = site.run(&format!("mount -t tmpfs x /mnt; {}", script("chmod 600 nginx.conf")));
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("nginx.conf") && ran.err.contains("Permission denied"), "{}", ran.err);
}

fn a_file_that_changed_since_nginx_read_it_is_named() {
    let site = Site::new("changed", "    server { listen 127.0.0.1:8080; return 200 old; }");
    let ran = site.run("$nginx; sleep 3; sed -i 's/200 old/200 new/' nginx.conf; $weir --rate 200");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("nginx.conf: nginx read it before the change; reload nginx first"), "{}", ran.out);
    let ran = site.run("$nginx; $weir --rate 200");
    assert!(ran.code == Some(0) && !ran.out.contains("before the change"), "{}{}", ran.out, ran.err);
}

fn without_nginx_the_installed_one_is_read() {
    let site = Site::new("none", "    server { listen 127.0.0.1:8080; }");
    let ran = site.run("$weir");
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    for expected in [
        "no nginx runs here; nginx 1.22.1 is installed",
        "/etc/nginx/nginx.conf",
        "nginx does not run",
        "were not compared",
    ] {
        assert!(ran.out.contains(expected), "{expected}: {}", ran.out);
    }
    let ran = site.run("$weir -c nginx.conf --lang ko");
    assert!(ran.code == Some(0) && ran.out.contains("실행 중인 nginx가 없습니다"), "{}{}", ran.out, ran.err);
    let ran = site.run("mount --bind /dev/null /usr/sbin/nginx; $weir");
    assert!(ran.code == Some(2) && ran.err.contains("none is installed in the usual places"), "{}{}", ran.out, ran.err);
    let ran = site.run("$weir --nginx /bin/true");
    assert!(ran.code == Some(2) && ran.err.contains("the output of /bin/true -V is not nginx's"), "{}", ran.err);
    let ran = site.run("$weir --pid 1");
    assert!(ran.code == Some(2) && ran.err.contains("process 1 is no master process of an nginx"), "{}", ran.err);
}

fn several_nginx_have_to_be_told_apart() {
    let site = Site::new("two", "    server { listen 127.0.0.1:8080; return 200 one; }");
    let other = conf("    server { listen 127.0.0.1:8081; return 200 two; }").replace("logs/", "logs/other-");
    site.file("other.conf", &other);
    let ran = site.run("$nginx; /usr/sbin/nginx -p $PWD/ -c other.conf; $weir");
    assert_eq!(ran.code, Some(2), "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("2 nginx run here; choose one:") && ran.err.contains("-c other.conf"), "{}", ran.err);
    let ran = site.run(
        "$nginx; /usr/sbin/nginx -p $PWD/ -c other.conf; $weir --json --rate 200 --pid $(cat logs/other-nginx.pid)",
    );
    let run = ran.json();
    assert_eq!((ran.code, &run["nginx"]["listens"]), (Some(0), &json!(["127.0.0.1:8081"])), "{}{}", ran.out, ran.err);
    assert_eq!(run["nginx"]["others"].as_array().unwrap().len(), 1, "{run:#}");
}

fn logs_of_any_kind_do_no_harm() {
    let site = Site::new("logs", "    server { listen 127.0.0.1:8080; root html; }");
    let script = "head -c 3000000 /dev/urandom > binary.log; mkfifo fifo.log; mkdir folder.log; : > empty.log
        line='1 - - [x] \"GET /dir/ HTTP/1.1\" 200 9 \"-\" \"-\"'
        truncate -s 10G sparse.log; printf '\\n%s\\n' \"$line\" >> sparse.log
        { head -c 200000 /dev/zero | tr '\\0' a; echo; echo \"$line\"; echo '1 - - [x] \"GET /\\x00\\xff HTTP/1.1\" 400 9 \"-\" \"-\"'; echo '1 - - [x] \"GET / HTTP/1.1'; } > long.log
        $nginx; timeout 60 $weir --json --rate 200";
    let logs = ["binary.log", "fifo.log", "folder.log", "empty.log", "sparse.log", "long.log", "none.log"];
    let flags: String = logs.iter().map(|log| format!(" --log {log}")).collect();
    let ran = site.run(&format!("{script}{flags}"));
    let run = ran.json();
    assert_eq!((ran.code, &run["comparison"]["differ"]), (Some(0), &json!(0)), "{}{}", ran.out, ran.err);
    let said = run["comparison"]["sources"].to_string();
    for expected in [
        "fifo.log is not a regular file",
        "folder.log is not a regular file",
        "empty.log: lines at its end: 0; different URLs: 0",
        "sparse.log: lines at its end: 1; different URLs: 1",
        "long.log: lines at its end: 3; different URLs: 1; lines that cannot be sent again: 2",
        "none.log: No such file",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    let _ = fs::remove_file(site.0.join("sparse.log"));
}

fn a_recording_takes_the_place_of_logs() {
    let server = "    server {
        listen 127.0.0.1:8080;
        root html;
        location /language { return 200 \"$http_accept_language $cookie_who\"; }
    }";
    let site = Site::new("recorded", server);
    site.file("record.conf", &conf(&format!("    record traffic.weir;\n{server}")));
    let recorded = "edge_of_site & edge=$!; for i in $(seq 100); do $ask http://127.0.0.1:8080/ && break; sleep 0.05; done
        $ask -A phone -H 'Accept-Language: ko' -b who=me http://127.0.0.1:8080/language; $ask -d a=1 http://127.0.0.1:8080/language
        kill -QUIT $edge; wait $edge";
    let edge = format!("edge_of_site() {{ exec {WEIR} edge -p . -c record.conf -g 'daemon off;'; }}");
    let ran = site.run(&format!(
        "{edge}; {recorded}; : > logs/access.log; $nginx && $weir --json --rate 200 --traffic traffic.weir"
    ));
    let run = ran.json();
    let said = run["comparison"]["sources"].to_string();
    assert_eq!((ran.code, &run["comparison"]["differ"]), (Some(0), &json!(0)), "{}{}", ran.out, ran.err);
    assert!(said.contains("recording, 3 requests") && said.contains("not asked: 1: POST may change"), "{said}");
    let log = site.text("logs/access.log");
    assert_eq!((log.matches("\"GET /language").count(), log.matches("\"phone\"").count()), (2, 2), "{log}");
    // A file of another kind is refused by name.
    let other = site.run("$nginx && $weir --json --traffic nginx.conf").json();
    assert!(other["comparison"].to_string().contains("nginx.conf: "), "{other:#}");
}

fn a_run_that_is_ended_leaves_nothing() {
    let site = Site::new("ended", "    server { listen 127.0.0.1:8080; root html; }");
    let many: String = (0..500).map(|n| format!("1 - - [x] \"GET /?{n} HTTP/1.1\" 200 9 \"-\" \"-\"\n")).collect();
    site.file("many.log", &many);
    let script = "$nginx; $weir --rate 5 --urls 500 --log many.log > page.txt & own=$!; until ls room | grep -q weir-swap-; do sleep 0.05; done; ls room > during.txt; kill -TERM $own; wait $own; code=$?; ls room > after.txt; pgrep -f '[s]wap --beside' > left.txt; exit $code";
    let ran = site.run(script);
    assert_eq!(ran.code, Some(130), "{}{}", ran.out, ran.err);
    assert!(site.text("during.txt").starts_with("weir-swap-"), "{}", site.text("during.txt"));
    assert_eq!((site.text("after.txt").as_str(), site.text("left.txt").as_str()), ("", ""));
    assert!(site.text("page.txt").contains("Answers: 0 of"), "{}", site.text("page.txt"));
    // weir beside nginx ends also if weir adopt is killed.
    let script = "$nginx; $weir --rate 5 --urls 500 --log many.log > /dev/null & own=$!; until pgrep -f '[s]wap --beside' > /dev/null; do sleep 0.05; done; kill -KILL $own; tries=1200; while pgrep -f '[s]wap --beside' > left.txt && [ $tries -gt 0 ]; do tries=$((tries - 1)); sleep 0.05; done; true";
    assert_eq!(site.run(script).code, Some(0));
    assert_eq!(site.text("left.txt"), "");
}

fn wrong_words_are_refused() {
    for (args, said) in [
        (&["--urls", "0"][..], "--urls"),
        (&["--rate", "100000"], "--rate"),
        (&["--nginx", "/no/such"], "/no/such"),
        (&["--what"], "--what"),
    ] {
        let output = Command::new(WEIR).arg("adopt").args(args).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && err.contains(said), "{args:?}: {err}");
    }
}

/// The commands of the guide print the guide's output.
fn the_guide_s_example_is_still_true() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/adopt_guide.py");
    let output = Command::new("python3").arg(script).args(["--weir", WEIR, "--check"]).output().unwrap();
    // 77: there is no nginx 1.22.1 on this machine, or the test does not run as root.
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 77)), "{said}");
}
