//! Turns a remedy into a change of a copy of the configuration. The tried line is exactly the recommended text.

use std::path::PathBuf;

use weir_conf::edit::{self, Edit};
use weir_conf::{MemoryFiles, Statement, Tree};

use super::written::every;
use crate::beside;
use crate::change::{Difference, changes};
use crate::said::{Said, say};

/// The placeholder for a name that the reader knows: `upstream … { }`, `listen … reuseport`.
const ANY: &str = "…";
/// The start of an explanation that is not part of the line.
const ASIDE: &str = "   (";
/// Load-balancing methods: an upstream has one of them.
const METHODS: &[&str] = &["least_conn", "least_time", "ip_hash", "hash", "random"];

/// A copy of the configuration with the change.
#[derive(Clone, Debug)]
pub struct Made {
    /// The copy.
    pub tree: Tree,
    /// Files that differ, with their bytes.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// The differences.
    pub changes: Vec<Difference>,
}

/// Makes the recommended change in a copy. The error says why it is not a change of this file.
pub fn made(knob: &str, tree: &Tree) -> Result<Made, Said> {
    let elsewhere = || say!(REMEDY_NO_LINE);
    let line = knob.split(ASIDE).next().unwrap_or_default().trim();
    if !line.ends_with([';', '}']) {
        return Err(elsewhere());
    }
    let (wanted, problems) = weir_conf::load(&MemoryFiles::new().with("/line", line), "/line", "/", &|_| false);
    if !problems.is_empty() || wanted.root.is_empty() {
        return Err(elsewhere());
    }
    let mut edits = Vec::new();
    for statement in &wanted.root {
        edits.extend(edits_of(statement, tree, &wanted)?);
    }
    let mut files = Vec::new();
    let mut memory = MemoryFiles::new();
    for (number, source) in tree.files.iter().enumerate().filter(|(_, source)| !source.is_command_line) {
        let own: Vec<&Edit> = edits.iter().filter(|edit| edit.file as usize == number).collect();
        let bytes = edit::apply(&source.bytes, &own).map_err(|error| say!(NAMED, &source.name, error.to_string()))?;
        memory = memory.with(&source.name, &bytes);
        if !own.is_empty() {
            files.push((PathBuf::from(&source.name), bytes));
        }
    }
    let main = tree.files.first().map(|source| source.name.clone()).unwrap_or_default();
    let prefix = main.rfind('/').and_then(|at| main.get(..=at)).unwrap_or("/").to_owned();
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    let (copy, problems) = weir_conf::load(&memory, &main, &prefix, &opaque);
    if let Some(problem) = problems.first() {
        return Err(say!(COPY_CANNOT_READ, problem.sentence(&copy)));
    }
    let changes = changes(tree, &copy);
    if changes.is_empty() {
        return Err(say!(FILE_LINE_ALREADY));
    }
    Ok(Made { tree: copy, files, changes })
}

impl Made {
    /// The copy as one file. A single file stays as it is written; otherwise the included files are put in place.
    pub fn text(&self) -> Vec<u8> {
        match (self.tree.files.as_slice(), self.files.as_slice()) {
            ([_], [(_, bytes)]) => bytes.clone(),
            _ => weir_conf::lay_out(&self.tree.root),
        }
    }

    /// Whether the copy may stand in any directory: none of its paths is relative to the original's directory.
    pub fn is_movable(&self) -> bool {
        every(&self.tree).all(|statement| beside::relative(statement).is_none())
    }

