//! The demo's directory: its configuration, its page, its logs.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use weir_words::{Language, Said, left, say};

use crate::texts;

const CONF: &str = include_str!("nginx.conf");
const PAGE: &str = include_str!("index.html");

/// The configuration of an installed nginx, which is the next one to look at.
const NGINX_CONF: &str = "/etc/nginx/nginx.conf";
/// Connections that the edge's worker has in addition to those of the load.
const CONNECTIONS_SPARE: u32 = 1024;

/// Number of directory names to try. In a container, a killed demo may have had the same pid and left its directory.
const NAMES_MAX: u32 = 100;

/// A directory of this demo alone; removed when dropped.
pub(super) struct DemoDirectory {
    path: PathBuf,
}

impl DemoDirectory {
    /// Makes the directory and writes the configuration for these addresses.
    pub(super) fn new(edge: SocketAddr, origin: SocketAddr, connections: u32) -> io::Result<DemoDirectory> {
        let pid = std::process::id();
        let path = make_directory()?;
        let place = DemoDirectory { path };
        fs::create_dir(place.path.join("html"))?;
        fs::create_dir(place.path.join("logs"))?;
        fs::write(place.path.join("html/index.html"), PAGE)?;
        // Each connection of the load may need a connection to the origin, and keeps it.
        let keepalive = connections;
        let connections = connections.saturating_mul(2).saturating_add(CONNECTIONS_SPARE);
        let conf = CONF
            .replace("@EDGE@", &edge.to_string())
            .replace("@ORIGIN@", &origin.to_string())
            .replace("@KEEPALIVE@", &keepalive.to_string())
            .replace("@CONNECTIONS@", &connections.to_string())
            .replace("@PID@", &pid.to_string());
        fs::write(place.path.join("nginx.conf"), conf)?;
        Ok(place)
    }

    /// The full path of a file in this directory.
    pub(super) fn file(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    /// The addresses that the user can open, the dashboard's first, and the commands to go on with; one line each.
    pub(super) fn what_to_open(&self, edge: SocketAddr, dashboard: Option<SocketAddr>, language: Language) -> String {
        let conf = self.file("nginx.conf");
        let nothing = Said::default;
        let dashboard =
            dashboard.map(|at| (say!(texts::DEMO_OPEN), format!("http://{at}/"), say!(texts::DEMO_DASHBOARD)));
        let first = if dashboard.is_some() { nothing() } else { say!(texts::DEMO_OPEN) };
        let own = if Path::new(NGINX_CONF).exists() { NGINX_CONF } else { &conf };
        let rows = [
            (first, format!("http://{edge}/"), say!(texts::DEMO_PAGE)),
            (nothing(), format!("http://{edge}/64k?delay=20ms"), say!(texts::DEMO_ORIGIN)),
            (nothing(), format!("http://{edge}/nginx_status"), say!(texts::DEMO_COUNTERS)),
            (nothing(), format!("ws://{edge}/ws"), say!(texts::DEMO_ECHO)),
            (say!(texts::DEMO_NEXT), format!("weir doctor {own}"), say!(texts::DEMO_DOCTOR)),
            (nothing(), format!("weir load http://{edge}/1k -R 500"), say!(texts::DEMO_LOAD)),
            (say!(texts::DEMO_CHANGE), conf.clone(), say!(texts::DEMO_RELOAD, std::process::id())),
        ];
        let rows: Vec<_> = dashboard.into_iter().chain(rows).collect();
        let width = rows.iter().map(|(_, what, _)| what.len()).max().unwrap_or(0);
        let mut text = String::from("\n");
        for (label, what, why) in rows {
            let label = left(label.say(language), 12);
            text.push_str(&format!("  {label}{what:<width$}   {}\n", why.say(language)));
        }
        text.push_str(&format!("  {}\n", texts::DEMO_END.say(language)));
        text
    }
}

/// Makes a new directory. Never uses an existing directory: it may belong to another program.
fn make_directory() -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut made = Err(io::ErrorKind::AlreadyExists.into());
    for attempt in 0..NAMES_MAX {
        let path = std::env::temp_dir().join(format!("weir-demo-{pid}-{attempt}"));
        made = fs::DirBuilder::new().mode(0o755).create(&path).map(|()| path);
        if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    made
}

impl Drop for DemoDirectory {
    fn drop(&mut self) {
        // If this fails, a temporary directory of three small files is left over.
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_blank_is_filled_in_and_all_is_gone_in_the_end() {
        let (edge, origin) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
        let place = DemoDirectory::new(edge, origin, 64).unwrap();
        let conf = fs::read_to_string(place.file("nginx.conf")).unwrap();
        assert!(!conf.contains('@') && conf.contains("listen 127.0.0.1:1;") && conf.contains("server 127.0.0.1:2;"));
        assert!(conf.contains("worker_connections 1152;") && conf.contains("keepalive 64;"));
        let other = DemoDirectory::new(edge, origin, 64).unwrap();
        assert_ne!(place.path, other.path);
        let dashboard = "127.0.0.1:3".parse().unwrap();
        let shown = place.what_to_open(edge, Some(dashboard), Language::English);
        assert!(
            shown.trim_start().starts_with("open        http://127.0.0.1:3/ ") && shown.contains("weir doctor "),
            "{shown}"
        );
        assert!(
            place
                .what_to_open(edge, None, Language::English)
                .trim_start()
                .starts_with("open        http://127.0.0.1:1/ ")
        );
        let path = place.path.clone();
        drop(place);
        assert!(!path.exists());
    }
}
