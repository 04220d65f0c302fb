//! An object of a script, its keys, and the warnings about other keys.

use crate::script::near;
use crate::script::node::{Node, NodeValue};
use crate::script::notes::Notes;
use crate::script::source::SourcePlace;
use crate::texts::script as texts;
use weir_words::{Said, Words, say, words};

/// An object of a script.
#[derive(Debug)]
pub(crate) struct Object {
    /// The path of the object: `config.http`.
    pub path: &'static str,
    /// A sentence for the reference.
    pub about: &'static str,
    /// Its keys.
    pub keys: &'static [ObjectKey],
    /// True if other keys are the user's own (names of variables, headers, options of a library).
    pub is_open: bool,
}

/// A key.
#[derive(Debug)]
pub(crate) struct ObjectKey {
    /// Its name.
    pub name: &'static str,
    /// Whether weir supports it.
    pub does: Does,
    /// A sentence about the meaning; for a key that weir does not support, the reason and the alternative. Only a key that
    /// causes a warning has Korean.
    pub about: Words,
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

impl Object {
    /// The key with this name.
    pub fn key(&self, name: &str) -> Option<&'static ObjectKey> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Warns about keys of a node that are unknown, or that weir does not support.
    pub fn check(&self, node: &Node, notes: &mut Notes) {
        for (name, member) in node.map().into_iter().flatten() {
            let of = |key: &ObjectKey| (format!("{}.{name}", self.path), Said::from(key.about));
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
            object.check(&Node::new(member.at, NodeValue::Map(one)), notes);
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

    fn unknown(&self, name: &str, at: SourcePlace, notes: &mut Notes) {
        let near = near::nearest(name, self.keys.iter().map(|key| key.name));
        let hint = near.map_or_else(Said::default, |near| say!(texts::NEAR, near));
        notes.warn(at, say!(texts::UNKNOWN_KEY, name, self.path, hint));
    }
}

pub(super) const fn yes(name: &'static str, about: &'static str) -> ObjectKey {
    ObjectKey { name, does: Does::Yes, about: words(about, "") }
}

pub(super) const fn partly(name: &'static str, about: &'static str) -> ObjectKey {
    ObjectKey { name, does: Does::Partly, about: words(about, "") }
}

pub(super) const fn no(name: &'static str, about: &'static str, about_ko: &'static str) -> ObjectKey {
    ObjectKey { name, does: Does::No, about: words(about, about_ko) }
}

pub(super) const fn nothing(name: &'static str, about: &'static str, about_ko: &'static str) -> ObjectKey {
    ObjectKey { name, does: Does::Nothing, about: words(about, about_ko) }
}
