//! Every key of every object of a script, in one table. The table is the source of the warnings about unknown keys,
//! of the sentences about missing features, and of `docs/reference/artillery-keys.md`.

mod config;
mod flow;
mod object;
mod plugins;

use std::fmt::Write as _;

pub(crate) use config::*;
pub(crate) use flow::*;
pub(crate) use object::{Does, Object};
pub(crate) use plugins::*;

/// The engine of Artillery's npm package for Socket.IO 3 and 4: weir's `socketio` speaks this protocol.
pub(crate) const SOCKETIO_V3: &str = "socketio-v3";

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
            let _ = writeln!(text, "| `{}` | {does} | {} |", key.name, key.about.en.replace('|', "\\|"));
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
                assert!(key.about.en.ends_with(|c: char| c != ' ' && c != '.'), "{}.{}", object.path, key.name);
                let warns = matches!(key.does, Does::No | Does::Nothing);
                assert_eq!(weir_words::is_korean(key.about.ko), warns, "{}.{}", object.path, key.name);
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
