//! `weir doctor` from outside: exit codes, a dump on standard input, a change and its undo, a status page, a process.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

#[path = "doctor/fixes.rs"]
mod fixes;
#[path = "doctor/limits.rs"]
mod limits;
#[path = "support/schema.rs"]
mod schema;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("weir-doctor-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    /// The folder in which the doctor of this test keeps files for `--undo`.
    static STATE: Folder = Folder::new();
}

fn doctor(args: &[&str]) -> Output {
    let state = STATE.with(|folder| folder.0.clone());
    Command::new(WEIR).arg("doctor").args(args).env("XDG_STATE_HOME", state).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn json(output: &Output) -> Value {
    let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)));
    schema::valid("doctor", &json);
    json
}

const QUIET: &str = "worker_processes auto;\nevents { worker_connections 4096; }\nworker_rlimit_nofile 8192;\n";

#[test]
fn exit_codes_say_what_the_report_says() {
    let folder = Folder::new();
    let good = folder.file("good.conf", QUIET);
    let bad = folder.file("bad.conf", &format!("{QUIET}http {{ server {{ location /a {{ alias /b/; }} }} }}\n"));
    let broken = folder.file("broken.conf", "events {");
    let code = |path: &Path| doctor(&["--no-host", path.to_str().unwrap()]).status.code();
    assert_eq!((code(&good), code(&bad), code(&broken)), (Some(0), Some(1), Some(1)));
    assert_eq!(code(Path::new("/nowhere/nginx.conf")), Some(2));
    let output = doctor(&["--only", "alias_traversl", good.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("did you mean alias_traversal?"), "{}", said(&output));
}

const SHOP: &str = "events { }\nhttp {\n    upstream app { server 127.0.0.1:3000; server 127.0.0.1:3001; }\n    server {\n        listen 80;\n        server_name shop.test;\n        location /a { alias /b/; }\n        location /api/ { proxy_pass http://app; }\n    }\n}\n";

/// Every way to call the doctor has its short form: a line for each finding, and the summary.
#[test]
fn brief_is_one_line_for_each_finding() {
    let folder = Folder::new();
    let path = folder.file("nginx.conf", SHOP);
    let name = path.to_str().unwrap();
    let lines = |args: &[&str]| -> Vec<String> {
        let output = doctor(&[&["--no-host", "--brief", name], args].concat());
        said(&output).lines().map(str::to_owned).collect()
    };
    let all = lines(&[]);
    let whole = json(&doctor(&["--no-host", "--json", name]));
    assert_eq!(all.len(), whole["findings"].as_array().unwrap().len() + 1, "{all:?}");
    let place = format!("{name}:7");
    let first = "alias serves files outside of its directory";
    assert!(all[0].starts_with("wrong  ") && all[0].contains(&place) && all[0].ends_with(first), "{all:?}");
    assert_eq!(all[0].split_whitespace().nth(2), Some("alias_traversal"));
    let levels: Vec<&str> = all.iter().filter_map(|line| line.split("  ").next()).collect();
    let of = |level: &str| levels.iter().filter(|it| **it == level).count();
    assert!(
        levels[..all.len() - 1]
            .iter()
            .map(|level| ["wrong", "risk", "note"].iter().position(|it| it == level).unwrap())
            .is_sorted()
    );
    assert!(all.last().unwrap().starts_with(&format!(
        "{} wrong, {} at risk, {} notes; ",
        of("wrong"),
        of("risk"),
        of("note")
    )));
    // Columns begin at the same place in each line, also beside Korean words.
    let rule = all[0].find("alias_traversal").unwrap();
    assert!(all[..all.len() - 1].iter().all(|line| line.as_bytes()[rule - 1] == b' ' && line.as_bytes()[rule] != b' '));
    let korean = lines(&["--lang", "ko"]);
    assert!(korean.len() == all.len() && korean[0].starts_with("오류  "), "{korean:?}");
    assert_eq!(lines(&["--only", "alias_traversal"]).len(), 2);
    let broken = folder.file("broken.conf", "events {");
    let output = doctor(&["--no-host", "--brief", broken.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).starts_with("unexpected end of file, expecting \"}\" in ") && !said(&output).contains("^"));
    let after = folder.file("after.conf", &SHOP.replace("events { }", "events { use epoll; }"));
    let against = doctor(&["--no-host", "--brief", "--against", name, after.to_str().unwrap()]);
    assert!(said(&against).starts_with(&format!("{}:1  ", after.display())), "{}", said(&against));
    let pid = std::process::id().to_string();
    let process = said(&doctor(&["--brief", "--pid", &pid, name]));
    assert!(
        process.contains(&format!("Max open files of process {pid}: ")) && !process.contains("soft/hard"),
        "{process}"
    );
    // The long page tells about both.
    let long = said(&doctor(&["--no-host", name]));
    assert!(long.ends_with("--brief prints one line for each finding.\n"), "{long}");
}

fn failing_log(folder: &Folder, lines: usize) -> PathBuf {
    let line = |n: usize| {
        format!(
            "2026/01/01 10:00:{:02} [error] 7#7: *{n} connect() failed (111: Connection refused) while connecting to upstream, client: 10.0.0.9, server: shop.test, request: \"GET /api/x?n={n} HTTP/1.1\", upstream: \"http://127.0.0.1:3001/api/x\", host: \"shop.test\"\n",
            n % 60
        )
    };
    folder.file("error.log", &(0..lines).map(line).collect::<String>())
}

/// The words that a user has lead to the findings that can be the cause, and to nginx's own words.
#[test]
fn a_symptom_shows_what_can_cause_it_here() {
    let folder = Folder::new();
    let log = failing_log(&folder, 4);
    let conf = folder.file("nginx.conf", &format!("error_log {};\n{SHOP}", log.display()));
    let name = conf.to_str().unwrap();
    let output = doctor(&["502", name]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1));
    for part in [
        &format!("Error log: {}, whole, 1 KiB\n", log.display()),
        "\n  4 × connect() failed (111: Connection refused)  (2026/01/01 10:00:00 – 2026/01/01 10:00:03)\n    servers: 127.0.0.1:3001 ×4\n",
        &format!("    locations: location /api/ ({name}:9) ×4\n"),
        "→ ss -ltnp 'sport = :3001'\n",
        "no finding explains these lines of the log. These can cause others\n",
        "$upstream_header_time is `-`",
        "Where to look next\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("alias_traversal") && !text.contains("[upstream_without_keepalive]"), "{text}");
    // A finding about the lines comes first, and in full, with the command that writes its change.
    let ports = std::fs::read_to_string(&log).unwrap().replace("(111: Connection refused)", "(99: Cannot assign)");
    let ports = folder.file("ports.log", &ports);
    let about = said(&doctor(&["502", name, "--error-log", ports.to_str().unwrap()]));
    let part = "weir doctor CONF --fix --only upstream_without_keepalive shows the change";
    assert!(about.contains("[upstream_without_keepalive]\n") && about.contains(part), "{about}");
    let value = json(&doctor(&["502", name, "--json"]));
    let message = &value["error_log"]["messages"][0];
    assert_eq!((value["symptom"].as_str(), message["count"].as_u64()), (Some("502"), Some(4)));
    assert_eq!(message["locations"][0]["count"].as_u64(), Some(4));
    // A long log: only its end is read, and the page says so.
    failing_log(&folder, 4000);
    let text = said(&doctor(&["502", name, "--lang", "ko"]));
    assert!(text.contains("마지막 256 KiB (전체 "), "{text}");
    let brief = said(&doctor(&["502", name, "--brief"]));
    assert!(brief.lines().next().unwrap().ends_with(" × connect() failed (111: Connection refused)"), "{brief}");
    // The log of another server, from standard input and by name.
    let mut child = Command::new(WEIR);
    child.args(["doctor", "502", name, "--no-host", "--error-log", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"2026/01/01 10:00:00 [alert] 1#1: 64 worker_connections are not enough\n")
        .unwrap();
    let text = said(&child.wait_with_output().unwrap());
    assert!(
        text.contains("no line explains it.")
            && text.contains("also 1 × worker_connections are not enough (weir doctor 500)"),
        "{text}"
    );
    let absent = said(&doctor(&["slow", name, "--error-log", "/nowhere/error.log"]));
    assert!(absent.contains("Error log: /nowhere/error.log, weir cannot read it: No such file"), "{absent}");
    let none = said(&doctor(&["websocket", name, "--no-host"]));
    assert!(none.contains("Error log: none is known. Name it with --error-log FILE"), "{none}");
}

/// A program that listens at "localhost" often has only one of its two addresses.
#[test]
fn an_application_at_another_address_is_named() {
    let Ok(listener) = std::net::TcpListener::bind("[::1]:0") else { return };
    let port = listener.local_addr().unwrap().port();
    let folder = Folder::new();
    let conf =
        format!("events {{ }}\nhttp {{ server {{ location / {{\nproxy_pass http://127.0.0.1:{port}/;\n}} }} }}\n");
    let conf = folder.file("nginx.conf", &conf);
    let name = conf.to_str().unwrap();
    let log = failing_log(&folder, 4);
    let text = said(&doctor(&["502", name, "--error-log", log.to_str().unwrap()]));
    for part in [
        "what can cause it, the most likely first\n  wrong  ",
        &format!("nothing listens at 127.0.0.1:{port} on this machine now, but a program listens at [::1]:{port}\n"),
        &format!("→ proxy_pass http://[::1]:{port}/;\n"),
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let only = ["--only", "origin_listens_elsewhere", name];
    assert!(!said(&doctor(&[&["--no-host"], &only[..]].concat())).contains("listens at"), "another machine's file");
    drop(listener);
    assert!(!said(&doctor(&only)).contains("listens at"), "nothing listens there");
}

#[test]
fn a_word_that_is_no_symptom_is_refused_and_a_file_of_that_name_is_read() {
    let folder = Folder::new();
    folder.file("502", QUIET);
    let state = STATE.with(|folder| folder.0.clone());
    let here = |args: &[&str]| {
        let mut command = Command::new(WEIR);
        command.arg("doctor").args(args).env("XDG_STATE_HOME", &state).current_dir(&folder.0).output().unwrap()
    };
    let refused = |args: &[&str], why: &str| {
        let output = here(args);
        assert!(output.status.code() == Some(2) && said(&output).contains(why), "{args:?}: {}", said(&output));
    };
    refused(
        &["websockets"],
        "websockets is neither a file nor a symptom; did you mean websocket? symptoms: 502, 504, 500, websocket, slow, limit",
    );
    refused(&["503", "502"], "503 is neither a file nor a symptom; symptoms: 502, 504");
    refused(&["503", "--lang", "ko"], "503은 파일도 증상도 아닙니다. 증상: 502, 504");
    refused(&["502", "--fix"], "a symptom (502) and --fix do not go together");
    refused(&["./502", "--error-log", "x"], "--error-log needs a symptom");
    let file = here(&["./502", "--no-host"]);
    assert!(file.status.code() == Some(0) && said(&file).contains("0 wrong"), "{}", said(&file));
    let both = here(&["502", "502", "--no-host"]);
    assert!(
        both.status.code() == Some(0) && said(&both).starts_with("502: nginx got no usable answer"),
        "{}",
        said(&both)
    );
    // Without a file, the symptom is about the file that the doctor reads anyway.
    let default = here(&["LIMIT", "--nginx-version", "1.22.1"]);
    let has_default =
        ["/etc/nginx/nginx.conf", "/usr/local/nginx/conf/nginx.conf"].iter().any(|path| Path::new(path).exists());
    assert_eq!(said(&default).starts_with("limit: "), has_default, "{}", said(&default));
}

#[test]
fn who_reads_a_change_decides_whether_it_acts() {
    let folder = Folder::new();
    let path = |name: &str, text: &str| folder.file(name, text).to_str().unwrap().to_owned();
    let before = path("before.conf", "events { }\nhttp { server { listen 80; } }\n");
    let after = path("after.conf", "events { }\nhttp { directio 4m; server { listen 80; } }\n");
    let ours = path("ours.conf", "events { }\nhttp { directio 4m; server { listen 80; location /m { metrics; } } }\n");
    let against = |more: &[&str], after: &str| {
        let output = doctor(&[&["--no-host", "--against", &before, after], more].concat());
        (output.status.code(), said(&output))
    };
    for more in [&["--for", "nginx"][..], &["--nginx-version", "1.22.1"]] {
        let (code, said) = against(more, &after);
        let listed = said.contains("after.conf:2  \"directio 4m\"") && said.contains("can have an effect");
        assert!(code == Some(0) && listed && said.contains("1 of 1 changes can have an effect in nginx"), "{said}");
    }
    for (more, after) in [(&["--for", "weir"][..], &after), (&["--nginx", WEIR][..], &after), (&[][..], &ours)] {
        let (code, said) = against(more, after);
        assert!(
            code == Some(1) && said.contains("has no effect in weir: weir reads files through the kernel"),
            "{more:?}: {said}"
        );
    }
    // The rules, too, depend on the reader of the file.
    let rules = |reader: &str| said(&doctor(&["--no-host", "--for", reader, &after]));
    assert!(rules("nginx").contains("[worker_processes_one]") && !rules("weir").contains("[worker_processes_one]"));
    assert!(rules("weir").contains("; for weir\n"), "{}", rules("weir"));
    let explained = said(&doctor(&["--no-host", "--for", "weir", "--explain=worker_processes", &after]));
    assert!(explained.contains("auto  weir's default; nginx's default is 1"), "{explained}");
}

#[test]
fn a_dump_keeps_the_names_of_its_files() {
    let mut child = Command::new(WEIR)
        .args(["doctor", "-", "--no-host", "--json", "--only", "error_log_off"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let dump = "# configuration file /e/nginx.conf:\nevents { }\nhttp {\n include d/*.conf;\n}\n\n# configuration file /e/d/a.conf:\n\nerror_log off;\n";
    child.stdin.take().unwrap().write_all(dump.as_bytes()).unwrap();
    let value = json(&child.wait_with_output().unwrap());
    let finding = &value["findings"][0];
    assert_eq!((finding["file"].as_str(), finding["line"].as_u64()), (Some("/e/d/a.conf"), Some(2)));
    assert_eq!((finding["rule"].as_str(), finding["can_fix"].as_bool()), (Some("error_log_off"), Some(true)));
    assert_eq!(value["weir_doctor"].as_u64(), Some(1));
}

/// The guide's commands print the guide's output; for labs, the script checks only that there is a verdict.
#[test]
fn the_newcomers_first_hour_is_still_true() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/first_hour.py");
    let output = Command::new("python3").arg(script).args(["--weir", WEIR, "--check"]).output().unwrap();
    // 77: there is no nginx 1.22.1 on this machine.
    assert!(matches!(output.status.code(), Some(0 | 77)), "{}", said(&output));
}

#[test]
fn a_status_page_is_asked_twice() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/status", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            let page = "Active connections: 9 \nserver accepts handled requests\n 100 90 300 \nReading: 0 Writing: 1 Waiting: 8 \n";
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", page.len());
            stream.write_all(format!("{head}{page}").as_bytes()).unwrap();
        }
    });
    let folder = Folder::new();
    let path = folder.file("nginx.conf", QUIET);
    let value = json(&doctor(&["--json", "--live", &url, path.to_str().unwrap()]));
    server.join().unwrap();
    let rules: Vec<&str> = value["findings"].as_array().unwrap().iter().filter_map(|f| f["rule"].as_str()).collect();
    assert!(rules.contains(&"connections_dropped") && rules.contains(&"headroom"), "{value}");
}

