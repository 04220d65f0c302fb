//! `weir doctor` from outside: exit codes, a dump on standard input, a change and its undo, a status page, a process.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

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
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", said(output)))
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

#[test]
fn a_change_is_shown_then_written_then_taken_back() {
    let folder = Folder::new();
    let text =
        "events { }\nhttp {\n    # mine\n    server {\n        listen 80;\n        error_log off;  # quiet\n    }\n}\n";
    let path = folder.file("nginx.conf", text);
    let name = path.to_str().unwrap();
    let only = ["--no-host", "--only", "error_log_off", "--fix", name];
    let shown = doctor(&only);
    assert_eq!(shown.status.code(), Some(1));
    assert!(said(&shown).contains("-        error_log off;  # quiet\n+        error_log /var/log"), "{}", said(&shown));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "nothing is written unasked");

    let written = doctor(&[&only[..], &["--write"]].concat());
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    let after = std::fs::read_to_string(&path).unwrap();
    assert_eq!(after, text.replace("error_log off;", "error_log /var/log/nginx/error.log crit;"));
    assert_eq!(doctor(&only).status.code(), Some(0), "nothing is left to mend");

    assert!(said(&written).contains("To undo this: weir doctor --undo"), "{}", said(&written));
    let undone = doctor(&["--undo"]);
    assert!(said(&undone).contains(&format!("{name} is as before the change")), "{}", said(&undone));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    let none = doctor(&["--undo", "--lang", "ko"]);
    assert_eq!((none.status.code(), said(&none).contains("되돌릴 변경이 없습니다")), (Some(2), true));
}

