//! Every key of every object of a script, in one table. The table is the source of the warnings about unknown keys,
//! of the sentences about missing features, and of `docs/reference/artillery-keys.md`.

mod config;
mod flow;
mod plugins;

use std::fmt::Write as _;

use weir_words::{Said, say};

use super::near;
use super::node::Node;
use super::notes::Notes;
use crate::texts::script as texts;

pub(crate) use config::*;
pub(crate) use flow::*;
pub(crate) use plugins::*;

/// The engine of Artillery's npm package for Socket.IO 3 and 4: weir's `socketio` speaks this protocol.
pub(crate) const SOCKETIO_V3: &str = "socketio-v3";

/// An object of a script.
#[derive(Debug)]
pub(crate) struct Object {
    /// The path of the object: `config.http`.
    pub path: &'static str,
    /// A sentence for the reference.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// True if other keys are the user's own (names of variables, headers, options of a library).
    pub is_open: bool,
}

/// A key.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its name.
    pub name: &'static str,
    /// Whether weir supports it.
    pub does: Does,
    /// A sentence about the meaning; for a key that weir does not support, the reason and the alternative.
    pub about: &'static str,
    /// The same sentence in Korean, for a key that causes a warning; otherwise empty.
    pub about_ko: &'static str,
}

/// Whether weir does what a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// As in Artillery.
    Yes,
    /// With a difference that the sentence describes.
    Partly,
    /// No; a script with this key gets a warning.
    No,
    /// Artillery accepts the key and ignores it; a script with this key gets a warning.
    Nothing,
}

const fn yes(name: &'static str, about: &'static str) -> Key {
    Key { name, does: Does::Yes, about, about_ko: "" }
}

const fn partly(name: &'static str, about: &'static str) -> Key {
    Key { name, does: Does::Partly, about, about_ko: "" }
}

const fn no(name: &'static str, about: &'static str, about_ko: &'static str) -> Key {
    Key { name, does: Does::No, about, about_ko }
}

const fn nothing(name: &'static str, about: &'static str, about_ko: &'static str) -> Key {
    Key { name, does: Does::Nothing, about, about_ko }
}

/// Every object, in the order of the reference.
const OBJECTS: &[&Object] = &[
    &SCRIPT,
    &CONFIG,
    &PHASE,
    &PAYLOAD,
    &HTTP,
    &COOKIE_JAR,
    &DISTRIBUTED_TRACING,
    &DEFAULTS,
    &DEFAULTS_THINK,
    &WS,
    &SOCKETIO,
    &TLS,
    &BUNDLING,
    &PLUGINS,
    &ENSURE,
    &ENSURE_CONDITION,
    &EXPECT_OPTIONS,
    &BY_ENDPOINT,
    &APDEX,
    &PUBLISH,
    &SCENARIO,
    &HOOK,
    &STEP,
    &LOOP,
    &REQUEST,
    &AUTH,
    &PART,
    &CAPTURE,
    &MATCH,
    &EXPECT,
    &SEND,
    &WAIT,
    &CONNECT,
    &EMIT,
    &RESPONSE,
    &ACKNOWLEDGE,
];

impl Object {
    /// The key with this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Warns about keys of a node that are unknown, or that weir does not support.
    pub fn check(&self, node: &Node, notes: &mut Notes) {
        for (name, member) in node.map().into_iter().flatten() {
            let of = |key: &Key| (format!("{}.{name}", self.path), Said::of_both(key.about, key.about_ko));
            match self.key(name).map(|key| (key.does, of(key))) {
                Some((Does::Yes | Does::Partly, _)) => {}
                Some((Does::No, (path, about))) => notes.warn(member.at, say!(texts::UNSUPPORTED, path, about)),
                Some((Does::Nothing, (path, about))) => notes.warn(member.at, say!(texts::NO_EFFECT, path, about)),
                None if self.is_open => {}
                None => self.unknown(name, member.at, notes),
            }
        }
    }

    /// The same, but the keys of another object are allowed too.
    pub fn check_or(&self, other: &Object, node: &Node, notes: &mut Notes) {
        for (name, member) in node.map().into_iter().flatten() {
            let object = if self.key(name).is_none() && other.key(name).is_some() { other } else { self };
            let one = [(name.clone(), member.clone())].into_iter().collect();
            object.check(&Node::new(member.at, super::node::Kind::Map(one)), notes);
        }
    }

    /// As [`Object::check`], but ignores names that begin with `x-`, which hold anchors.
    pub fn check_own(&self, node: &Node, notes: &mut Notes) {
        for (name, member) in node.map().into_iter().flatten() {
            if self.key(name).is_none() && !name.starts_with("x-") {
                self.unknown(name, member.at, notes);
            }
        }
    }

    fn unknown(&self, name: &str, at: super::source::At, notes: &mut Notes) {
        let near = near::nearest(name, self.keys.iter().map(|key| key.name));
        let hint = near.map_or_else(Said::default, |near| say!(texts::NEAR, near));
        notes.warn(at, say!(texts::UNKNOWN_KEY, name, self.path, hint));
    }
}

/// The text of `docs/reference/artillery-keys.md`.
pub fn reference() -> String {
    let mut text = String::from(
        "# Keys of an Artillery script\n\n\
         This page lists every key of a script that `weir load` reads. A command writes it from the tables in `crates/load/src/script/keys`:\n\
         `cargo run -p weir-load --example keys > docs/reference/artillery-keys.md`.\n\n\
         *yes*: weir does the same as Artillery 2. *partly*: the row names the difference. *no*: weir warns about the key and runs\n\
         the script without it. *no effect*: Artillery itself accepts the key and ignores it. For a key that is not in this list,\n\
         weir prints a warning with the nearest key of the list.\n",
    );
    for object in OBJECTS {
        let _ = write!(text, "\n## {}\n\n{}\n", object.path, object.about);
        if object.is_open {
            text.push_str("You may use other keys for your own purposes.\n");
        }
        if object.keys.is_empty() {
            continue;
        }
        text.push_str("\n| key | weir | |\n|---|---|---|\n");
        for key in object.keys {
            let does = match key.does {
                Does::Yes => "yes",
                Does::Partly => "partly",
                Does::No => "no",
                Does::Nothing => "no effect",
            };
            let _ = writeln!(text, "| `{}` | {does} | {} |", key.name, key.about.replace('|', "\\|"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_object_and_no_key_stands_twice() {
        for (index, object) in OBJECTS.iter().enumerate() {
            assert!(OBJECTS.iter().skip(index + 1).all(|other| other.path != object.path), "{}", object.path);
            for (index, key) in object.keys.iter().enumerate() {
                let is_alone = object.keys.iter().skip(index + 1).all(|other| other.name != key.name);
                assert!(is_alone, "{}.{}", object.path, key.name);
                assert!(key.about.ends_with(|c: char| c != ' ' && c != '.'), "{}.{}", object.path, key.name);
                let warns = matches!(key.does, Does::No | Does::Nothing);
                assert_eq!(weir_words::is_korean(key.about_ko), warns, "{}.{}", object.path, key.name);
            }
        }
    }

    #[test]
    fn the_committed_reference_is_what_the_tables_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/artillery-keys.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == reference(),
            "stale: cargo run -p weir-load --example keys > docs/reference/artillery-keys.md"
        );
    }
}
