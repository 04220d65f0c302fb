//! The possible matches of a regular expression, computed from its syntax tree.
//!
//! `parse` reads PCRE's syntax, `set` is a set of bytes, `ambiguity` finds patterns that can take exponential time,
//! `sample` generates texts that a pattern may match. Results err towards "may match": look-arounds are ignored.
//! PCRE2 does the matching itself, through `weir_http::text::regex`.

pub mod ambiguity;
pub mod parse;
pub mod sample;
pub mod set;

pub use parse::{Node, parse};
pub use set::ByteSet;

/// If a repeated place accepts more bytes than this, the author of the text can choose it freely.
const WIDE: u32 = 10;

impl Node {
    /// Every byte that a match may contain.
    pub fn bytes(&self) -> ByteSet {
        match self {
            Node::Empty | Node::Look(_) | Node::Start | Node::End | Node::Boundary => ByteSet::NONE,
            Node::Back => ByteSet::ALL,
            Node::Set(set) => *set,
            Node::Seq(nodes) | Node::Alt(nodes) => nodes.iter().fold(ByteSet::NONE, |set, node| set.or(node.bytes())),
            Node::Repeat { max: Some(0), .. } => ByteSet::NONE,
            Node::Repeat { node, .. } | Node::Group { node, .. } => node.bytes(),
        }
    }

    /// Whether it may match the empty text.
    pub fn may_be_empty(&self) -> bool {
        match self {
            Node::Empty | Node::Look(_) | Node::Start | Node::End | Node::Boundary | Node::Back => true,
            Node::Set(_) => false,
            Node::Seq(nodes) => nodes.iter().all(Node::may_be_empty),
            Node::Alt(nodes) => nodes.iter().any(Node::may_be_empty),
            Node::Repeat { node, min, .. } => *min == 0 || node.may_be_empty(),
            Node::Group { node, .. } => node.may_be_empty(),
        }
    }

    /// Every byte that a match may begin with.
    pub fn first(&self) -> ByteSet {
        match self {
            Node::Seq(nodes) => {
                let mut set = ByteSet::NONE;
                for node in nodes {
                    set = set.or(node.first());
                    if !node.may_be_empty() {
                        break;
                    }
                }
                set
            }
            Node::Alt(nodes) => nodes.iter().fold(ByteSet::NONE, |set, node| set.or(node.first())),
            Node::Repeat { node, .. } | Node::Group { node, .. } => node.first(),
            leaf => leaf.bytes(),
        }
    }

    /// Whether the author of the text chooses the match freely: many different bytes, repeated.
    pub fn is_free(&self) -> bool {
        match self {
            Node::Seq(nodes) | Node::Alt(nodes) => nodes.iter().any(Node::is_free),
            Node::Repeat { node, max, .. } => {
                node.is_free() || (max.is_none_or(|max| max > 8) && node.bytes().len() > WIDE)
            }
            Node::Group { node, .. } => node.is_free(),
            Node::Back => true,
            Node::Empty | Node::Set(_) | Node::Look(_) | Node::Start | Node::End | Node::Boundary => false,
        }
    }

    /// The group with this number. Also the set of the single byte that has to come before it, if there is one.
    pub fn group(&self, wanted: usize) -> Option<(&Node, ByteSet)> {
        self.find_group(&|number, _| number == Some(wanted), ByteSet::NONE).map(|(node, before, _)| (node, before))
    }

    /// As [`Node::group`], by name.
    pub fn group_named(&self, wanted: &str) -> Option<(&Node, ByteSet)> {
        self.find_group(&|_, name| name == Some(wanted), ByteSet::NONE).map(|(node, before, _)| (node, before))
    }

    /// The number of capturing groups.
    pub fn groups(&self) -> usize {
        let own = usize::from(matches!(self, Node::Group { number: Some(_), .. }));
        own + self.children().map(Node::groups).sum::<usize>()
    }

    /// The nodes directly below.
    pub fn children(&self) -> impl Iterator<Item = &Node> {
        let (many, one): (&[Node], Option<&Node>) = match self {
            Node::Seq(nodes) | Node::Alt(nodes) => (nodes, None),
            Node::Repeat { node, .. } | Node::Group { node, .. } | Node::Look(node) => (&[], Some(node)),
            _ => (&[], None),
        };
        many.iter().chain(one)
    }

    /// Whether a match can begin only at the start of the text.
    pub fn is_anchored_at_start(&self) -> bool {
        match self {
            Node::Start => true,
            Node::Seq(nodes) => {
                nodes.iter().take_while(|node| node.may_be_empty()).any(Node::is_anchored_at_start)
                    || nodes.first().is_some_and(Node::is_anchored_at_start)
            }
            Node::Alt(nodes) => nodes.iter().all(Node::is_anchored_at_start),
            Node::Group { node, .. } => node.is_anchored_at_start(),
            Node::Repeat { node, min, .. } => *min > 0 && node.is_anchored_at_start(),
            _ => false,
        }
    }

    /// Whether a match can end only at the end of the text.
    pub fn is_anchored_at_end(&self) -> bool {
        match self {
            Node::End => true,
            Node::Seq(nodes) => nodes.last().is_some_and(Node::is_anchored_at_end),
            Node::Alt(nodes) => nodes.iter().all(Node::is_anchored_at_end),
            Node::Group { node, .. } => node.is_anchored_at_end(),
            _ => false,
        }
    }

