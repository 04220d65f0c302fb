//! Adds to a configuration the means to watch it: an account on a socket of the block, and for nginx a private log.
//!
//! Nothing else changes. The block mounts the copy over the file in its mount namespace, so that relative paths stay
//! valid.

use std::path::{Path, PathBuf};

use weir_conf::edit::{self, Edit};
use weir_conf::{Statement, Tree};

use super::sink::{CACHE_MAPS, CACHES, FIELDS, LIMITS, MARK, MIRROR_FIELDS, MIRROR_MARK, NO_CACHES, NO_LIMITS};
use super::way;
use crate::said::{Said, say};

/// The socket of the account, in the block's own `/run`.
pub const ACCOUNT: &str = "/run/weir-why.sock";
/// The socket for nginx's log, in the block's own `/run`.
pub const SINK: &str = "/run/weir-why-log.sock";

/// A change that is not a directive: the server of an upstream with this address is marked down.
pub const DOWN: &str = "server … down";

/// A counter-experiment's new value for a statement: the name, and the value.
pub type NewValue = (String, String);

/// The files that differ in a watched configuration, with their bytes. The edge writes its error log to `log` too.
///
/// # Errors
/// There is no `http` block, or a change touches what the tap does.
pub fn tapped(tree: &Tree, is_weir: bool, log: &Path, changes: &[NewValue]) -> Result<Vec<(PathBuf, Vec<u8>)>, Said> {
    let http = tree.named("http").next().ok_or_else(|| say!(ERR_NO_HTTP))?;
    let mut edits = Vec::new();
    let account = if is_weir { "location / { api; }" } else { "location / { stub_status; }" };
    let server = format!("server {{ listen unix:{ACCOUNT}; access_log off; {account} }}");
    edits.extend(into(tree, http, &server, false));
    if !is_weir {
        let access = access_log();
        let is_limited = names(http, &["limit_req", "limit_conn"]);
        let has_cache = names(http, &["proxy_cache", "fastcgi_cache", "uwsgi_cache", "scgi_cache"]);
        let limits = if is_limited { LIMITS } else { NO_LIMITS };
        let caches = if has_cache { CACHES } else { NO_CACHES };
        let auth = if names(http, &["auth_request"]) { way::AUTH } else { "|-" };
        let more = format!("{limits}{caches}{}{auth}", way::FIELDS);
        edits.extend(into(tree, http, &format!("log_format weirwhy '{MARK}{FIELDS}{more}'"), true));
        // nginx refuses `map_hash_bucket_size` behind the first map, so these maps come last.
        let end = weir_conf::Span { start: http.end.span.start, end: http.end.span.start };
        let maps = CACHE_MAPS.iter().filter(|_| has_cache).chain(&way::HEAD_MAPS);
        edits.extend(maps.map(|map| Edit { file: http.at.file, span: end, with: format!("{map}\n").into_bytes() }));
        edits.extend(times(tree, http));
        edits.extend(into(tree, http, &access, true));
        // A block with an access log of its own does not inherit ours.
        let mut open: Vec<&Statement> = vec![http];
        while let Some(block) = open.pop() {
            open.extend(block.children().iter().filter(|child| child.is_block()));
            let own: Vec<&Statement> = block.named("access_log").collect();
            let Some(first) = own.first() else { continue };
            // `off` removes every log of its level.
            let off = own.iter().filter(|log| log.text(0) == "off");
            edits.extend(off.filter(|_| block.name != "http").map(|log| edit::replace(log, &access)));
            edits.extend(
                own.iter()
                    .filter(|log| log.text(0) == "off" && block.name == "http")
                    .filter_map(|log| edit::remove(tree, log)),
            );
            if block.name != "http" && own.iter().all(|log| log.text(0) != "off") {
                edits.extend(edit::insert_after(tree, first, &access));
            }
        }
    }
    let level = format!("error_log {} warn", log.display());
    // A block with an error log of its own does not inherit the outer one.
    let mut open: Vec<&Statement> = tree.root.iter().filter(|statement| statement.is_block()).collect();
    while let Some(block) = open.pop() {
        open.extend(block.children().iter().filter(|child| child.is_block()));
        let first = block.named("error_log").next();
        edits.extend(first.and_then(|first| edit::insert_after(tree, first, &level)));
    }
    match tree.root.first() {
        Some(first) => edits.push(Edit {
            file: first.at.file,
            span: weir_conf::Span { start: first.at.span.start, end: first.at.span.start },
            with: format!("{level}; ").into_bytes(),
        }),
        None => return Err(say!(ERR_EMPTY)),
    }
    for (name, value) in changes {
        edits.extend(change(tree, name, value));
    }
    files(tree, &edits)
}

