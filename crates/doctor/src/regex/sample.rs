//! Generates texts that a pattern may match, as an attacker would write them to get past the pattern.
//!
//! Not every sample matches, because anchors and look-arounds are ignored. The caller checks with PCRE2.

use super::Node;

/// Most samples of each part of a pattern.
const SAMPLES_MAX: usize = 1500;

/// Most bytes of one sample.
const SAMPLE_BYTES_MAX: usize = 300;

/// Texts that an attacker would put where a pattern accepts any text.
const INTRUDERS: &[&str] = &["", "x", "evil.com", ".evil.com", "evil.com/", "evil.com?", "evil.com#", "evil"];

/// Texts that the pattern may match: each `?` and `*` with and without its part, each branch, and each open place
/// filled.
pub fn texts(node: &Node) -> Vec<String> {
    let mut texts = grow(node);
    texts.truncate(SAMPLES_MAX);
    texts
}

/// Texts that the author of the pattern intended: a bare `.` is a full stop, `/?` is `/`, open places are left out.
pub fn meant(node: &Node) -> Vec<String> {
    let texts = match node {
        Node::Set(set) if set.len() > 200 && set.has(b'.') => vec![".".to_owned()],
        Node::Set(set) => vec![set.bytes().find(u8::is_ascii_graphic).map(char::from).unwrap_or('x').to_string()],
        Node::Seq(nodes) => nodes.iter().fold(vec![String::new()], |texts, node| join(&texts, &meant(node))),
        Node::Alt(nodes) => nodes.iter().flat_map(meant).collect(),
        Node::Group { node, .. } => meant(node),
        Node::Repeat { node, min: 0, max: Some(1), .. } if node.bytes().len() == 1 => meant(node),
        Node::Repeat { min: 0, .. } => vec![String::new()],
        Node::Repeat { node, .. } => meant(node),
        _ => vec![String::new()],
    };
    bounded(texts)
}

fn grow(node: &Node) -> Vec<String> {
    let texts = match node {
        Node::Set(set) => {
            // One byte of each kind that has a different meaning in a URL.
            let mut texts: Vec<String> = Vec::new();
            for byte in *b".xe1/:?#-@" {
                if set.has(byte) {
                    texts.push(char::from(byte).to_string());
                }
            }
            if texts.is_empty() || set.len() == 1 {
                texts = vec![set.bytes().find(u8::is_ascii).map(char::from).unwrap_or('x').to_string()];
            }
            texts.truncate(if set.len() > 200 { 6 } else { 3 });
            texts
        }
        Node::Seq(nodes) => nodes.iter().fold(vec![String::new()], |texts, node| join(&texts, &grow(node))),
        Node::Alt(nodes) => nodes.iter().flat_map(grow).collect(),
        Node::Group { node, .. } => grow(node),
        Node::Repeat { node, min, max, .. } => repeated(node, *min, *max),
        Node::Empty | Node::Look(_) | Node::Start | Node::End | Node::Boundary | Node::Back => vec![String::new()],
    };
    bounded(texts)
}

fn repeated(node: &Node, min: u32, max: Option<u32>) -> Vec<String> {
    let set = node.bytes();
    if max.is_none() && matches!(node, Node::Set(_)) {
        let fits = |text: &&&str| text.bytes().all(|byte| set.has(byte)) && (min == 0 || !text.is_empty());
        let mut texts: Vec<String> = INTRUDERS.iter().filter(fits).map(|text| (*text).to_owned()).collect();
        if texts.is_empty() || (texts.len() == 1 && min == 0) {
            texts.extend(grow(node));
        }
        return texts;
    }
    let once = grow(node);
    let mut texts = if min == 0 { vec![String::new()] } else { Vec::new() };
    let mut round = once.clone();
    // A count such as {3} is followed only as far as a sample needs.
    for _ in 1..min.min(8) {
        round = bounded(join(&round, &once));
    }
    texts.extend(round);
    texts
}

fn join(texts: &[String], more: &[String]) -> Vec<String> {
    let mut joined = Vec::new();
    for end in more {
        for start in texts {
            if joined.len() >= SAMPLES_MAX {
                return joined;
            }
            if start.len() + end.len() <= SAMPLE_BYTES_MAX {
                joined.push(format!("{start}{end}"));
            }
        }
    }
    joined
}

fn bounded(mut texts: Vec<String>) -> Vec<String> {
    texts.truncate(SAMPLES_MAX);
    texts
}
