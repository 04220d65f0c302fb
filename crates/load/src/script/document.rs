//! YAML for other modules: values with their places, and error messages that show them.

use std::sync::Arc;

use weir_words::{Said, say};

use super::merge::{Lists, deep};
use super::near::nearest;
use super::node::{Node, NodeValue};
use super::source::{Problem, Sources};
use super::yaml;
use crate::texts::script as texts;

/// Bytes of a document.
const TEXT_MAX: usize = 1 << 20;

/// A parsed document.
#[derive(Debug)]
pub struct ScriptDocument {
    sources: Arc<Sources>,
    root: Node,
}

/// A value in a document.
#[derive(Clone, Copy, Debug)]
pub struct DocumentEntry<'d> {
    sources: &'d Sources,
    node: &'d Node,
}

impl ScriptDocument {
    /// Parses the text of a file; the error names the place in it.
    pub fn read(name: &str, text: &str) -> Result<ScriptDocument, Said> {
        if text.len() > TEXT_MAX {
            return Err(say!(texts::DOCUMENT_TOO_LARGE, name, TEXT_MAX));
        }
        let mut sources = Sources::default();
        let file = sources.add(name, text);
        let root = yaml::read(text, file).map_err(|problem| sources.render(&problem).trimmed())?;
        Ok(ScriptDocument { sources: sources.into(), root })
    }

    /// The same document with one of its values merged over it: objects are merged, other values replaced. Places
    /// stay.
    pub fn with(&self, over: &DocumentEntry<'_>) -> ScriptDocument {
        let mut root = self.root.clone();
        deep(&mut root, over.node, Lists::Replace);
        ScriptDocument { sources: self.sources.clone(), root }
    }

    /// The whole document.
    pub fn root(&self) -> DocumentEntry<'_> {
        DocumentEntry { sources: &self.sources, node: &self.root }
    }
}

impl<'d> DocumentEntry<'d> {
    /// An error message about this value, with its place and its line.
    pub fn wrong(&self, what: impl Into<Said>) -> Said {
        self.sources.render(&Problem::new(self.node.at, what)).trimmed()
    }

    /// The members by name, in order; an error for a name that is not in `known`. An empty `known` accepts all.
    pub fn members(&self, known: &[&str]) -> Result<Vec<(&'d str, DocumentEntry<'d>)>, Said> {
        if self.node.kind == NodeValue::Null {
            return Ok(Vec::new());
        }
        let members = self.node.map().ok_or_else(|| self.wrong(texts::NAMES_AND_VALUES))?;
        let mut unknown = members.iter().filter(|(name, _)| !known.is_empty() && !known.contains(&&***name));
        if let Some((name, member)) = unknown.next() {
            let hint = match nearest(name, known.iter().copied()) {
                Some(near) => say!(texts::NEAR_PLAIN, near),
                None => say!(texts::KNOWN_ARE, known.join(", ")),
            };
            let what = say!(texts::UNKNOWN_NAME, name.as_ref(), hint);
            return Err(self.sources.render(&Problem::new(member.at, what)).trimmed());
        }
        Ok(members.iter().map(|(name, member)| (&**name, self.at(&member.value))).collect())
    }

    /// A member; `None` if it is missing or null.
    pub fn get(&self, name: &str) -> Option<DocumentEntry<'d>> {
        self.node.get(name).filter(|node| node.kind != NodeValue::Null).map(|node| self.at(node))
    }

    /// A member that must exist.
    pub fn want(&self, name: &str) -> Result<DocumentEntry<'d>, Said> {
        self.get(name).ok_or_else(|| self.wrong(say!(texts::MISSING, name)))
    }

    /// The elements; a single value counts as a list of one.
    pub fn list(&self) -> Vec<DocumentEntry<'d>> {
        self.node.one_or_more().iter().map(|node| self.at(node)).collect()
    }

    /// True if the value is a list.
    pub fn is_list(&self) -> bool {
        self.node.list().is_some()
    }

    /// True if the value is an object.
    pub fn is_map(&self) -> bool {
        self.node.map().is_some()
    }

    /// A text; a number or a boolean as its text.
    pub fn text(&self) -> Result<String, Said> {
        match &self.node.kind {
            NodeValue::Text(_) | NodeValue::Number(_) | NodeValue::Bool(_) => Ok(self.node.shown()),
            _ => Err(self.wrong(texts::WRITE_TEXT)),
        }
    }

    /// A number from `least` to `most`.
    pub fn number(&self, least: f64, most: f64) -> Result<f64, Said> {
        match self.node.kind {
            NodeValue::Number(number) if (least..=most).contains(&number) => Ok(number),
            _ => Err(self.wrong(say!(texts::WRITE_NUMBER, least, most))),
        }
    }

    /// A whole number from 0 to `most`.
    pub fn whole(&self, most: u64) -> Result<u64, Said> {
        let number = self.number(0.0, most as f64)?;
        if number.fract() == 0.0 { Ok(number as u64) } else { Err(self.wrong(texts::WRITE_WHOLE)) }
    }

    /// `true` or `false`.
    pub fn flag(&self) -> Result<bool, Said> {
        match self.node.kind {
            NodeValue::Bool(flag) => Ok(flag),
            _ => Err(self.wrong(texts::WRITE_FLAG)),
        }
    }

    fn at(&self, node: &'d Node) -> DocumentEntry<'d> {
        DocumentEntry { sources: self.sources, node }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_know_their_place() {
        let document = ScriptDocument::read("lab.yml", "name: x\nhosts:\n  app: {cpus: 0.5, many: [1, b]}\n").unwrap();
        let root = document.root();
        assert_eq!(root.want("name").unwrap().text(), Ok("x".to_owned()));
        let app = root.get("hosts").unwrap().get("app").unwrap();
        assert_eq!(app.get("cpus").unwrap().number(0.0, 1.0), Ok(0.5));
        assert_eq!(app.get("many").unwrap().list().len(), 2);
        assert!(app.get("many").unwrap().list()[1].whole(9).unwrap_err().starts_with("lab.yml:3:30: write a number"));
        assert!(
            app.members(&["cpu", "many"])
                .unwrap_err()
                .starts_with("lab.yml:3:9: \"cpus\" is unknown here; did you mean cpu?")
        );
        assert!(root.want("load").unwrap_err().contains("\"load\" is missing"));
        assert!(root.get("hosts").unwrap().text().unwrap_err().contains("a text"));
        let over = ScriptDocument::read("lab.yml", "v: {a: {b: 2}}\na: {b: 1, c: 1}").unwrap();
        let both = over.with(&over.root().get("v").unwrap());
        let number = |name| both.root().get("a").unwrap().get(name).unwrap().whole(9).unwrap();
        assert_eq!((number("b"), number("c")), (2, 1));
        assert!(ScriptDocument::read("lab.yml", "a: [").unwrap_err().starts_with("lab.yml:"));
        assert!(ScriptDocument::read("lab.yml", "").unwrap().root().members(&[]).is_err());
    }
}