/// The doctor asks a running weir for its version, whatever the name of its file: nginx's own rules do not apply.
#[test]
fn a_running_weir_gets_weirs_advice() {
    let folder = Folder::new();
    let socket = folder.0.join("own.sock");
    let conf = format!(
        "daemon off;\npid own.pid;\nerror_log stderr;\nevents {{ }}\nhttp {{\n    access_log off;\n    upstream a {{ server 127.0.0.1:1; }}\n    server {{ listen unix:{}; location / {{ proxy_pass http://a; }} }}\n}}\n",
        socket.display()
    );
    let path = folder.file("own.conf", &conf);
    let name = path.to_str().unwrap();
    std::os::unix::fs::symlink(WEIR, folder.0.join("nginx")).unwrap();
    for (program, verb) in [(PathBuf::from(WEIR), &["edge"][..]), (folder.0.join("nginx"), &[])] {
        let mut child = Command::new(&program)
            .args(verb)
            .args(["-p", folder.0.to_str().unwrap(), "-c", "own.conf"])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !socket.exists() {
            assert_eq!(child.try_wait().unwrap(), None, "it did not start");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let pid = child.id().to_string();
        let value = json(&doctor(&["--json", "--pid", &pid]));
        let theirs = json(&doctor(&["--json", "--pid", &pid, "--nginx-version", "1.22.1", name]));
        child.kill().unwrap();
        child.wait().unwrap();
        let _ = std::fs::remove_file(&socket);
        let rules = |value: &Value| -> Vec<String> {
            let findings = value["findings"].as_array().unwrap().iter();
            findings.map(|finding| finding["rule"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(value["target"], "weir", "{value}");
        for rule in ["worker_processes_one", "upstream_without_keepalive"] {
            assert!(!rules(&value).iter().any(|found| found == rule), "{rule}: {value}");
            assert!(rules(&theirs).iter().any(|found| found == rule), "{rule}: {theirs}");
        }
    }
}

#[test]
fn values_changes_and_korean() {
    let folder = Folder::new();
    let before = folder.file("before.conf", "events { }\nhttp { }\n");
    let after = folder.file("after.conf", "events { use epoll; }\nhttp { proxy_read_timeout 1m; }\n");
    let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
    let told = ["--nginx-version", "1.22.1", after];
    let explained = said(&doctor(&[&told[..], &["--explain=proxy_read_timeout"]].concat()));
    assert!(
        explained.contains("after.conf:2, which is the default") && explained.contains("not from the client"),
        "{explained}"
    );
    let compared = said(&doctor(&[&told[..], &["--against", before]].concat()));
    assert!(
        compared.contains("none of the 2 changes has an effect: comparing the two files would measure only noise"),
        "{compared}"
    );
    let korean = said(&doctor(&[&told[..], &["--against", before, "--lang", "ko"]].concat()));
    assert!(korean.contains("변경 2건 모두 효과가 없습니다"), "{korean}");
    let korean = said(&doctor(&[&told[..], &["--explain=proxy_read_timeout", "--lang", "ko"]].concat()));
    assert!(korean.contains("기본값과 같음") && korean.contains("오리진에서 두 번 읽는"), "{korean}");
    let korean = said(&doctor(&[&told[..], &["--no-host", "--lang", "ko"]].concat()));
    assert!(korean.contains("Linux에서는 use epoll이 기본값입니다") && korean.contains("참고"), "{korean}");
}
