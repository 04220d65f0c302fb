//! Turns the JSON of a purge request into an [`PurgeOrder`], or into an error that says how to write it.

use std::fmt;

use serde_json::{Map, Value, json};
use weir_cache::store::{Force, KEY_BYTES_MAX, Purge, Tag};

/// Names of one order, at most: keys, prefixes or tags.
pub const NAMES_MAX: usize = 256;

/// The kind of names in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeKind {
    /// Whole keys, the text of `proxy_cache_key`.
    Key,
    /// Prefixes of keys.
    Prefix,
    /// Tags, as `Surrogate-Key` or `Cache-Tag` named them.
    Tag,
    /// Everything; it has no names.
    All,
}

impl PurgeKind {
    /// The kinds that an order can name.
    const NAMED: [PurgeKind; 3] = [PurgeKind::Key, PurgeKind::Prefix, PurgeKind::Tag];

    /// Its name in an order.
    pub fn name(self) -> &'static str {
        match self {
            PurgeKind::Key => "key",
            PurgeKind::Prefix => "prefix",
            PurgeKind::Tag => "tag",
            PurgeKind::All => "all",
        }
    }

    /// The kind with this name.
    pub fn of(name: &[u8]) -> Option<PurgeKind> {
        [PurgeKind::Key, PurgeKind::Prefix, PurgeKind::Tag, PurgeKind::All]
            .into_iter()
            .find(|kind| kind.name().as_bytes() == name)
    }

    /// The purge of one name.
    pub fn purge(self, name: &[u8]) -> Purge {
        match self {
            PurgeKind::Key => Purge::Key(name.into()),
            PurgeKind::Prefix => Purge::Prefix(name.into()),
            PurgeKind::Tag => Purge::Tag(Tag::of(name)),
            PurgeKind::All => Purge::All,
        }
    }
}

/// A request to purge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeOrder {
    /// The zone; `None` for all.
    pub zone: Option<String>,
    /// The kind of the names.
    pub kind: PurgeKind,
    /// The names, 1 to [`NAMES_MAX`]; a single empty name for everything.
    pub names: Vec<String>,
    /// Whether purged objects may still be served while their origin fails.
    pub force: Force,
    /// Applies to this edge only.
    pub is_local: bool,
}

/// Why weir does not follow an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderRefused {
    /// Not JSON, and the reason.
    NotJson(String),
    /// JSON, but not an object.
    NotAnObject,
    /// An unknown member.
    UnknownMember(String),
    /// None of `key`, `prefix`, `tag` and `all`.
    Nothing,
    /// More than one of them.
    Several,
    /// `key`, `prefix` or `tag` is not a text, or a list of texts, each at least one byte long.
    NoNames(PurgeKind),
    /// More than [`NAMES_MAX`] of them.
    TooManyNames(PurgeKind),
    /// Longer than any key.
    LongName(PurgeKind),
    /// This member is neither true nor false.
    NoFlag(&'static str),
    /// `zone` is not a text.
    NoZoneName,
}

/// An example that the messages end with.
const EXAMPLE: &str = r#"write {"tag": "news"}, {"key": "..."}, {"prefix": "..."} or {"all": true}"#;

impl fmt::Display for OrderRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrderRefused::NotJson(why) => write!(f, "the body is not JSON ({why}); {EXAMPLE}"),
            OrderRefused::NotAnObject => write!(f, "the body is not a JSON object; {EXAMPLE}"),
            OrderRefused::UnknownMember(name) => {
                write!(f, "unknown member \"{name}\"; the members are zone, key, prefix, tag, all, soft and local")
            }
            OrderRefused::Nothing => write!(f, "the body names nothing to purge; {EXAMPLE}"),
            OrderRefused::Several => write!(f, "the body must contain only one of key, prefix, tag and all; {EXAMPLE}"),
            OrderRefused::NoNames(kind) => {
                let kind = kind.name();
                write!(
                    f,
                    "\"{kind}\" must be a string or a list of strings, none of them empty: {{\"{kind}\": \"...\"}}"
                )
            }
            OrderRefused::TooManyNames(kind) => write!(f, "\"{}\" may have at most {NAMES_MAX} values", kind.name()),
            OrderRefused::LongName(kind) => {
                write!(f, "a value of \"{}\" may have at most {KEY_BYTES_MAX} bytes", kind.name())
            }
            OrderRefused::NoFlag("all") => f.write_str("\"all\" must be true: {\"all\": true}"),
            OrderRefused::NoFlag(name) => write!(f, "\"{name}\" must be true or false"),
            OrderRefused::NoZoneName => f.write_str("\"zone\" must be the name of a keys_zone, as a string"),
        }
    }
}