/// The statements that note times of a request. A block with statements of its own does not inherit those of the outer one.
fn times(tree: &Tree, http: &Statement) -> Vec<Edit> {
    let mut edits: Vec<Edit> = into(tree, http, way::HEAD, true).into_iter().collect();
    let (mut mirrors, mut locations) = (Vec::new(), Vec::new());
    let mut open: Vec<&Statement> = vec![http];
    while let Some(block) = open.pop() {
        open.extend(block.children().iter().filter(|child| child.is_block()));
        if block.name != "http"
            && let Some(first) = block.named("add_header").next()
        {
            edits.extend(edit::insert_after(tree, first, way::HEAD));
        }
        if let Some(first) = block.named("auth_request").chain(block.named("auth_request_set")).next() {
            edits.extend(edit::insert_after(tree, first, way::AUTH_SET));
        }
        mirrors.extend(block.named("mirror").map(|mirror| mirror.text(0)).filter(|uri| *uri != "off"));
        locations.extend((block.name == "location").then_some(block));
    }
    let is_mirror =
        |location: &&Statement| location.words().last().is_some_and(|uri| mirrors.contains(&uri.text.as_str()));
    let log = format!("log_subrequest on; access_log syslog:server=unix:{SINK},nohostname weirmirror");
    edits.extend(locations.into_iter().filter(is_mirror).filter_map(|location| into(tree, location, &log, true)));
    if !mirrors.is_empty() {
        edits.extend(into(tree, http, &format!("log_format weirmirror '{MIRROR_MARK}{MIRROR_FIELDS}'"), true));
    }
    edits
}

/// Whether a block, or a block inside it, has one of these directives.
fn names(block: &Statement, wanted: &[&str]) -> bool {
    let mut open: Vec<&Statement> = vec![block];
    while let Some(statement) = open.pop() {
        if wanted.contains(&statement.name.text.as_str()) {
            return true;
        }
        open.extend(statement.children());
    }
    false
}

/// The changed files of a configuration, without a tap.
///
/// # Errors
/// None of the changes is about anything in it.
pub fn changed(tree: &Tree, changes: &[NewValue]) -> Result<Vec<(PathBuf, Vec<u8>)>, Said> {
    let edits: Vec<Edit> = changes.iter().flat_map(|(name, value)| change(tree, name, value)).collect();
    if edits.is_empty() && !changes.is_empty() {
        let names: Vec<&str> = changes.iter().map(|(name, _)| name.as_str()).collect();
        return Err(say!(ERR_NOTHING_TO_CHANGE, names.join(", ")));
    }
    files(tree, &edits)
}

/// Replaces a directive's value wherever it is set. If it is set nowhere, adds it to its own block.
fn change(tree: &Tree, name: &str, value: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let mut open: Vec<&Statement> = tree.root.iter().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children());
        if name == DOWN && statement.name == "server" && !statement.is_block() && statement.text(0) == value {
            let words: Vec<String> = statement.words().map(|word| word.text.clone()).collect();
            found.push(edit::replace(statement, &format!("{} down", words.join(" "))));
        }
        if statement.name == name {
            found.push(edit::replace(statement, &format!("{name} {value}")));
        }
    }
    if found.is_empty() && name == "worker_connections" {
        found.extend(
            tree.named("events").next().and_then(|events| into(tree, events, &format!("{name} {value}"), true)),
        );
    }
    if found.is_empty() && matches!(name, "worker_processes" | "worker_rlimit_nofile") {
        found.extend(tree.root.first().map(|first| Edit {
            file: first.at.file,
            span: weir_conf::Span { start: first.at.span.start, end: first.at.span.start },
            with: format!("{name} {value};\n").into_bytes(),
        }));
    }
    found
}

fn access_log() -> String {
    // Without the host name, which other systems write in other places of the line.
    format!("access_log syslog:server=unix:{SINK},nohostname weirwhy")
}

/// Inserts a first statement into a block. With `ends` false, the statement is a block and needs no semicolon.
fn into(tree: &Tree, block: &Statement, line: &str, ends: bool) -> Option<Edit> {
    let mut edit = edit::insert_into(tree, block, line)?;
    if !ends {
        edit.with.pop();
    }
    Some(edit)
}

