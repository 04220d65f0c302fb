//! What a keeper is told, as one line of JSON.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::network::Hosts;

/// The longest block.
pub const LIMIT_MAX: Duration = Duration::from_secs(3600);

/// On which of the stack's hosts a process runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Host {
    /// The edge's; everybody's, where there are no namespaces.
    #[default]
    Edge,
    /// The client's.
    Client,
    /// The origins'.
    Origin,
}

impl Host {
    /// Its name, which is its network namespace's too.
    pub fn name(self) -> &'static str {
        match self {
            Host::Edge => "edge",
            Host::Client => "client",
            Host::Origin => "origin",
        }
    }
}

/// A process of a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Role {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it may run.
    pub cpus: Vec<usize>,
    /// Files it writes itself into first: its control groups.
    pub groups: Vec<String>,
    /// Its host.
    pub host: Host,
}

/// A block.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// Where its files go.
    pub dir: PathBuf,
    /// In namespaces of its own.
    pub is_isolated: bool,
    /// What is measured.
    pub edge: Role,
    /// What it stands in front of.
    pub origins: Vec<Role>,
    /// What loads it; it writes `load.json` into `dir`.
    pub client: Role,
    /// What warms it up; it writes `warm.json` into `dir`.
    pub warm: Option<Role>,
    /// The warm-up is what the measurement is, and may be judged by its windows.
    pub is_warm_judged: bool,
    /// Who must answer before the edge is started.
    pub origins_at: Vec<SocketAddr>,
    /// Where the edge must answer before it is loaded.
    pub edge_at: Vec<SocketAddr>,
    /// The hosts.
    pub hosts: Hosts,
    /// Directories that are to be empty: caches, logs. Only with namespaces.
    pub fresh: Vec<String>,
    /// How long it may take.
    pub limit: Duration,
}

impl Spec {
    /// As a line.
    pub fn to_json(&self) -> Value {
        json!({
            "dir": self.dir.display().to_string(),
            "is_isolated": self.is_isolated,
            "edge": role(&self.edge),
            "origins": self.origins.iter().map(role).collect::<Vec<_>>(),
            "client": role(&self.client),
            "warm": self.warm.as_ref().map(role),
            "is_warm_judged": self.is_warm_judged,
            "origins_at": self.origins_at.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "edge_at": self.edge_at.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "hosts": self.hosts.to_json(),
            "fresh": self.fresh,
            "limit_ms": u64::try_from(self.limit.min(LIMIT_MAX).as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Read back; `None` if it is none.
    pub fn of_json(json: &Value) -> Option<Spec> {
        let addresses = |key: &str| texts(&json[key]).iter().map(|text| text.parse().ok()).collect::<Option<Vec<_>>>();
        let limit = Duration::from_millis(json["limit_ms"].as_u64()?).min(LIMIT_MAX);
        Some(Spec {
            dir: json["dir"].as_str()?.into(),
            is_isolated: json["is_isolated"].as_bool()?,
            edge: role_of(&json["edge"])?,
            origins: json["origins"].as_array()?.iter().map(role_of).collect::<Option<_>>()?,
            client: role_of(&json["client"])?,
            warm: if json["warm"].is_null() { None } else { Some(role_of(&json["warm"])?) },
            is_warm_judged: json["is_warm_judged"].as_bool()?,
            origins_at: addresses("origins_at")?,
            edge_at: addresses("edge_at")?,
            hosts: Hosts::of_json(&json["hosts"])?,
            fresh: texts(&json["fresh"]),
            limit,
        })
    }
}

fn role(role: &Role) -> Value {
    json!({"argv": role.argv, "cpus": role.cpus, "groups": role.groups, "host": role.host.name()})
}

fn role_of(json: &Value) -> Option<Role> {
    let cpus = json["cpus"].as_array()?.iter().map(|cpu| cpu.as_u64().and_then(|cpu| usize::try_from(cpu).ok()));
    let host = [Host::Edge, Host::Client, Host::Origin].into_iter().find(|host| json["host"] == host.name())?;
    Some(Role { argv: texts(&json["argv"]), cpus: cpus.collect::<Option<_>>()?, groups: texts(&json["groups"]), host })
}

/// The texts of a list.
pub(super) fn texts(json: &Value) -> Vec<String> {
    json.as_array().into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_block_is_told_and_understood() {
        let role = |name: &str, host| Role {
            argv: vec![name.to_owned(), "-x".into()],
            cpus: vec![0, 3],
            groups: vec!["/g".into()],
            host,
        };
        let spec = Spec {
            dir: "/tmp/x".into(),
            is_isolated: true,
            edge: role("nginx", Host::Edge),
            origins: vec![role("origin", Host::Origin)],
            client: role("load", Host::Client),
            warm: Some(role("load", Host::Client)),
            is_warm_judged: true,
            origins_at: vec!["127.0.0.1:3".parse().unwrap()],
            edge_at: vec!["[::1]:80".parse().unwrap()],
            hosts: Hosts {
                names: vec![("express".into(), "10.99.1.10".parse().unwrap())],
                is_client_apart: true,
                ..Hosts::default()
            },
            fresh: vec!["/var/cache".into()],
            limit: Duration::from_secs(7),
        };
        let line = spec.to_json().to_string();
        assert!(!line.contains('\n'));
        assert_eq!(Spec::of_json(&serde_json::from_str(&line).unwrap()), Some(spec));
        assert_eq!(Spec::of_json(&Value::Null), None);
    }
}