impl PurgeOrder {
    /// Reads an order.
    pub fn of_json(bytes: &[u8]) -> Result<PurgeOrder, OrderRefused> {
        let value: Value = serde_json::from_slice(bytes).map_err(|error| OrderRefused::NotJson(error.to_string()))?;
        let Value::Object(members) = value else { return Err(OrderRefused::NotAnObject) };
        const MEMBERS: [&str; 7] = ["zone", "key", "prefix", "tag", "all", "soft", "local"];
        if let Some(name) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(OrderRefused::UnknownMember(name.chars().take(40).collect()));
        }
        let zone = match members.get("zone") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(_) => return Err(OrderRefused::NoZoneName),
        };
        let (kind, names) = what(&members)?;
        let force = if flag(&members, "soft")? { Force::Soft } else { Force::Hard };
        Ok(PurgeOrder { zone, kind, names, force, is_local: flag(&members, "local")? })
    }

    /// The purges of the order, name by name.
    pub fn purges(&self) -> impl Iterator<Item = Purge> {
        self.names.iter().map(|name| self.kind.purge(name.as_bytes()))
    }

    /// The order as the API returns it.
    pub fn to_json(&self) -> Value {
        let names = if self.kind == PurgeKind::All { json!(true) } else { json!(self.names) };
        let mut members = Map::new();
        members.insert(self.kind.name().to_owned(), names);
        members.insert("zone".to_owned(), json!(self.zone));
        members.insert("soft".to_owned(), json!(self.force == Force::Soft));
        Value::Object(members)
    }
}

fn what(members: &Map<String, Value>) -> Result<(PurgeKind, Vec<String>), OrderRefused> {
    let mut found = None;
    if flag(members, "all")? {
        found = Some((PurgeKind::All, vec![String::new()]));
    } else if members.contains_key("all") {
        return Err(OrderRefused::NoFlag("all"));
    }
    for kind in PurgeKind::NAMED {
        let Some(value) = members.get(kind.name()) else { continue };
        if found.replace((kind, names(kind, value)?)).is_some() {
            return Err(OrderRefused::Several);
        }
    }
    found.ok_or(OrderRefused::Nothing)
}

fn names(kind: PurgeKind, value: &Value) -> Result<Vec<String>, OrderRefused> {
    let texts = match value {
        Value::Array(texts) => texts.as_slice(),
        one => std::slice::from_ref(one),
    };
    if texts.is_empty() {
        return Err(OrderRefused::NoNames(kind));
    }
    if texts.len() > NAMES_MAX {
        return Err(OrderRefused::TooManyNames(kind));
    }
    texts.iter().map(|text| name(kind, text)).collect()
}

fn name(kind: PurgeKind, value: &Value) -> Result<String, OrderRefused> {
    match value.as_str() {
        None | Some("") => Err(OrderRefused::NoNames(kind)),
        Some(text) if text.len() > KEY_BYTES_MAX => Err(OrderRefused::LongName(kind)),
        Some(text) => Ok(text.to_owned()),
    }
}

