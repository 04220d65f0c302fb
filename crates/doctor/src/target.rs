//! The program that reads a configuration: a version of nginx, or weir. Their defaults differ, and some lines have an
//! effect in only one of them.

use std::fmt;

use weir_http::read::directive::{
    Contexts, Directive, EVENTS, HTTP, LIMIT_EXCEPT, LOCATION, LOCATION_IF, MAIN, SERVER, SERVER_IF, UPSTREAM,
};

use crate::defaults::DEFAULTS;
use crate::version::{Build, Version};
use crate::view::View;
use crate::weirs::known;

/// The text between weir's default and nginx's in the edge's table.
const THEIRS: &str = " (nginx: ";

/// A program that reads nginx.conf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// nginx, of this version.
    Nginx(Version),
    /// weir's edge, in the version of this program.
    Weir,
}

/// A directive with a known default or inheritance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownDirective {
    /// The effective value if the directive is not written; `None` if there is none.
    pub default: Option<&'static str>,
    /// Whether inner blocks inherit it.
    pub goes_inwards: bool,
}

impl From<Version> for Target {
    fn from(version: Version) -> Target {
        Target::Nginx(version)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Nginx(version) => write!(f, "nginx {version}"),
            Target::Weir => f.write_str("weir"),
        }
    }
}

impl Target {
    /// The target of a binary, from its `-V` output.
    pub fn of(build: &Build) -> Target {
        if build.is_weir { Target::Weir } else { Target::Nginx(build.version) }
    }

    /// Whether a file has a directive that only weir knows. Then the file is meant for weir.
    pub fn is_weirs_alone(view: &View<'_>) -> bool {
        // In these blocks every word is data, not a directive.
        let is_data = |block: crate::view::Spot<'_>| ["map", "types", "geo", "split_clients"].contains(&block.name());
        view.all().any(|spot| WEIRS_OWN.contains(&spot.name()) && !spot.around().any(is_data))
    }

    /// The program's name, without a version.
    pub fn name(self) -> &'static str {
        match self {
            Target::Nginx(_) => "nginx",
            Target::Weir => "weir",
        }
    }

    /// The nginx version whose rules apply. weir reads the same as the newest nginx.
    pub fn version(self) -> Version {
        match self {
            Target::Nginx(version) => version,
            Target::Weir => crate::version::NEWEST,
        }
    }

    /// The known facts about a directive in these blocks. The outermost block comes first, each as `location /a`.
    pub fn known(self, name: &str, path: &[String]) -> Option<KnownDirective> {
        let is_upstream = path.last().is_some_and(|block| block.starts_with("upstream"));
        let nginxs = DEFAULTS.iter().find(|known| known.name == name && (known.place == "upstream") == is_upstream);
        match self {
            Target::Nginx(version) => {
                nginxs.map(|known| KnownDirective { default: known.at(version), goes_inwards: !is_upstream })
            }
            Target::Weir => {
                let directive = weirs(name, path)?;
                let default = directive.default.split_once(THEIRS).map_or(directive.default, |(ours, _)| ours);
                let default = Some(default).filter(|default| !default.is_empty());
                let is_known = default.is_some() || nginxs.is_some();
                is_known.then_some(KnownDirective { default, goes_inwards: !is_upstream })
            }
        }
    }

    /// Why a directive in these blocks never has an effect. `None` if it can have one.
    pub fn idle(self, name: &str, path: &[String]) -> Option<&'static str> {
        match self {
            Target::Nginx(_) => None,
            Target::Weir => weirs(name, path).filter(|directive| directive.idle).map(|directive| directive.doc),
        }
    }

    /// Whether two values of a directive mean the same.
    pub fn is_same(self, name: &str, path: &[String], one: &str, other: &str) -> bool {
        let is_upstream = path.last().is_some_and(|block| block.starts_with("upstream"));
        let known = DEFAULTS.iter().find(|known| known.name == name && (known.place == "upstream") == is_upstream);
        one == other || known.is_some_and(|known| known.is_same(one, other))
    }
}

