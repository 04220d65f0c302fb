//! The edges of this machine, found by their dashboards: `weir top` and `weir status` ask them.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use weir_conf::said::Said;
use weir_conf::say;
use weir_edge::dash::place;
use weir_load::once::{self, Once};

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

/// The dashboards that answer at weir's own ports on this machine, in the order of the ports.
pub fn here(token: Option<&str>, insecure: bool) -> Vec<Dashboard> {
    let ports = place::PORT..place::PORT + place::PORTS;
    let all = ports.map(|port| Dashboard::at(&format!("http://127.0.0.1:{port}/"), token, insecure));
    all.filter(Dashboard::is_there).collect()
}

impl Dashboard {
    /// The dashboard at this address.
    pub fn at(url: &str, token: Option<&str>, insecure: bool) -> Dashboard {
        let url = if url.ends_with('/') { url.to_owned() } else { format!("{url}/") };
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
