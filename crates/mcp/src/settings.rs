//! The choices of the person who starts the server. No argument of a tool changes them.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use weir_words::Language;

/// Most directories that the person may name.
pub const DIRS_MAX: usize = 64;
/// Most other targets that the person may name.
pub const TARGETS_MAX: usize = 64;
/// The longest time of an experiment, unless the person names another one.
pub const EXPERIMENT_MAX: Duration = Duration::from_secs(30 * 60);

/// The choices.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// The program weir.
    pub program: PathBuf,
    /// The directories whose files tools may read; canonical paths.
    pub dirs: Vec<PathBuf>,
    /// Hosts beside this machine that `status` and scripts may name, as HOST:PORT.
    pub targets: Vec<String>,
    /// Whether the lab may start the configurations that tools name.
    pub allows_experiments: bool,
    /// Whether `why` may watch the edges that run on this machine.
    pub watches_running: bool,
    /// Flags of `weir lab` for each experiment, such as `--origin COMMAND`.
    pub lab_flags: Vec<String>,
    /// Flags of `weir lab why` alone.
    pub why_flags: Vec<String>,
    /// The file with the token of the dashboard.
    pub token: Option<PathBuf>,
    /// Where runs are kept; `None`: they end with the server.
    pub store: Option<PathBuf>,
    /// The longest time of an experiment.
    pub experiment_max: Duration,
    /// The language of weir's sentences.
    pub language: Language,
}

impl ServerSettings {
    /// The part that a child needs, as JSON. `room` is the directory of this server.
    pub fn for_child(&self, room: &std::path::Path) -> Value {
        json!({
            "dirs": self.dirs.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>(),
            "targets": self.targets,
            "allows_experiments": self.allows_experiments,
            "watches_running": self.watches_running,
            "lab_flags": self.lab_flags,
            "why_flags": self.why_flags,
            "token": self.token.as_ref().map(|path| path.display().to_string()),
            "store": self.store.as_ref().map(|path| path.display().to_string()),
            "experiment_max_s": self.experiment_max.as_secs(),
            "is_korean": self.language == Language::Korean,
            "room": room.display().to_string(),
        })
    }

    /// The settings of [`ServerSettings::for_child`]. A missing member means the narrower choice.
    pub fn of_parent(json: &Value) -> ServerSettings {
        let texts = |name: &str| -> Vec<String> {
            let all = json[name].as_array().into_iter().flatten();
            all.filter_map(|one| one.as_str().map(str::to_owned)).collect()
        };
        let path = |name: &str| json[name].as_str().map(PathBuf::from);
        ServerSettings {
            program: PathBuf::new(),
            dirs: texts("dirs").into_iter().map(PathBuf::from).collect(),
            targets: texts("targets"),
            allows_experiments: json["allows_experiments"] == true,
            watches_running: json["watches_running"] == true,
            lab_flags: texts("lab_flags"),
            why_flags: texts("why_flags"),
            token: path("token"),
            store: path("store"),
            experiment_max: json["experiment_max_s"].as_u64().map_or(EXPERIMENT_MAX, Duration::from_secs),
            language: if json["is_korean"] == true { Language::Korean } else { Language::English },
        }
    }

    /// Whether a host with its port is this machine by loopback, or is one of the named targets.
    pub fn may_reach(&self, authority: &str) -> bool {
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let is_loopback =
            bare.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        is_loopback || self.targets.iter().any(|target| target.eq_ignore_ascii_case(authority))
    }
}

/// `HOST:PORT` of a URL or of a text without a scheme, with the usual port of the scheme. `None` if it has user data, or no host.
pub fn authority(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    let is_plain =
        !authority.is_empty() && authority.chars().all(|c| c.is_ascii_alphanumeric() || ".-_:[]".contains(c));
    if !is_plain {
        return None;
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.ends_with(':')
            && port.parse::<u16>().is_ok()
            && (!host.contains(':') || host.ends_with(']'))
    });
    let usual = match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => 443,
        _ => 80,
    };
    Some(if has_port { authority.to_owned() } else { format!("{authority}:{usual}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(targets: &[&str]) -> ServerSettings {
        let json = json!({"targets": targets, "dirs": ["/a"], "lab_flags": ["--origin", "node app.js"]});
        ServerSettings::of_parent(&json)
    }

    #[test]
    fn only_loopback_and_named_targets_are_reached() {
        let it = settings(&["edge.example:9144"]);
        for (text, expect) in [
            ("http://127.0.0.1:9144/", true),
            ("127.0.0.1:80", true),
            ("localhost:3000/x", true),
            ("http://[::1]:9144/", true),
            ("http://edge.example:9144/", true),
            ("http://edge.example/", false),
            ("http://169.254.169.254/latest", false),
            ("http://127.0.0.1.evil.example/", false),
            ("http://127.0.0.1@evil.example/", false),
            ("http://evil.example#127.0.0.1", false),
            ("http://evil.example\\@127.0.0.1/", false),
            ("http://localhost.evil.example/", false),
            ("http:///", false),
        ] {
            let authority = authority(text);
            assert_eq!(authority.is_some_and(|authority| it.may_reach(&authority)), expect, "{text}");
        }
    }

    #[test]
    fn a_child_has_the_same_settings() {
        let it = settings(&["h:1"]);
        let again = ServerSettings::of_parent(&it.for_child(std::path::Path::new("/room")));
        assert_eq!((&again.targets, &again.dirs, &again.lab_flags), (&it.targets, &it.dirs, &it.lab_flags));
        assert!(!again.allows_experiments && !again.watches_running);
    }
}