/// Directives that exist only in weir. One of them is enough to recognise a file for weir.
const WEIRS_OWN: [&str; 13] = [
    "cache_purge_api",
    "cache_purge_log",
    "dashboard",
    "dashboard_history",
    "dashboard_token",
    "http3_alt_svc",
    "metrics",
    "proxy_cache_guard",
    "proxy_cache_honor",
    "proxy_cache_purge_tag",
    "proxy_cache_refresh_ahead",
    "record",
    "worker_coalesce",
];

/// The edge's directive of this name in such a block.
fn weirs(name: &str, path: &[String]) -> Option<&'static Directive> {
    let context = context(path)?;
    known().directive(name, context).filter(|directive| directive.contexts.meets(context))
}

/// The kind of the innermost block. `None` if it holds no directives.
fn context(path: &[String]) -> Option<Contexts> {
    let Some(block) = path.last() else { return Some(MAIN) };
    let is_in_location = path.iter().any(|outer| outer.starts_with("location"));
    Some(match block.split_whitespace().next().unwrap_or_default() {
        "events" => EVENTS,
        "http" => HTTP,
        "server" => SERVER,
        "upstream" => UPSTREAM,
        "location" => LOCATION,
        "if" if is_in_location => LOCATION_IF,
        "if" => SERVER_IF,
        "limit_except" => LIMIT_EXCEPT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn path(text: &str) -> Vec<String> {
        text.split('/').filter(|block| !block.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn both_have_defaults_of_their_own() {
        let default = |target: Target, name: &str, at: &str| target.known(name, &path(at)).unwrap().default;
        let old = Target::from(Version(1, 22, 1));
        assert_eq!(default(old, "worker_processes", ""), Some("1"));
        assert_eq!(default(Target::Weir, "worker_processes", ""), Some("auto"));
        assert_eq!(default(Target::Weir, "sendfile", "http"), Some("on"));
        assert_eq!(default(Target::Weir, "proxy_http_version", "http/server 1/location x"), Some("1.1"));
        assert_eq!(
            (default(old, "keepalive", "http/upstream a"), default(Target::Weir, "keepalive", "http/upstream a")),
            (None, Some("1024"))
        );
        assert_eq!(Target::Weir.known("no_such_thing", &[]), None);
        assert!(!Target::Weir.known("keepalive_timeout", &path("http/upstream a")).unwrap().goes_inwards);
    }

    #[test]
    fn what_does_nothing_in_weir_is_known_with_its_reason() {
        assert!(Target::Weir.idle("accept_mutex", &path("events")).is_some_and(|why| why.contains("kernel")));
        assert!(Target::Weir.idle("sendfile", &path("http")).is_none());
        assert!(Target::Nginx(Version(1, 22, 1)).idle("accept_mutex", &path("events")).is_none());
    }

    /// If nginx ever adopts one of these names, its users' files would be taken for weir's. This test would then fail.
    #[test]
    fn a_file_that_only_weir_reads_is_recognised() {
        let is_ours = |text: &str| {
            let tree = crate::load(&weir_conf::MemoryFiles::new().with("/n", text), "/n", "/").0;
            Target::is_weirs_alone(&View::new(&tree))
        };
        assert!(is_ours("http { server { location /dash { dashboard; } } }"));
        assert!(!is_ours("http { map $x $y { dashboard 1; metrics 2; } server { listen 80; } }"));
        for name in WEIRS_OWN {
            assert!(crate::rules::is_weirs(name) && weir_http::read::nginx_only::lookup(name).is_none(), "{name}");
        }
    }

    #[test]
    fn a_binary_says_what_it_is() {
        let build = |arguments: &str| {
            Build::read(&format!("nginx version: nginx/1.29.5\nconfigure arguments: {arguments}\n")).unwrap()
        };
        assert_eq!(Target::of(&build("--with-threads")).to_string(), "nginx 1.29.5");
        // weir's name is recognised anywhere in the first line.
        for line in ["nginx/1.31.5 (weir 0.1.0)", "nginx/1.31.5 (weir/0.1.0)", "weir/0.1.0 (nginx/1.31.5)"] {
            let build = Build::read(&format!("nginx version: {line}\n")).unwrap();
            assert_eq!((Target::of(&build), build.version), (Target::Weir, Version(1, 31, 5)), "{line}");
        }
    }
}
