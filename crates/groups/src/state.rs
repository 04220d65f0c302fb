//! `state`: a file of `server` statements that stores the API's changes across restarts.

use std::io;
use std::path::Path;

use weir_conf::{Statement, quote};
use weir_http::refusal::Refusal;
use weir_net::log::Os;
use weir_net::whole_file;

use crate::members::{Kind, Member, Members};

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
    if let Kind::Named(named, _) = &member.kind {
        words.push("resolve".to_owned());
        words.extend(named.service.iter().map(|service| format!("service={service}")));
    }
    for word in words {
        text.push(b' ');
        text.extend_from_slice(&quote(word.as_bytes()));
    }
    text.extend_from_slice(b";\n");
}
