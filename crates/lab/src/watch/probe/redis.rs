//! Redis and Valkey, by `INFO` as an inline command of their protocol.

use std::io::{BufRead, BufReader, Read, Write};

use super::detail::{Detail, shown};
use super::program::Probe;
use super::ways::{ANSWER_MAX, Reading, connect, url};
use crate::said::say;

/// The group of commands: µs and calls in all; the longest, µs.
pub const COMMAND: &str = "command";
/// Entries of the slow log that were there before the load, by their numbers.
const LOGGED: &str = "logged";

/// The names in `INFO`, and their names here.
const FIELDS: &[(&str, &str)] = &[
    ("total_commands_processed", "commands"),
    ("evicted_keys", "evicted"),
    ("rejected_connections", "refused"),
    ("connected_clients", "clients"),
    ("blocked_clients", "blocked"),
    ("used_memory", "memory"),
    ("maxmemory", "memory_max"),
];

/// Commands of this probe itself, by their names in `INFO`.
const OWN: [&str; 3] = ["info", "slowlog|get", "auth"];
/// Most entries of the slow log that are read.
const SLOW_MAX: usize = 128;

/// Takes a reading. The place is `HOST:PORT`, with an optional `:PASSWORD@` or `USER:PASSWORD@` in front.
pub fn read(probe: &Probe, detail: &mut Detail) -> Result<Reading, String> {
    let (login, place) = probe.at.rsplit_once('@').unwrap_or(("", &probe.at));
    let (at, _) = url(place);
    let failed = |error: std::io::Error| format!("{at}: {error}");
    let mut stream = connect(&at)?;
    let (user, password) = login.split_once(':').unwrap_or(("", login));
    if !password.is_empty() {
        let words: Vec<&str> = ["AUTH", user, password].into_iter().filter(|word| !word.is_empty()).collect();
        let mut command = format!("*{}\r\n", words.len());
        words.iter().for_each(|word| command.push_str(&format!("${}\r\n{word}\r\n", word.len())));
        stream.write_all(command.as_bytes()).map_err(failed)?;
    }
    stream.write_all(format!("INFO all\r\nSLOWLOG GET {SLOW_MAX}\r\n").as_bytes()).map_err(failed)?;
    let mut reader = BufReader::new(stream.take(ANSWER_MAX));
    let mut line = String::new();
    // The answer to AUTH comes before the answer to INFO.
    loop {
        line.clear();
        if reader.read_line(&mut line).map_err(failed)? == 0 {
            return Err(format!("{at}: it closed the connection"));
        }
        if let Some(error) = line.strip_prefix('-') {
            return Err(format!("{at}: {} (--probe redis=:PASSWORD@HOST:PORT)", error.trim()));
        }
        if let Some(length) = line.strip_prefix('$') {
            let length: u64 =
                length.trim().parse().map_err(|_| format!("{at}: the answer is not in Redis' protocol"))?;
            let mut text = Vec::new();
            reader.by_ref().take(length.min(ANSWER_MAX) + 2).read_to_end(&mut text).map_err(failed)?;
            let text = String::from_utf8_lossy(&text);
            commands(&text, detail);
            if slow(&mut reader, detail).is_none() {
                detail.lack(say!(REDIS_LACKS_SLOWLOG));
            }
            return Ok(of(&text));
        }
        if !line.starts_with('+') {
            return Err(format!("{at}: the answer is not in Redis' protocol"));
        }
    }
}

/// The time and the calls of each command: `cmdstat_get:calls=21,usec=175,usec_per_call=8.33`.
fn commands(info: &str, detail: &mut Detail) {
    for line in info.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let Some(command) = name.strip_prefix("cmdstat_").filter(|command| !OWN.contains(command)) else { continue };
        let number = |name: &str| {
            value.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse::<f64>().ok())
        };
        if let Some((usec, calls)) = number("usec").zip(number("calls")) {
            detail.total(COMMAND, &shown(command), &[usec, calls]);
        }
    }
}