    /// The only text between `^` and `$` that it matches. `None` if there are several.
    pub fn only_text(&self) -> Option<Vec<u8>> {
        let Node::Seq(nodes) = self else { return None };
        let [Node::Start, inner @ .., Node::End] = nodes.as_slice() else { return None };
        inner
            .iter()
            .map(|node| match node {
                Node::Set(set) if set.len() == 1 => set.bytes().next(),
                _ => None,
            })
            .collect()
    }

    /// Finds the group and the byte before it; `before` is the set of bytes to its left.
    fn find_group<'n>(
        &'n self,
        is_wanted: &dyn Fn(Option<usize>, Option<&str>) -> bool,
        before: ByteSet,
    ) -> Option<(&'n Node, ByteSet, ())> {
        match self {
            Node::Group { number, name, node, .. } => {
                if is_wanted(*number, name.as_deref()) {
                    return Some((node, before, ()));
                }
                node.find_group(is_wanted, before)
            }
            Node::Seq(nodes) => {
                let mut before = before;
                for node in nodes {
                    if let Some(found) = node.find_group(is_wanted, before) {
                        return Some(found);
                    }
                    before = match node {
                        Node::Set(set) => *set,
                        Node::Start | Node::Look(_) | Node::Boundary | Node::Empty => before,
                        _ => ByteSet::NONE,
                    };
                }
                None
            }
            Node::Alt(nodes) => nodes.iter().find_map(|node| node.find_group(is_wanted, before)),
            Node::Repeat { node, max, .. } => {
                let before = if *max == Some(1) { before } else { ByteSet::NONE };
                node.find_group(is_wanted, before)
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn tree(pattern: &str) -> Node {
        parse(pattern, false).unwrap()
    }

    #[test]
    fn what_a_group_may_hold() {
        let node = tree(r"^/proxy/(a|b)/(?<rest>\W*)$");
        let (first, before) = node.group(1).unwrap();
        assert_eq!((first.bytes(), before), (ByteSet::of(b"ab"), ByteSet::one(b'/')));
        assert!(!first.is_free());
        let (rest, _) = node.group_named("rest").unwrap();
        assert!(rest.bytes().has(b'\n') && rest.is_free() && rest.may_be_empty() && !rest.bytes().has(b'a'));
        assert!(node.group(3).is_none() && node.groups() == 2);
        let dot = tree("(.*)");
        assert!(!dot.bytes().has(b'\n') && dot.bytes().has(b'\r'));
    }

    #[test]
    fn anchors_and_only_texts() {
        assert!(tree("^a$").is_anchored_at_start() && tree("(^a|^b)c").is_anchored_at_start());
        assert!(!tree("^a|b").is_anchored_at_start() && !tree("a^").is_anchored_at_start());
        assert!(tree("(a|b)$").is_anchored_at_end() && !tree("a$|b").is_anchored_at_end());
        assert_eq!(tree(r"^/a\.b$").only_text().unwrap(), b"/a.b");
        assert_eq!(tree("^/a.b$").only_text(), None);
    }

    #[test]
    fn syntax_is_read() {
        for pattern in [
            r"(?i)a(?-i:b)[^\r\n]*+\d{1,3}\x41\x{42}(?>c)(?=d)(?<!e)\Q.*\E[[:alpha:]_-]",
            r"a{,x} {2}[]a-]\k<n>(?P<n>x)(?#c)|",
            r"(?x) a # comment
              b",
        ] {
            assert!(parse(pattern, false).is_some(), "{pattern}");
        }
        for pattern in ["(", "[a", "a\\", "(?<n", "[[:nope:]]", &"(".repeat(500)] {
            assert!(parse(pattern, false).is_none(), "{pattern}");
        }
        assert!(parse("ab", true).unwrap().bytes().has(b'A'));
    }

    proptest! {
        // PCRE2 decides: a text that it matches has only bytes that the tree allows.
        #[test]
        fn pcre_agrees(pattern in r"([a-c.]|\[\^?[a-c]{1,3}\]|\([a-c.|]{0,4}\)|\\[dwsDWS]|[a-c][*+?]){0,6}", text in "[a-d1 \n/]{0,8}") {
            let regex = weir_http::text::regex::Regex::new(&format!("^(?:{pattern})$"), false, true, |_| unreachable_name());
            let (Ok(regex), Some(node)) = (regex, parse(&pattern, false)) else { return Ok(()) };
            if regex.is_match(text.as_bytes()).is_ok_and(|matches| matches) && !text.ends_with('\n') {
                prop_assert!(text.bytes().all(|byte| node.bytes().has(byte)), "{pattern} {text}");
                prop_assert!(!text.is_empty() || node.may_be_empty());
                prop_assert!(text.is_empty() || text.bytes().next().is_some_and(|byte| node.first().has(byte)));
            }
        }

        #[test]
        fn nothing_panics(pattern in any::<String>()) {
            if let Some(node) = parse(&pattern, true) {
                let _ = (node.bytes(), node.first(), node.groups(), ambiguity::find(&node), sample::texts(&node));
            }
        }
    }

    fn unreachable_name() -> weir_http::text::slots::VariableId {
        weir_http::text::slots::VariableId(0)
    }
}
