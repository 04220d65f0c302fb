//! Changes that the doctor proposes, writes and takes back.

use super::*;

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
