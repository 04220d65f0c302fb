//! `state`: a file of `server` statements that stores the API's changes across restarts.

use std::io;
use std::path::Path;

use weir_conf::{Statement, quote};
use weir_http::text::refusal::Refusal;
use weir_net::log::Os;
use weir_net::whole_file;

use crate::members::{Member, MemberKind, Members};

/// The largest file that weir reads: the largest group takes half of it.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The statements of a state file; none if the file does not exist yet. A refusal points at `statement`.
pub fn read(path: &str, statement: &Statement) -> Result<Vec<Statement>, Refusal> {
    let bytes = match whole_file::read(Path::new(path), FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| Refusal::whole(format!("open() \"{path}\" failed {}", Os(&error))))?,
    };
    let parsed = weir_conf::parse(&bytes, 0, &|_| false);
    if let Some(problem) = parsed.problems.first() {
        return Err(Refusal::whole(format!("{} in {path}", problem.what)));
    }
    let mut statements = parsed.statements;
    if let Some(other) = statements.iter().find(|statement| statement.name.text != "server") {
        return Err(Refusal::whole(format!(
            "\"{}\" in {path}, but a state file contains only \"server\" directives",
            other.name.text
        )));
    }
    statements.iter_mut().for_each(|read| read.at = statement.at);
    Ok(statements)
}

/// Writes the file anew, completely or not at all.
pub(super) fn write(path: &str, members: &Members) -> io::Result<()> {
    let mut text = Vec::new();
    for member in &members.list {
        line(member, &mut text);
    }
    whole_file::replace(Path::new(path), &text)
}

/// A time as nginx writes it: `10s`, or `1500ms`.
pub fn written_time(ms: u64) -> String {
    if ms.is_multiple_of(1000) { format!("{}s", ms / 1000) } else { format!("{ms}ms") }
}

fn line(member: &Member, text: &mut Vec<u8>) {
    let peer = member.pattern();
    text.extend_from_slice(b"server ");
    text.extend_from_slice(&quote(peer.server.as_bytes()));
    let mut words = vec![
        format!("weight={}", peer.weight),
        format!("max_conns={}", peer.max_conns),
        format!("max_fails={}", peer.max_fails),
        format!("fail_timeout={}s", peer.fail_timeout_s),
    ];
    if peer.slow_start_ms > 0 {
        words.push(format!("slow_start={}", written_time(peer.slow_start_ms)));
    }
    if !peer.route.is_empty() {
        words.push(format!("route={}", peer.route));
    }
    let flags = [(peer.backup, "backup"), (peer.down, "down"), (peer.drain, "drain")];
    words.extend(flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, word)| word.to_owned()));
    if let MemberKind::Named(named, _) = &member.kind {
        words.push("resolve".to_owned());
        words.extend(named.service.iter().map(|service| format!("service={service}")));
    }
    for word in words {
        text.push(b' ');
        text.extend_from_slice(&quote(word.as_bytes()));
    }
    text.extend_from_slice(b";\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members;
    use crate::tests::{name, peer};
    use weir_peers::peer::Peer;

    /// A path for one test, without a file.
    fn path(test: &str) -> String {
        let path = std::env::temp_dir().join(format!("weir-state-{test}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path.to_str().unwrap().to_owned()
    }

    fn statement() -> Statement {
        weir_conf::parse(b"\nstate f;", 0, &|_| false).statements.remove(0)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let path = path("round");
        let full = Peer {
            weight: 3,
            max_conns: 4,
            max_fails: 0,
            fail_timeout_s: 77,
            slow_start_ms: 1500,
            route: "a b;\"".to_owned(),
            backup: true,
            down: true,
            drain: true,
            ..peer("127.0.0.1:1")
        };
        let service = members::Named { service: Some("http".to_owned()), ..name("b.test", 0) };
        let fixed = vec![full, peer("unix:/a b;{")];
        let written = Members::new(fixed.clone(), vec![name("a.test", 80), service.clone()]);
        write(&path, &written).unwrap();
        let statement = statement();
        let read = read(&path, &statement).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(read.iter().all(|server| server.at == statement.at), "a problem is shown at the directive");
        let patterns = [&fixed[0], &fixed[1], &name("a.test", 80).pattern, &service.pattern].map(Peer::clone);
        assert_eq!(read.len(), patterns.len());
        for (server, expected) in read.iter().zip(patterns) {
            let (mut found, mut others) = (peer(server.text(0)), Vec::new());
            for at in 1..server.args.len() {
                if members::parameter(&mut found, server.text(at)).is_err() {
                    others.push(server.text(at));
                }
            }
            let left: &[&str] = match expected.server.as_str() {
                "a.test:80" => &["resolve"],
                "b.test:0" => &["resolve", "service=http"],
                _ => &[],
            };
            assert_eq!((&found, &others[..]), (&expected, left));
        }
    }

    #[test]
    fn a_state_file_contains_only_servers() {
        let path = path("content");
        for (text, expected) in [
            (None, Ok(0)),
            (Some(""), Ok(0)),
            (Some("# none\nserver a;\nserver b weight=x;\n"), Ok(2)),
            (Some("server a; zone b;"), Err("\"zone\" in PATH, but a state file contains only \"server\" directives")),
            (Some("server a"), Err("unexpected end of file, expecting \";\" or \"}\" in PATH")),
            (Some("server a; }"), Err("unexpected \"}\" in PATH")),
        ] {
            if let Some(text) = text {
                std::fs::write(&path, text).unwrap();
            }
            let found = read(&path, &statement()).map(|read| read.len()).map_err(|refusal| refusal.what);
            assert_eq!(found, expected.map_err(|words| words.replace("PATH", &path)), "{text:?}");
        }
        std::fs::remove_file(&path).unwrap();
        let words = read("/", &statement()).unwrap_err().what;
        assert!(words.starts_with("open() \"/\" failed (21: "), "{words}");
    }

    #[test]
    fn times_are_whole_seconds_where_possible() {
        for (ms, text) in [(0, "0s"), (1000, "1s"), (1500, "1500ms"), (60_000, "60s")] {
            assert_eq!(written_time(ms), text);
        }
    }
}
