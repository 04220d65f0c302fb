//! Redis and Valkey, by `INFO` as an inline command of their protocol.

use std::io::{BufRead, BufReader, Read, Write};

use super::program::Probe;
use super::ways::{ANSWER_MAX, Reading, connect, url};

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

/// Takes a reading. The place is `HOST:PORT`, with an optional `:PASSWORD@` or `USER:PASSWORD@` in front.
pub fn read(probe: &Probe) -> Result<Reading, String> {
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
    stream.write_all(b"INFO all\r\n").map_err(failed)?;
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
            reader.take(length.min(ANSWER_MAX)).read_to_end(&mut text).map_err(failed)?;
            return Ok(of(&String::from_utf8_lossy(&text)));
        }
        if !line.starts_with('+') {
            return Err(format!("{at}: the answer is not in Redis' protocol"));
        }
    }
}

fn of(info: &str) -> Reading {
    let mut found = Reading::new();
    for line in info.lines() {
        let Some((name, value)) = line.split_once(':') else { continue };
        if let Some((_, own)) = FIELDS.iter().find(|(known, _)| *known == name) {
            found.extend(value.trim().parse().ok().map(|value: f64| ((*own).to_owned(), value)));
        }
        // cmdstat_get:calls=21,usec=175,usec_per_call=8.33
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
        assert_eq!(read(&probe).unwrap()["commands"], 5.0);
        assert!(server.unwrap().join().unwrap().starts_with("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"));
    }
}