/// Changes are taken back in turn, the last one first; a file that someone else has changed stays as it is.
#[test]
fn an_undo_overwrites_no_change_of_another_program() {
    let folder = Folder::new();
    let text = "events { }\nhttp {\n    server {\n        listen 80;\n        error_log off;\n        location /a {\n            alias /b/;\n        }\n    }\n}\n";
    let path = folder.file("nginx.conf", text);
    let read = || std::fs::read_to_string(&path).unwrap();
    for rule in ["error_log_off", "alias_traversal"] {
        let output = doctor(&["--no-host", "--only", rule, "--fix", "--write", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    }
    let (both, undo) = (read(), || doctor(&["--undo"]));
    assert!(both.contains("location /a/ {") && !both.contains("error_log off"), "{both}");
    std::fs::write(&path, format!("{both}# mine\n")).unwrap();
    let refused = undo();
    let why = said(&refused);
    assert!(refused.status.code() == Some(2) && why.contains("has changed since"), "{why}");
    assert_eq!(read(), format!("{both}# mine\n"));
    // The sentence says where the old content is.
    let kept = why.trim_end().rsplit(' ').next().unwrap();
    let old = std::fs::read_to_string(format!("{kept}{}", path.display())).unwrap();
    assert!(old.contains("location /a {") && !old.contains("error_log off"), "{old}");
    std::fs::write(&path, both).unwrap();
    assert!(undo().status.success() && undo().status.success());
    assert_eq!(read(), text);
}

/// The tree of Debian's package: a wildcard includes every file of a folder.
fn debian() -> (Folder, PathBuf) {
    let folder = Folder::new();
    let root = folder.0.display();
    for name in ["sites-enabled", "certbot"] {
        std::fs::create_dir(folder.0.join(name)).unwrap();
    }
    let conf = format!(
        "events {{ worker_connections 4096; }}\nworker_rlimit_nofile 8192;\npid {root}/pid;\nhttp {{\n    access_log off;\n    include {root}/sites-enabled/*;\n}}\n"
    );
    let main = folder.file("nginx.conf", &conf);
    (folder, main)
}

const SITE: &str = "upstream app {\n    server 127.0.0.1:1;\n}\nserver {\n    listen unix:SOCKET;\n    error_log off;\n    location / {\n        proxy_pass http://app;\n    }\n}\n";

#[test]
fn a_fix_puts_no_file_into_a_folder_that_the_configuration_includes() {
    let (folder, main) = debian();
    let text = SITE.replace("SOCKET", &folder.0.join("s").display().to_string());
    let site = folder.file("sites-enabled/shop", &text);
    let output = doctor(&["--nginx-version", "1.22.1", "--fix", "--write", main.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let names: Vec<_> = std::fs::read_dir(folder.0.join("sites-enabled")).unwrap().flatten().collect();
    let written = std::fs::read_to_string(&site).unwrap();
    assert!(names.len() == 1 && written.contains("keepalive 32;"), "{names:?} {written}");
    assert!(doctor(&["--undo"]).status.success());
    assert_eq!(std::fs::read_to_string(&site).unwrap(), text);
}

/// A program that stands for nginx: it refuses a configuration that has one of these words in any of its files.
fn nginx_that_refuses(folder: &Folder, word: &str) -> PathBuf {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = -V ] && {{ echo 'nginx version: nginx/1.22.1' >&2; exit; }}\nfor file in $4 $(dirname $(dirname $4))/files/*; do\n    line=$(grep -n '{word}' $file | cut -d: -f1)\n    [ -z \"$line\" ] || {{ echo \"nginx: [emerg] no such word in $file:$line\" >&2; exit 1; }}\ndone\n"
    );
    let path = folder.file("fake-nginx", &script);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    path
}

/// The other fixes are made all the same.
#[test]
fn a_fix_that_the_nginx_here_refuses_is_dropped_with_its_words() {
    let (folder, main) = debian();
    let text = SITE.replace("SOCKET", &folder.0.join("s").display().to_string());
    let site = folder.file("sites-enabled/shop", &text);
    let run = |word: &str| {
        let nginx = nginx_that_refuses(&folder, word);
        let output = doctor(&["--nginx", nginx.to_str().unwrap(), "--fix", "--write", main.to_str().unwrap()]);
        (output.status.code(), said(&output))
    };
    let (code, shown) = run("proxy_pass");
    let cannot = format!(
        "nginx refuses the files as they are, so only weir's reader checks the changes: [emerg] no such word in {}:8",
        site.display()
    );
    assert!(code == Some(0) && shown.contains(&cannot), "{shown}");
    assert!(doctor(&["--undo"]).status.success());
    let (code, shown) = run("keepalive 32");
    let why = format!(
        "shop:1 [upstream_without_keepalive] is not fixed: nginx would refuse the file: [emerg] no such word in {}:",
        site.display()
    );
    assert!(code == Some(1) && shown.contains(&why), "{shown}");
    let written = std::fs::read_to_string(&site).unwrap();
    assert!(!written.contains("keepalive 32") && !written.contains("error_log off"), "{written}");
}

#[test]
fn the_files_of_other_programs_stay_as_they_are() {
    let (folder, main) = debian();
    let server = |name: &str, before: &str, line: &str, after: &str| {
        let text = format!(
            "{before}server {{\n    listen unix:{}/{name};\n    error_log off;{line}\n    location /a {{\n        alias /b/;\n    }}\n}}\n{after}",
            folder.0.display()
        );
        (folder.file(&format!("sites-enabled/{name}"), &text), text)
    };
    let kept = [
        ("Ansible", server("whole", "# Ansible managed\n", "", "")),
        ("Ansible", server("block", "# BEGIN ANSIBLE MANAGED BLOCK\n", "", "# END ANSIBLE MANAGED BLOCK\n")),
        (
            "certbot",
            server(
                "options",
                "# This file contains important security parameters. If you modify this file\n# manually, Certbot will be unable to automatically provide future security\n# updates.\n",
                "",
                "",
            ),
        ),
    ];
    let (line, text) = server("line", "", " # managed by Certbot", "");
    let output = doctor(&["--no-host", "--nginx-version", "1.22.1", "--fix", "--write", main.to_str().unwrap()]);
    let shown = said(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    for (owner, (path, text)) in &kept {
        assert_eq!(std::fs::read_to_string(path).unwrap(), *text);
        assert!(shown.contains(&format!("{owner} owns this place in {}", path.display())), "{shown}");
    }
    // The other lines of the file are the user's.
    let mended = text
        .replace("location /a {", "location /a/ {")
        .replace("    }\n", "    }\n    location = /a { return 301 /a/$is_args$args; }\n");
    assert_eq!(std::fs::read_to_string(line).unwrap(), mended);
    assert!(shown.contains("[error_log_off] is not fixed: certbot owns"), "{shown}");
}

#[test]
fn a_note_is_fixed_if_the_user_names_its_rule() {
    let folder = Folder::new();
    let text = format!("{QUIET}http {{\n    tcp_nodelay on;\n}}\n");
    let path = folder.file("nginx.conf", &text);
    let fix = |more: &[&str]| {
        let output = doctor(
            &[&["--no-host", "--nginx-version", "1.22.1", "--fix", "--write"], more, &[path.to_str().unwrap()]]
                .concat(),
        );
        (output.status.code(), said(&output))
    };
    let (code, shown) = fix(&[]);
    assert!(code == Some(0) && shown.contains("unless you name them: --only equals_default"), "{shown}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    assert_eq!(fix(&["--only", "equals_default"]).0, Some(0));
    assert!(!std::fs::read_to_string(&path).unwrap().contains("tcp_nodelay"));
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

#[test]
fn a_process_is_asked_for_its_limits() {
    let folder = Folder::new();
    let path = folder.file("nginx.conf", "events { worker_connections 4000000000; }\n");
    // A process without children; this one has those of other tests.
    let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeping.id().to_string();
    let output = doctor(&["--json", "--pid", &pid, "--only", "fd_limit_running", path.to_str().unwrap()]);
    sleeping.kill().unwrap();
    sleeping.wait().unwrap();
    let value = json(&output);
    let what = value["findings"][0]["what"].as_str().unwrap();
    assert!(what.contains(&format!("worker {pid} may open")) && what.contains("Limit set by"), "{what}");
    let none = doctor(&["--pid", "999999999", path.to_str().unwrap()]);
    assert_eq!((none.status.code(), said(&none).contains("no process 999999999")), (Some(2), true));
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
fn one_run_mends_what_its_own_changes_call_for() {
    let folder = Folder::new();
    let text = "events { worker_connections 4096; }\nhttp {\n    upstream a {\n        server 10.0.0.1;\n    }\n    server {\n        listen 80;\n        location / {\n            proxy_pass http://a;\n        }\n    }\n}\n";
    let path = folder.file("nginx.conf", text);
    let name = path.to_str().unwrap();
    let told = ["--no-host", "--nginx-version", "1.22.1", name];
    let written = doctor(&[&told[..], &["--fix", "--write"]].concat());
    assert_eq!(written.status.code(), Some(0), "{}", said(&written));
    assert!(std::fs::read_to_string(&path).unwrap().contains("proxy_http_version 1.1;"));
    let again = json(&doctor(&[&told[..], &["--json"]].concat()));
    let is_left = |finding: &&Value| finding["can_fix"] == true && finding["level"] != "note";
    let left: Vec<&Value> = again["findings"].as_array().unwrap().iter().filter(is_left).collect();
    assert!(left.is_empty(), "{left:?}");
    let korean = said(&doctor(&[&told[..], &["--fix", "--lang", "ko"]].concat()));
    assert!(korean.contains("자동으로 고칠 수 있는 것이 없습니다"), "{korean}");
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

/// A machine in a folder: a process of a unit, with the limit that systemd gave it.
fn machine(limit: u64, group: &str) -> Folder {
    let folder = Folder::new();
    let limits = format!("Max open files            {limit}                 524288               files\n");
    for (file, text) in [
        ("proc/7/stat", "7 (app) S 1 7 7 0".to_owned()),
        ("proc/7/cmdline", "app\0".to_owned()),
        ("proc/7/status", "Name: app\nUid:\t33\t33\t33\t33\n".to_owned()),
        ("proc/7/limits", limits),
        ("proc/7/cgroup", format!("0::{group}\n")),
        ("proc/sys/fs/nr_open", "1048576\n".to_owned()),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nwww-data:x:33:33::/:/bin/sh\n".to_owned()),
        ("etc/pam.d/common-session", "session required pam_unix.so\n".to_owned()),
        ("etc/systemd/system/app.service", "[Service]\nExecStart=/bin/app\n".to_owned()),
    ] {
        let path = folder.0.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_limit_is_raised_where_it_is_set_and_checked_afterwards() {
    let folder = machine(1024, "/system.slice/app.service");
    let root = &folder.0;
    let place = root.to_str().unwrap().to_owned();
    let flags = ["--pid", "7", "--fix", "--host", "--files", "10000", "--root", &place];
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let drop_in = root.join("etc/systemd/system/app.service.d/weir-limits.conf");
    let shown = doctor(&flags);
    assert!(said(&shown).contains("systemd sets this limit for app.service") && !drop_in.exists());
    assert!(String::from_utf8_lossy(&shown.stdout).contains("+LimitNOFILE=65536"));
    let written = doctor(&[&flags[..], &["--write"]].concat());
    assert!(written.status.success() && said(&written).contains("systemctl daemon-reload"), "{}", said(&written));
    assert_eq!(std::fs::read_to_string(&drop_in).unwrap(), "[Service]\nLimitNOFILE=65536\n");
    // The restarted process has the limit.
    std::fs::write(
        root.join("proc/7/limits"),
        "Max open files            65536                65536                files\n",
    )
    .unwrap();
    let holds = said(&doctor(&flags));
    assert!(holds.contains("Max open files of process 7: 65536, set by LimitNOFILE=65536 in /etc/systemd"), "{holds}");
}

#[test]
fn a_login_gets_its_line_and_pam_reads_it_with_an_undo() {
    let folder = machine(1024, "/user.slice/user-33.slice/session-1.scope");
    let root = &folder.0;
    let place = root.to_str().unwrap().to_owned();
    let output = doctor(&["--pid", "7", "--fix", "--host", "--write", "--files", "10000", "--root", &place]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap();
    assert!(read("etc/security/limits.d/90-weir-limits.conf").contains("www-data soft nofile 65536\n"));
    assert!(read("etc/pam.d/common-session").ends_with("session required        pam_limits.so\n"));
    assert!(!root.join("etc/pam.d/common-session.undo.diff").exists());
    assert!(doctor(&["--undo", "--root", &place]).status.success());
    assert_eq!(read("etc/pam.d/common-session"), "session required pam_unix.so\n");
    assert!(!root.join("etc/security/limits.d/90-weir-limits.conf").exists());
    let none = doctor(&["--fix", "--host", "--root", &place]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("--host needs --pid"));
}

#[test]
fn the_limit_of_a_process_and_its_source_are_named_without_a_finding() {
    let folder = machine(65_536, "/system.slice/app.service");
    let root = &folder.0;
    let (place, conf) = (root.to_str().unwrap().to_owned(), folder.file("quiet.conf", QUIET));
    let flags = ["--pid", "7", "--root", &place, "--nginx-version", "1.22.1", conf.to_str().unwrap()];
    let shown = String::from_utf8_lossy(&doctor(&flags).stdout).into_owned();
    assert!(
        shown.contains("Max open files of process 7: 65536, set by systemd's default for app.service\n"),
        "{shown}"
    );
    let drop_in = root.join("etc/systemd/system/app.service.d/files.conf");
    std::fs::create_dir_all(drop_in.parent().unwrap()).unwrap();
    std::fs::write(&drop_in, "[Service]\nLimitNOFILE=65536\n").unwrap();
    let only = [&flags[..], &["--only", "fd_limit_running"]].concat();
    let shown = String::from_utf8_lossy(&doctor(&only).stdout).into_owned();
    let line = "set by LimitNOFILE=65536 in /etc/systemd/system/app.service.d/files.conf\n";
    assert!(shown.contains(line) && shown.contains("0 wrong, 0 at risk, 0 notes"), "{shown}");
    let korean = String::from_utf8_lossy(&doctor(&[&only[..], &["--lang", "ko"]].concat()).stdout).into_owned();
    assert!(korean.contains("프로세스 7의 최대 열린 파일 수: 65536, 설정한 곳: "), "{korean}");
    let told = json(&doctor(&[&only[..], &["--json"]].concat()))["open_files"].clone();
    assert_eq!(
        (told["pid"].as_u64(), told["soft"].as_u64(), told["hard"].as_u64()),
        (Some(7), Some(65_536), Some(524_288))
    );
    // The program is no nginx: without a file, its limit is all that there is to say.
    let alone = doctor(&["--pid", "7", "--root", &place]);
    let shown = String::from_utf8_lossy(&alone.stdout).into_owned();
    assert!(alone.status.success() && shown.contains(line) && !shown.contains("at risk"), "{shown}");
    assert_eq!(json(&doctor(&["--pid", "7", "--root", &place, "--json"]))["open_files"], told);
    // The file is changed, and the process is the old one.
    std::fs::write(&drop_in, "[Service]\nLimitNOFILE=100000\n").unwrap();
    let shown = String::from_utf8_lossy(&doctor(&only).stdout).into_owned();
    assert!(shown.contains("65536. LimitNOFILE=100000 in") && shown.contains("is not in force"), "{shown}");
}

/// The file of this machine's nginx says nothing about another program.
#[test]
fn a_program_that_reads_no_nginx_conf_needs_files_by_number() {
    let folder = machine(1024, "/system.slice/app.service");
    let place = folder.0.to_str().unwrap();
    let ask = |flags: &[&str]| doctor(&[&["--pid", "7", "--root", place], flags].concat());
    let limits = ask(&["--fix", "--host"]);
    assert_eq!(limits.status.code(), Some(2));
    assert!(
        said(&limits).contains("process 7 reads no nginx.conf") && said(&limits).contains("--files N"),
        "{}",
        said(&limits)
    );
    for flags in [&["--fix"][..], &["--explain"]] {
        let other = ask(flags);
        assert_eq!(other.status.code(), Some(2), "{flags:?}");
        assert!(said(&other).contains("process 7 reads no nginx.conf: name the file"), "{}", said(&other));
    }
}

/// A fix changes nothing about a value that nginx refuses.
#[test]
fn a_file_that_nginx_still_refuses_is_named_after_the_fix() {
    let folder = Folder::new();
    let text =
        format!("{QUIET}http {{\n    sendfile yes;\n    server {{ listen 80; location /a {{ alias /b/; }} }}\n}}\n");
    let path = folder.file("refused.conf", &text);
    let flags = ["--no-host", "--nginx-version", "1.31.5", "--fix", "--write", path.to_str().unwrap()];
    let output = doctor(&flags);
    let shown = said(&output);
    assert_eq!(output.status.code(), Some(1), "{shown}");
    assert!(shown.contains("nginx still refuses the file") && shown.contains("invalid value \"yes\""), "{shown}");
    assert!(!shown.contains("nginx -s reload"), "{shown}");
    let report = doctor(&["--no-host", "--nginx-version", "1.31.5", path.to_str().unwrap()]);
    assert!(said(&report).contains("  nginx -t says: invalid value \"yes\""), "{}", said(&report));
    let part = folder.file("part.conf", "server { sendfile yes; }\n");
    let report = said(&doctor(&["--no-host", part.to_str().unwrap()]));
    assert!(report.contains("This file is a part of a configuration. weir did not check its values"), "{report}");
    // A pattern that PCRE rejects is a refusal, too.
    let path = folder.file("pattern.conf", &format!("{QUIET}http {{ server {{ location ~ \"(\" {{ }} }} }}\n"));
    let output = doctor(&["--no-host", "--nginx-version", "1.31.5", "--fix", path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

/// The second limit_req becomes a duplicate of the first one. The file was refused before, for another reason.
#[test]
fn a_change_that_brings_a_refusal_is_not_written() {
    let folder = Folder::new();
    let text = format!(
        "{QUIET}http {{\n    limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n    server {{\n        listen 80;\n        limit_req zone=a;\n        limit_req zone=b;\n    }}\n}}\n"
    );
    let path = folder.file("new.conf", &text);
    let name = path.to_str().unwrap();
    for (program, flags) in [("nginx", ["--nginx-version", "1.31.5"]), ("weir", ["--for", "weir"])] {
        let run = |more: &[&str]| {
            let output = doctor(&[&["--no-host", "--only", "unknown_zone", "--fix", name], &flags[..], more].concat());
            (output.status.code(), said(&output))
        };
        for more in [&[][..], &["--write"]] {
            let (code, shown) = run(more);
            let is_dropped =
                shown.contains("[unknown_zone] is not fixed: it would bring another finding, refused_value");
            assert!(code == Some(1) && is_dropped && shown.contains(" -t says: "), "{program}: {shown}");
        }
        let (_, shown) = run(&["--lang", "ko"]);
        let is_dropped = shown.contains("[unknown_zone] 고치지 않습니다: 다른 결과가 생깁니다 (refused_value)");
        assert!(is_dropped && shown.contains(" -t의 메시지: ") && !shown.contains("says"), "{shown}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

/// A shell that lowers its limit, and a program that the shell starts.
#[test]
fn a_process_outside_of_units_inherits_its_limit() {
    let folder = Folder::new();
    let conf = folder.file("quiet.conf", QUIET);
    let mut shell = Command::new("sh")
        .args(["-c", "ulimit -n 300; sleep 60 & echo $!; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (parent, child) = (shell.id().to_string(), line.trim().to_owned());
    let told = |pid: &str| {
        let flags = ["--pid", pid, "--nginx-version", "1.22.1", "--only", "use_epoll", conf.to_str().unwrap()];
        String::from_utf8_lossy(&doctor(&flags).stdout).into_owned()
    };
    let (of_parent, of_child) = (told(&parent), told(&child));
    Command::new("kill").arg(&child).status().unwrap();
    shell.wait().unwrap();
    assert!(of_child.contains(&format!("Max open files of process {child}: 300")), "{of_child}");
    assert!(of_parent.contains(&format!("Max open files of process {parent}: 300")), "{of_parent}");
    // A test that a service or a container runs has their limits.
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    if !["service", "docker", "libpod", "kubepods", "containerd", "lxc"].iter().any(|word| groups.contains(word)) {
        let inherits = format!(", set by process {parent} (sh), from which it inherits the limit");
        assert!(of_child.contains(&inherits), "{of_child}");
        assert!(of_parent.contains(", set by the process itself, or prlimit: process "), "{of_parent}");
    }
}