/// The entries of the slow log: a number, a time, µs, and the words of the command, of which only the first is read. An entry from
/// before the load is the same in the first reading. `None`: the answer is no list.
fn slow(reader: &mut impl BufRead, detail: &mut Detail) -> Option<()> {
    for _ in 0..length(reader, '*')?.min(SLOW_MAX) {
        let fields = length(reader, '*')?;
        let (id, _, usec) = (length(reader, ':')?, length(reader, ':')?, length(reader, ':')?);
        let words = length(reader, '*')?;
        let mut command = String::new();
        for word in 0..words {
            let text = text(reader)?;
            if word == 0 {
                command = shown(&text.to_lowercase());
            }
        }
        for _ in 4..fields {
            text(reader)?;
        }
        if detail.looks <= 1 {
            detail.total(LOGGED, &id.to_string(), &[1.0]);
        } else if detail.first.get(LOGGED).is_none_or(|known| !known.contains_key(&id.to_string())) {
            detail.largest(COMMAND, &command, usec as f64);
        }
    }
    Some(())
}

/// A line of Redis' protocol with a number.
fn length(reader: &mut impl BufRead, mark: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.strip_prefix(mark)?.trim().parse().ok()
}

fn text(reader: &mut impl BufRead) -> Option<String> {
    let length = length(reader, '$')? as u64;
    let mut text = Vec::new();
    reader.take(length.saturating_add(2).min(ANSWER_MAX)).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).trim_end_matches("\r\n").to_owned())
}

fn of(info: &str) -> Reading {
    let mut found = Reading::new();
    for line in info.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let Some((_, own)) = FIELDS.iter().find(|(known, _)| *known == name) {
            found.extend(value.trim().parse().ok().map(|value: f64| ((*own).to_owned(), value)));
        }
        // db0:keys=100000,expires=0,avg_ttl=0
        if name.starts_with("db") && value.starts_with("keys=") {
            let keys = value.split([',', '=']).nth(1).and_then(|keys| keys.parse::<f64>().ok());
            *found.entry("keys".to_owned()).or_default() += keys.unwrap_or(0.0);
        }
        if name.starts_with("cmdstat_") {
            let usec = value.split(',').find_map(|part| part.strip_prefix("usec=")?.parse::<f64>().ok());
            *found.entry("command_us".to_owned()).or_default() += usec.unwrap_or(0.0);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::watch::probe::kind;

    #[test]
    fn commands_have_their_time_and_only_their_names_are_read() {
        let mut detail = Detail::default();
        let log = |id: u64, usec: u64| {
            format!(
                "*6\r\n:{id}\r\n:1796060000\r\n:{usec}\r\n*2\r\n$4\r\nKEYS\r\n$6\r\nsecret\r\n$3\r\n1:2\r\n$0\r\n\r\n"
            )
        };
        for (calls, logged) in
            [(1, format!("*1\r\n{}", log(7, 99_000))), (11, format!("*2\r\n{}{}", log(8, 40_000), log(7, 99_000)))]
        {
            detail.begin();
            commands(
                &format!(
                    "cmdstat_keys:calls={calls},usec={calls}000,usec_per_call=1\r\ncmdstat_info:calls=9,usec=9\r\n"
                ),
                &mut detail,
            );
            assert_eq!(slow(&mut logged.as_bytes(), &mut detail), Some(()));
        }
        assert_eq!(detail.grew(COMMAND), [("keys".to_owned(), vec![10_000.0, 10.0])]);
        // The entry from before the load does not count.
        assert_eq!(detail.most(COMMAND, "keys"), Some(40_000.0));
        assert!(!serde_json::to_string(&detail).unwrap().contains("secret"));
        assert_eq!(slow(&mut "-NOPERM\r\n".as_bytes(), &mut detail), None);
    }

    #[test]
    fn an_info_is_read() {
        let info = "# Clients\r\nconnected_clients:3\r\ntotal_commands_processed:900\r\ncmdstat_get:calls=2,usec=10,x=5\r\ncmdstat_set:calls=1,usec=7\r\n";
        let found = of(info);
        assert_eq!((found["clients"], found["commands"], found["command_us"]), (3.0, 900.0, 17.0));
    }

    #[test]
    fn a_server_is_asked_with_its_password() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let server = std::thread::Builder::new().spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = Vec::new();
            while !heard.ends_with(b"INFO all\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                heard.push(byte[0]);
            }
            let body = "total_commands_processed:5\r\n";
            write!(stream, "+OK\r\n${}\r\n{body}\r\n", body.len()).unwrap();
            String::from_utf8(heard).unwrap()
        });
        let probe = Probe {
            kind: kind("redis").unwrap(),
            process: String::new(),
            pid: 0,
            at: format!(":pw@{at}"),
            dir: "/".into(),
        };
        assert_eq!(read(&probe, &mut Detail::default()).unwrap()["commands"], 5.0);
        assert!(server.unwrap().join().unwrap().starts_with("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"));
    }
}
