//! `capture`, `match` and `expect`.

use super::build::Builder;
use super::keys;
use super::node::Node;
use crate::capture::{Capture, CaptureMatch, Extract, Index};
use crate::plan::Take;
use crate::template::Tree;
use crate::texts::script as texts;
use crate::value::{Path, PathStep};

/// The kind of message; small rules depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// An answer, or a WebSocket message: `as: a.b` sets `b` inside `a`.
    Message,
    /// Arguments of a Socket.IO event: `as: a.b` is one name.
    Event,
    /// Arguments of an acknowledgement: without `json`, the capture uses the first one.
    Acknowledgement,
}

impl Builder<'_> {
    /// `capture` and `match` of an object.
    pub fn take(&mut self, node: &Node, of: MessageKind) -> Take {
        let mut take = Take::default();
        for node in node.get("capture").map_or(&[][..], Node::one_or_more) {
            keys::CAPTURE.check(node, self.notes);
            self.put(node, of, &mut take);
        }
        for node in node.get("match").map_or(&[][..], Node::one_or_more) {
            keys::MATCH.check(node, self.notes);
            self.put(node, of, &mut take);
        }
        take
    }

    /// As in Artillery, `value` makes it a match, and `as` makes it a capture.
    fn put(&mut self, node: &Node, of: MessageKind, take: &mut Take) {
        if node.map().is_none() {
            self.notes.refuse(node.at, texts::TAKE_NO_OBJECT);
            return;
        }
        let what = self.extract(node, of);
        let strict = node.get("strict").and_then(|strict| match strict {
            strict if strict.is_yes() => Some(true),
            strict if strict.is_no() => Some(false),
            _ => None,
        });
        if let Some(value) = node.get("value") {
            take.matches.push(CaptureMatch { what, value: self.tree(value), strict });
        } else if let Some(name) = node.get("as") {
            let name = name.shown();
            // As in lodash's `set`: the first step is the variable.
            let mut keys =
                if of == MessageKind::Message { Path::parse(&name).keys } else { vec![PathStep::from(name.as_str())] };
            if keys.is_empty() {
                keys.push(PathStep::from(""));
            }
            let slot = self.names.slot(&keys.remove(0).name);
            take.captures.push(Capture { what, slot, path: keys, strict });
        } else {
            self.notes.warn(node.at, texts::TAKES_NOTHING);
        }
    }

    fn extract(&mut self, node: &Node, of: MessageKind) -> Extract {
        let has = |key: &str| node.get(key).filter(|node| node.is_truthy());
        if let Some(json) = has("json") {
            let takes_all = node.get("multiple").is_some_and(Node::is_no);
            return Extract::json(self.template(json), !takes_all);
        }
        if let Some(xpath) = has("xpath") {
            return Extract::xpath(self.template(xpath));
        }
        if let Some(regexp) = has("regexp") {
            let group = has("group").map(Node::shown);
            let flags = has("flags").map(Node::shown).unwrap_or_default();
            return Extract::regexp(self.template(regexp), group, flags);
        }
        if let Some(header) = has("header") {
            if header.text().is_some_and(|name| !name.contains("{{") && name.chars().any(char::is_uppercase)) {
                self.notes.warn(header.at, texts::HEADER_CASE);
            }
            return Extract::header(self.template(header));
        }
        if let Some(selector) = has("selector") {
            let attribute = node.get("attr").map(|attr| self.template(attr));
            let index = self.index(node);
            return Extract::selector(self.template(selector), attribute, index);
        }
        if of == MessageKind::Acknowledgement {
            return Extract::json(self.text("$.0"), true);
        }
        Extract::none()
    }

    fn index(&mut self, node: &Node) -> Index {
        match node.get("index") {
            None => Index::At(0),
            Some(index) if index.text() == Some("last") => Index::Last,
            Some(index) if index.text() == Some("random") => Index::Random,
            Some(index) if index.number() >= 0.0 => Index::At(index.number() as usize),
            Some(index) => {
                self.notes.warn(index.at, texts::BAD_INDEX);
                Index::At(0)
            }
        }
    }

    /// `expect`: every check with its expected value.
    pub fn expect(&mut self, request: &Node) -> Vec<(String, Tree)> {
        let Some(expect) = request.get("expect") else { return Vec::new() };
        if !self.has_expect {
            self.has_expect = true;
            self.notes.warn(expect.at, texts::EXPECT_NOT_LISTED);
        }
        let mut checks = Vec::new();
        for node in expect.one_or_more() {
            if node.map().is_none() {
                self.notes.refuse(node.at, texts::CHECK_NO_OBJECT);
            }
            keys::EXPECT.check(node, self.notes);
            for (name, member) in node.map().into_iter().flatten() {
                checks.push((name.to_string(), self.tree(&member.value)));
            }
        }
        checks
    }
}
