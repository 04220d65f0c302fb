//! The edges of this machine, found by their dashboards: `weir top` and `weir status` ask them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_edge::dash::place;
use weir_edge::keeper::beacon;
use weir_load::once::{self, Once};
use weir_words::{Said, say};

use crate::texts;

/// Longest time to wait for an answer; a document takes up to two seconds.
const TIMEOUT: Duration = Duration::from_secs(6);
/// Longest time in which a dashboard on this machine shows that it is there.
const THERE: Duration = Duration::from_millis(500);

/// A dashboard.
#[derive(Clone, Debug)]
pub struct Dashboard {
    /// Its address, with a slash at the end.
    pub url: String,
    /// The token that it asks for.
    pub token: Option<String>,
    /// Whether any certificate is accepted.
    pub insecure: bool,
}

/// Reads a token from a file's first line.
pub fn token(path: Option<&Path>) -> Result<Option<String>, Said> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| say!(texts::OF_FILE, path.display().to_string(), error.to_string()))?;
    Ok(Some(text.lines().next().unwrap_or_default().trim().to_owned()))
}

/// The dashboards of this machine that answer: those of the edges that show themselves, and those at weir's own ports.
pub fn here(token: Option<&str>, insecure: bool) -> Vec<Dashboard> {
    let shown = beacon::edges().into_iter().filter_map(|edge| edge.dashboard);
    let mut addresses: Vec<SocketAddr> = shown.filter(is_of_this_machine).collect();
    for port in place::PORT..place::PORT + place::PORTS {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let all =
        addresses.into_iter().map(|address| Dashboard::at(&format!("http://{}/", near(address)), token, insecure));
    all.filter(Dashboard::is_there).collect()
}

/// Whether the kernel has this address. Any local program can show an edge, and the token must not leave the machine.
fn is_of_this_machine(address: &SocketAddr) -> bool {
    UdpSocket::bind((address.ip(), 0)).is_ok()
}

/// Where this machine asks a server that listens on all of its addresses.
pub fn near(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// Why there is no dashboard to ask.
pub fn none_here() -> Said {
    match without_dashboard().into_iter().next() {
        Some((pid, command)) => say!(texts::EDGE_WITHOUT, pid, command),
        None => say!(texts::NO_DASHBOARD, u32::from(place::PORT)),
    }
}

/// The edges of this machine that show no address of a dashboard: each process with its command line.
pub fn without_dashboard() -> Vec<(u32, String)> {
    let edges = beacon::edges().into_iter().filter(|edge| edge.dashboard.is_none());
    edges.map(|edge| (edge.pid, command(edge.pid))).collect()
}

fn command(pid: u32) -> String {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // No process may write commands for the terminal.
    String::from_utf8_lossy(&words).replace(char::is_control, " ").trim().to_owned()
}

impl Dashboard {
    /// The dashboard at this address; without a scheme, over HTTP.
    pub fn at(url: &str, token: Option<&str>, insecure: bool) -> Dashboard {
        let scheme = if url.contains("://") { "" } else { "http://" };
        let slash = if url.ends_with('/') { "" } else { "/" };
        let url = format!("{scheme}{url}{slash}");
        Dashboard { url, token: token.map(str::to_owned), insecure }
    }

    fn once(&self, name: &str, method: &'static str, timeout: Duration) -> Once {
        Once {
            url: format!("{}{name}", self.url),
            method,
            json: Vec::new(),
            timeout,
            insecure: self.insecure,
            bearer: self.token.clone(),
        }
    }

    /// Another program may listen at the port: a dashboard has the document, or asks for its token.
    fn is_there(&self) -> bool {
        once::ask(&self.once("doc.json", "HEAD", THERE)).is_ok_and(|(status, _)| matches!(status, 200 | 401))
    }

    /// A file below the dashboard.
    pub fn fetch(&self, name: &str) -> Result<Value, Said> {
        let (status, body) = once::ask(&self.once(name, "GET", TIMEOUT))?;
        let said = || String::from_utf8_lossy(&body).trim().to_owned();
        match status {
            200 => serde_json::from_slice(&body).map_err(|_| say!(texts::NOT_DASHBOARD_JSON, &self.url)),
            401 => Err(say!(texts::NEEDS_TOKEN, &self.url)),
            404 => Err(say!(texts::NOT_DASHBOARD, &self.url)),
            status => Err(say!(texts::ANSWERS_AS, &self.url, u32::from(status), said())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_needs_no_scheme() {
        let url = |text: &str| Dashboard::at(text, None, false).url;
        assert_eq!(url("127.0.0.1:9200"), "http://127.0.0.1:9200/");
        assert_eq!(url("https://edge.example/dash/"), "https://edge.example/dash/");
    }
}