fn flag(members: &Map<String, Value>, name: &'static str) -> Result<bool, OrderRefused> {
    match members.get(name) {
        None => Ok(false),
        Some(value) => value.as_bool().ok_or(OrderRefused::NoFlag(name)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn orders_are_read() {
        let order = PurgeOrder::of_json(br#"{"tag": ["a", "b"], "zone": "one", "soft": true}"#).unwrap();
        assert_eq!(
            (order.kind, order.names.len(), order.force, order.is_local),
            (PurgeKind::Tag, 2, Force::Soft, false)
        );
        assert_eq!(order.purges().next(), Some(Purge::Tag(Tag::of(b"a"))));
        assert_eq!(order.to_json(), json!({"tag": ["a", "b"], "zone": "one", "soft": true}));
        let order = PurgeOrder::of_json(br#"{"all": true, "local": true}"#).unwrap();
        assert_eq!((order.purges().collect::<Vec<_>>(), order.is_local), (vec![Purge::All], true));
        let order = PurgeOrder::of_json(br#"{"key": "http://a/*"}"#).unwrap();
        // A star in a key is an ordinary character: prefixes have their own member.
        assert_eq!(order.purges().next(), Some(Purge::Key(b"http://a/*".as_slice().into())));
    }

    #[test]
    fn every_no_has_a_name_and_a_remedy() {
        let many = format!(r#"{{"tag": [{}"x"]}}"#, r#""x","#.repeat(NAMES_MAX));
        let long = format!(r#"{{"key": "{}"}}"#, "k".repeat(KEY_BYTES_MAX + 1));
        for (text, no, words) in [
            ("", OrderRefused::NotJson("EOF while parsing a value at line 1 column 0".to_owned()), "write {\"tag\""),
            ("[]", OrderRefused::NotAnObject, "write {"),
            (r#"{"tags": "x"}"#, OrderRefused::UnknownMember("tags".to_owned()), "the members are zone, key"),
            ("{}", OrderRefused::Nothing, "nothing to purge"),
            (r#"{"zone": "a"}"#, OrderRefused::Nothing, "nothing to purge"),
            (r#"{"key": "a", "tag": "b"}"#, OrderRefused::Several, "only one of"),
            (r#"{"all": true, "tag": "b"}"#, OrderRefused::Several, "only one of"),
            (r#"{"all": false}"#, OrderRefused::NoFlag("all"), "{\"all\": true}"),
            (r#"{"all": "yes"}"#, OrderRefused::NoFlag("all"), "{\"all\": true}"),
            (r#"{"tag": ""}"#, OrderRefused::NoNames(PurgeKind::Tag), "none of them empty"),
            (r#"{"tag": []}"#, OrderRefused::NoNames(PurgeKind::Tag), "none of them empty"),
            (r#"{"prefix": [1]}"#, OrderRefused::NoNames(PurgeKind::Prefix), "\"prefix\" must be"),
            (r#"{"tag": "a", "soft": 1}"#, OrderRefused::NoFlag("soft"), "must be true or false"),
            (r#"{"tag": "a", "zone": 1}"#, OrderRefused::NoZoneName, "keys_zone"),
            (&many, OrderRefused::TooManyNames(PurgeKind::Tag), "at most 256"),
            (&long, OrderRefused::LongName(PurgeKind::Key), "at most 16384 bytes"),
        ] {
            let said = PurgeOrder::of_json(text.as_bytes()).unwrap_err();
            assert_eq!(said, no, "{text}");
            assert!(said.to_string().contains(words), "{said}");
        }
    }

    mod mutate {
        use super::*;
        /// A body of the API is an order that reads the same when it is written, or an error that can be printed.
        #[test]
        fn bodies() {
            let seeds = [
                r#"{"tag": ["a", "b"], "zone": "one", "soft": true}"#,
                r#"{"all": true, "local": true}"#,
                r#"{"key": "http://a/*"}"#,
            ];
            let words = [
                "{",
                "}",
                "[",
                "]",
                "\"",
                ":",
                ",",
                "null",
                "\"prefix\":",
                "\"all\":",
                "true",
                "\\u0000",
                "\\ud800",
                "\"\"",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| match PurgeOrder::of_json(bytes) {
                Ok(order) => {
                    assert!((1..=NAMES_MAX).contains(&order.names.len()));
                    assert!(order.names.iter().all(|name| name.len() <= KEY_BYTES_MAX));
                    let again = PurgeOrder::of_json(order.to_json().to_string().as_bytes()).unwrap();
                    assert_eq!(again, PurgeOrder { is_local: false, ..order });
                }
                Err(no) => assert!(!no.to_string().is_empty() && no.to_string().len() < 1_000 + bytes.len()),
            });
        }
    }
}
