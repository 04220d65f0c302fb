//! `--name value` pairs, and nothing more of a command line.

use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

/// The flags of one verb, as given.
pub struct Flags(Vec<(String, String)>);

impl Flags {
    /// Reads `--name value` pairs; `--ws` alone stands without a value.
    pub fn parse(mut args: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut pairs = Vec::new();
        while let Some(arg) = args.next() {
            let name = arg.strip_prefix("--").ok_or_else(|| io::Error::other(format!("unexpected \"{arg}\"")))?;
            let value = if name == "ws" {
                String::new()
            } else {
                args.next().ok_or_else(|| io::Error::other(format!("--{name} needs a value")))?
            };
            pairs.push((name.to_string(), value));
        }
        Ok(Flags(pairs))
    }

    /// The text of a flag that may be absent.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// A flag that must be there and must parse.
    pub fn need<T: FromStr>(&self, name: &str) -> io::Result<T> {
        let text = self.text(name).ok_or_else(|| io::Error::other(format!("--{name} is missing")))?;
        text.parse().map_err(|_| io::Error::other(format!("--{name} does not understand \"{text}\"")))
    }

    /// An address such as `127.0.0.1:8080`.
    pub fn address(&self, name: &str) -> io::Result<SocketAddr> {
        self.need(name)
    }
}