    /// The names of the directives that differ, each once.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.changes.iter().map(|change| change.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The words of a statement as they are written.
fn line_of(statement: &Statement, source: &Tree) -> String {
    String::from_utf8_lossy(source.bytes(&statement.at)).trim().to_owned()
}

fn edits_of(wanted: &Statement, tree: &Tree, source: &Tree) -> Result<Vec<Edit>, Said> {
    let line = line_of(wanted, source);
    let name = wanted.name.text.as_str();
    let missing = |what: Said| Err(say!(FILE_NO_LINE, what));
    let found = match name {
        "upstream" if wanted.text(0) == ANY => {
            let mut edits = Vec::new();
            for inner in wanted.children() {
                edits.extend(in_upstreams(inner, tree, &line_of(inner, source)));
            }
            if edits.is_empty() { return missing(say!(UPSTREAM_BLOCK)) } else { edits }
        }
        "upstream" => return new_upstream(wanted, tree, source),
        "proxy_pass" => passed(wanted, tree, source),
        "keepalive" | "zone" => in_upstreams(wanted, tree, &line),
        _ if METHODS.contains(&name) => in_upstreams(wanted, tree, &line),
        "listen" if wanted.text(0) == ANY => listens(wanted, tree),
        "access_log" if wanted.text(0) == ANY => logs(wanted, tree),
        "server" => by_address(wanted, tree),
        "worker_processes" | "worker_rlimit_nofile" => at_top(name, &line, tree),
        "worker_connections" => in_block("events", name, &line, tree),
        _ if name.starts_with("proxy_") => beside_proxy_pass(wanted, tree, &line),
        _ if [
            "gzip",
            "ssl_session_",
            "keepalive_",
            "sendfile",
            "open_file_cache",
            "client_max_body_size",
            "large_client_",
        ]
        .iter()
        .any(|known| name.starts_with(known)) =>
        {
            in_block("http", name, &line, tree)
        }
        _ => return Err(say!(LAB_KNOWS_NO_PLACE, name)),
    };
    if found.is_empty() { missing(Said::from(name)) } else { Ok(found) }
}

/// Replaces each such statement. If there is none, the line becomes the first one of the block.
fn in_block(block: &str, name: &str, line: &str, tree: &Tree) -> Vec<Edit> {
    let own: Vec<Edit> = every(tree).filter(|one| one.name == *name).map(|one| edit::replace(one, line)).collect();
    if !own.is_empty() {
        return own;
    }
    tree.named(block).next().and_then(|block| edit::insert_into(tree, block, line)).into_iter().collect()
}

fn at_top(name: &str, line: &str, tree: &Tree) -> Vec<Edit> {
    let own: Vec<Edit> = tree.named(name).map(|one| edit::replace(one, line)).collect();
    let first = tree.root.first().filter(|_| own.is_empty());
    let begins = first.map(|first| Edit {
        file: first.at.file,
        span: weir_conf::Span { start: first.at.span.start, end: first.at.span.start },
        with: format!("{line};\n").into_bytes(),
    });
    own.into_iter().chain(begins).collect()
}

/// Adds the line to each upstream, or replaces the upstream's own line. A load-balancing method replaces any other
/// method.
fn in_upstreams(wanted: &Statement, tree: &Tree, line: &str) -> Vec<Edit> {
    let name = wanted.name.text.as_str();
    let is_method = METHODS.contains(&name);
    let is_same = |one: &&Statement| one.name == *name || (is_method && METHODS.contains(&one.name.text.as_str()));
    let upstreams = every(tree).filter(|one| one.name == *"upstream" && one.is_block());
    let edit = |upstream: &Statement| match upstream.children().iter().find(is_same) {
        Some(own) => Some(edit::replace(own, line)),
        // A method has to stand before keepalive.
        None if is_method => edit::insert_into(tree, upstream, line),
        None => upstream.named("server").last().and_then(|last| edit::insert_after(tree, last, line)),
    };
    upstreams.filter_map(edit).collect()
}

/// Adds an upstream block. The `proxy_pass` that names it is a separate statement of the remedy.
fn new_upstream(wanted: &Statement, tree: &Tree, source: &Tree) -> Result<Vec<Edit>, Said> {
    if every(tree).any(|one| one.name == *"upstream" && one.text(0) == wanted.text(0)) {
        return Err(say!(FILE_ALREADY_UPSTREAM, wanted.text(0)));
    }
    let inner: String = wanted.children().iter().map(|one| format!(" {};", line_of(one, source))).collect();
    let text = format!("upstream {} {{{inner} }}", wanted.text(0));
    let mut edit = tree
        .named("http")
        .next()
        .and_then(|http| edit::insert_into(tree, http, &text))
        .ok_or_else(|| say!(FILE_NO_HTTP_BLOCK))?;
    // A block has no semicolon at its end.
    edit.with.pop();
    Ok(vec![edit])
}

/// Makes `proxy_pass` name the new upstream, wherever it names the server of that upstream.
fn passed(wanted: &Statement, tree: &Tree, source: &Tree) -> Vec<Edit> {
    let name = wanted.text(0).trim_start_matches("http://");
    let block = source.root.iter().find(|one| one.name == *"upstream" && one.text(0) == name);
    let Some(server) = block.and_then(|block| block.named("server").next()) else { return Vec::new() };
    let rest = |one: &Statement| one.text(0).strip_prefix("http://")?.strip_prefix(server.text(0)).map(str::to_owned);
    every(tree)
        .filter(|one| one.name == *"proxy_pass")
        .filter_map(|one| Some((one, rest(one)?)))
        .filter(|(_, rest)| rest.is_empty() || rest.starts_with('/'))
        .map(|(one, rest)| edit::replace(one, &format!("proxy_pass http://{name}{rest}")))
        .collect()
}

/// Adds a parameter to each listen address, once for each address, as nginx requires.
fn listens(wanted: &Statement, tree: &Tree) -> Vec<Edit> {
    let parameter = wanted.text(1);
    let mut seen = Vec::new();
    let mut edits = Vec::new();
    for listen in every(tree).filter(|one| one.name == *"listen" && !one.text(0).starts_with("unix:")) {
        let has = listen.words().any(|word| word.text == parameter);
        if !has && !seen.contains(&listen.text(0)) {
            seen.push(listen.text(0));
            edits.push(edit::replace(listen, &format!("{} {parameter}", line_of(listen, tree))));
        }
    }
    edits
}

/// Adds parameters to each access log that is a file.
fn logs(wanted: &Statement, tree: &Tree) -> Vec<Edit> {
    let parameters: Vec<&str> = wanted.args.iter().skip(1).map(|word| word.text.as_str()).collect();
    let is_file =
        |one: &&Statement| one.name == *"access_log" && one.text(0) != "off" && !one.text(0).starts_with("syslog:");
    let edit = |one: &Statement| {
        // A log with a buffer has to name its format.
        let format = if one.args.len() < 2 { " combined" } else { "" };
        edit::replace(one, &format!("{}{format} {}", line_of(one, tree), parameters.join(" ")))
    };
    every(tree)
        .filter(is_file)
        .filter(|one| !one.words().any(|word| word.text.starts_with("buffer=")))
        .map(edit)
        .collect()
}

/// Replaces the server name `localhost` by an address.
fn by_address(wanted: &Statement, tree: &Tree) -> Vec<Edit> {
    let Some(address) = wanted.text(0).strip_suffix(ANY) else { return Vec::new() };
    let is_named = |one: &&Statement| {
        let named = match one.name.text.as_str() {
            "server" if !one.is_block() => one.text(0),
            "proxy_pass" => one.text(0).trim_start_matches("http://"),
            _ => return false,
        };
        named == "localhost" || named.starts_with("localhost:") || named.starts_with("localhost/")
    };
    let edit = |one: &Statement| {
        edit::replace(one, &line_of(one, tree).replacen("localhost", address.trim_end_matches(':'), 1))
    };
    every(tree).filter(is_named).map(edit).collect()
}

/// Adds the line wherever there is a `proxy_pass`, or replaces the line that applies there. A block with an entry of
/// its own no longer inherits an outer list, so the entry goes to the end of that list.
fn beside_proxy_pass(wanted: &Statement, tree: &Tree, line: &str) -> Vec<Edit> {
    let name = wanted.name.text.as_str();
    let is_list = matches!(name, "proxy_set_header" | "proxy_hide_header");
    let is_same = |one: &Statement| one.name == *name && (!is_list || one.text(0).eq_ignore_ascii_case(wanted.text(0)));
    let mut edits: Vec<Edit> = Vec::new();
    let mut add = |edit: Option<Edit>| edits.extend(edit.filter(|edit| !edits.contains(edit)));
    // Each block with its outer blocks; the innermost block is last.
    let mut open: Vec<Vec<&Statement>> = tree.root.iter().map(|one| vec![one]).collect();
    while let Some(way) = open.pop() {
        let Some(block) = way.last() else { continue };
        open.extend(
            block.children().iter().filter(|child| child.is_block()).map(|child| [way.as_slice(), &[child]].concat()),
        );
        let Some(pass) = block.children().iter().find(|one| one.name == *"proxy_pass") else { continue };
        let scope = way.iter().rev().find_map(|around| {
            let own: Vec<&Statement> = around.children().iter().filter(|one| one.name == *name).collect();
            (!own.is_empty()).then_some(own)
        });
        match scope {
            Some(own) => match own.iter().find(|one| is_same(one)) {
                Some(same) => add(Some(edit::replace(same, &merged(same, wanted, line)))),
                None => add(own.last().and_then(|last| edit::insert_after(tree, last, line))),
            },
            None => add(edit::insert_after(tree, pass, line)),
        }
    }
    edits
}

/// A merged list of words: the present words and the wanted words.
fn merged(same: &Statement, wanted: &Statement, line: &str) -> String {
    if wanted.name != *"proxy_cache_use_stale" {
        return line.to_owned();
    }
    let mut words: Vec<&str> = same.args.iter().map(|word| word.text.as_str()).filter(|word| *word != "off").collect();
    words.extend(wanted.args.iter().map(|word| word.text.as_str()));
    words.dedup();
    format!("{} {}", wanted.name.text, words.join(" "))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::why::rules;
    use crate::why::signals::Signals;

    fn tree(text: &str) -> Tree {
        weir_conf::load(&MemoryFiles::new().with("/n.conf", text), "/n.conf", "/", &|_| false).0
    }

    const PLAIN: &str = "worker_processes 1;\nevents { }\nhttp {\n    access_log /var/log/nginx/a.log;\n    upstream app {\n        server localhost:3000;\n    }\n    server {\n        listen 80;\n        proxy_set_header Host x;\n        location / {\n            proxy_pass http://app;\n        }\n        location /b { proxy_pass http://10.0.0.9:81/c; }\n    }\n}\n";

    fn after(knob: &str) -> String {
        String::from_utf8(made(knob, &tree(PLAIN)).unwrap().text()).unwrap()
    }

    #[test]
    fn a_line_goes_where_it_belongs() {
        let has = |knob: &str, part: &str| assert!(after(knob).contains(part), "{knob}:\n{}", after(knob));
        has("worker_processes 2;", "worker_processes 2;\nevents");
        has(
            "worker_rlimit_nofile 1024;   (or LimitNOFILE= of its systemd unit)",
            "worker_rlimit_nofile 1024;\nworker_processes",
        );
        has("worker_connections 1024;", "events { worker_connections 1024; }");
        has(
            "keepalive 39;   (the requests in flight at once, plus a fifth)",
            "server localhost:3000;\n        keepalive 39;",
        );
        has("upstream … { keepalive 64; } proxy_http_version 1.1;", "keepalive 64;\n    }");
        has("upstream … { keepalive_requests 1000; }", "keepalive_requests 1000;\n    }");
        has("client_max_body_size 10m;   (its default is 1m)", "http {\n    client_max_body_size 10m;");
        has(
            "proxy_next_upstream error timeout http_503;",
            "proxy_pass http://app;\n            proxy_next_upstream error",
        );
        has("proxy_cache_key \"$host$uri\";   (without $msec)", "proxy_cache_key \"$host$uri\";");
        has("least_conn;", "{\n        least_conn;\n        server");
        has("gzip on; gzip_types text/css;", "gzip_types text/css;");
        has("listen … reuseport;", "listen 80 reuseport;");
        has("access_log … buffer=64k flush=1s;", "access_log /var/log/nginx/a.log combined buffer=64k flush=1s;");
        has("server 127.0.0.1:…;   (instead of localhost)", "server 127.0.0.1:3000;");
        has("proxy_http_version 1.1;", "proxy_pass http://app;\n            proxy_http_version 1.1;");
        // With a `proxy_set_header` of its own, the location would lose those of its server.
        let field = after("proxy_http_version 1.1; proxy_set_header Connection \"\";");
        assert_eq!(field.matches("proxy_set_header Connection \"\";").count(), 1, "{field}");
        assert!(field.contains("proxy_set_header Host x;\n        proxy_set_header Connection \"\";"), "{field}");
        let pool = after("upstream origin { server 10.0.0.9:81; keepalive 64; } proxy_pass http://origin;");
        assert!(pool.contains("upstream origin { server 10.0.0.9:81; keepalive 64; }\n"), "{pool}");
        assert!(pool.contains("proxy_pass http://origin/c;") && pool.contains("proxy_pass http://app;"), "{pool}");
    }

    #[test]
    fn what_is_no_line_of_the_file_says_so() {
        let why = |knob: &str, text: &str| made(knob, &tree(text)).unwrap_err();
        assert_eq!(why("a larger quota for edge (cpu.max)", PLAIN), "the remedy is not a line of this file");
        assert_eq!(why("POOL=64", PLAIN), "the remedy is not a line of this file");
        assert_eq!(why("worker_processes 1;", PLAIN), "the file has this line already");
        let without = "events { } http { server { listen 80; location / { proxy_pass http://10.0.0.9:81; } } }";
        assert!(why("keepalive 64;", without).contains("no keepalive"), "{}", why("keepalive 64;", without));
        assert!(why("upstream … { keepalive 64; }", without).contains("no upstream block"));
        assert!(why("rewrite_all on;", PLAIN).contains("knows no place for the line"));
    }

    #[test]
    fn stale_answers_keep_the_reasons_they_had() {
        let text = PLAIN.replace("proxy_pass http://app;", "proxy_pass http://app; proxy_cache_use_stale error;");
        let made = made("proxy_cache_use_stale updating; proxy_cache_background_update on;", &tree(&text)).unwrap();
        let text = String::from_utf8(made.text()).unwrap();
        assert!(text.contains("proxy_cache_use_stale error updating;"), "{text}");
        assert_eq!(made.names(), ["proxy_cache_background_update", "proxy_cache_use_stale"]);
    }

    #[test]
    fn a_copy_stands_elsewhere_only_without_relative_paths() {
        assert!(made("worker_processes 2;", &tree(PLAIN)).unwrap().is_movable());
        let text = PLAIN.replace("listen 80;", "listen 80; ssl_certificate cert.pem;");
        assert!(!made("worker_processes 2;", &tree(&text)).unwrap().is_movable());
    }

    /// Each recommended text that has the form of a line can be parsed and has a place.
    #[test]
    fn every_line_that_a_rule_recommends_can_be_made() {
        let whole = PLAIN.replace("worker_processes 1", "worker_processes 7").replace(
            "proxy_pass http://app;",
            "proxy_pass http://app; proxy_next_upstream error timeout http_503; proxy_cache one;",
        );
        let mut count = 0;
        for rule in rules::all() {
            let mut signals = Signals::quiet();
            (rule.fires)(&mut signals);
            let knob = (rule.check)(&signals).unwrap_or_default().knob;
            if knob.split(ASIDE).next().unwrap_or_default().trim().ends_with([';', '}']) {
                let made = made(&knob, &tree(&whole));
                assert!(made.is_ok(), "{}: {knob}: {:?}", rule.id, made.err());
                count += 1;
            }
        }
        assert!(count >= 14, "{count}");
    }
}