fn files(tree: &Tree, edits: &[Edit]) -> Result<Vec<(PathBuf, Vec<u8>)>, Said> {
    let mut changed = Vec::new();
    for (number, source) in tree.files.iter().enumerate() {
        let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
        if !own.is_empty() {
            let bytes =
                edit::apply(&source.bytes, &own).map_err(|error| say!(ERR_FILE, &source.name, error.to_string()))?;
            changed.push((PathBuf::from(&source.name), bytes));
        }
    }
    Ok(changed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::MemoryFiles;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    fn after(text: &str, is_weir: bool, changes: &[NewValue]) -> String {
        let files = tapped(&tree(text), is_weir, Path::new("/b/edge.log"), changes).unwrap();
        assert_eq!(files.len(), 1);
        String::from_utf8(files[0].1.clone()).unwrap()
    }

    #[test]
    fn an_nginx_gets_a_log_wherever_it_has_one() {
        let text = "events { worker_connections 32; }\nhttp {\n    access_log off;\n    server {\n        access_log /x;\n        location /a { access_log off; }\n        location /b { }\n    }\n}\n";
        let tapped = after(text, false, &[("worker_connections".into(), "26".into())]);
        assert!(tapped.starts_with("error_log /b/edge.log warn; events { worker_connections 26; }"), "{tapped}");
        assert_eq!(
            tapped.matches("syslog:server=unix:/run/weir-why-log.sock,nohostname weirwhy;").count(),
            3,
            "{tapped}"
        );
        assert_eq!(tapped.matches("access_log off;").count(), 1, "only the account's own: {tapped}");
        assert!(tapped.contains("access_log /x;\n        access_log syslog:"), "{tapped}");
        assert!(tapped.contains("location / { stub_status; } }\n"), "{tapped}");
        let (_, problems) = weir_conf::load(&MemoryFiles::new().with("/n.conf", tapped), "/n.conf", "/", &|_| false);
        assert_eq!(problems, []);
    }

    /// A level with an error log of its own would hide its lines from the private log.
    #[test]
    fn every_level_with_a_log_of_its_own_gets_the_private_one() {
        let text = "error_log /a;\nhttp {\n    error_log /b crit;\n    server {\n        error_log /c;\n        location / { }\n    }\n}\n";
        let tapped = after(text, true, &[]);
        assert_eq!(tapped.matches("error_log /b/edge.log warn").count(), 3, "{tapped}");
        assert!(tapped.contains("error_log /b crit;\n    error_log /b/edge.log warn;"), "{tapped}");
        assert!(!after("http { server { listen 80; } }", false, &[]).contains("$limit_req_status"));
        assert!(
            after("http { server { limit_req zone=a; } }", false, &[])
                .contains("|$limit_req_status|$limit_conn_status||")
        );
    }

    #[test]
    fn a_cache_tells_what_its_answers_forbid() {
        let text = "http {\n    server { listen 80; location / { proxy_cache one; } }\n    map_hash_max_size 64;\n}\n";
        let tapped = after(text, false, &[]);
        assert!(tapped.find("map_hash_max_size") < tapped.find("map $upstream_http_"), "{tapped}");
        assert_eq!(tapped.matches("map $upstream_http_").count(), 5, "{tapped}");
        assert!(tapped.contains("$ssl_protocol|-|-|$weirwhy_cookie"), "{tapped}");
        let (_, problems) = weir_conf::load(&MemoryFiles::new().with("/n.conf", tapped), "/n.conf", "/", &|_| false);
        assert_eq!(problems, []);
        assert!(!after(text, true, &[]).contains("weirwhy_"));
    }

    #[test]
    fn every_block_that_inherits_nothing_notes_the_times() {
        let text = "http {\n    auth_request /check;\n    server {\n        add_header A b;\n        location / { add_header B c; auth_request_set $u 1; mirror /copy; }\n        \
            location /none { auth_request off; mirror off; }\n        location = /copy { internal; proxy_pass http://b; }\n    }\n}\n";
        let tapped = after(text, false, &[]);
        assert_eq!(tapped.matches("add_header X-Weirwhy $weirwhy_none always;").count(), 3, "{tapped}");
        assert_eq!(tapped.matches("auth_request_set $weirwhy_auth $request_time;").count(), 3, "{tapped}");
        assert!(tapped.contains("location = /copy { log_subrequest on; access_log syslog:"), "{tapped}");
        assert_eq!(tapped.matches(" weirmirror").count(), 2, "{tapped}");
        assert!(tapped.contains("$connection_requests|$weirwhy_auth'"), "{tapped}");
        let (_, problems) = weir_conf::load(&MemoryFiles::new().with("/n.conf", tapped), "/n.conf", "/", &|_| false);
        assert_eq!(problems, []);
        assert!(!after("http { server { listen 80; } }", false, &[]).contains("$weirwhy_auth"));
    }

    #[test]
    fn a_server_is_taken_down() {
        let tree = tree("http { upstream a { server one:1 weight=2; server two:1; } server { listen 80; } }");
        let files = changed(&tree, &[(DOWN.to_owned(), "one:1".to_owned())]).unwrap();
        let text = String::from_utf8(files[0].1.clone()).unwrap();
        assert!(text.contains("{ server one:1 weight=2 down; server two:1; }"), "{text}");
    }

    #[test]
    fn a_weir_says_it_all_itself() {
        let tapped = after("http { server { listen 80; } }", true, &[]);
        assert!(tapped.contains("location / { api; } }") && !tapped.contains("weirwhy|"), "{tapped}");
        assert!(
            super::tapped(&tree("events { }"), true, Path::new("/x"), &[]).is_err_and(|why| why.contains("no http"))
        );
    }
}
