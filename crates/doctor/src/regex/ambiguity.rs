//! Finds patterns for which a backtracking matcher can take exponential or polynomial time.
//!
//! The pattern becomes Glushkov's automaton: one state for each place that matches a byte, and one edge for each way
//! from one place to the next. Assume that the same text leads from a place back to it in two ways. Then the ways
//! double with each round, and a text that fails at the end makes PCRE try all of them (Weideman et al., "Analyzing
//! Matching Time Behavior of Backtracking Regular Expression Matchers", CIAA 2016: exponential ambiguity).

use super::{ByteSet, Node};

/// Most places of a pattern that is checked. The search is of the fourth order in the worst case.
const PLACES_MAX: usize = 160;

/// How slow a pattern can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguity {
    /// The time doubles with every few bytes.
    Exponential,
    /// The time grows at least with the square of the text's length.
    Polynomial,
}

/// The ambiguity of the pattern, if any. A pattern that is too large is not judged.
pub fn find(node: &Node) -> Option<Ambiguity> {
    let mut automaton = Automaton { sets: Vec::new(), follow: Vec::new() };
    automaton.add(node)?;
    if automaton.is_exponential() {
        return Some(Ambiguity::Exponential);
    }
    has_neighbours(node).then_some(Ambiguity::Polynomial)
}

struct Automaton {
    sets: Vec<ByteSet>,
    /// The places that follow a place. A place is listed twice if there are two ways.
    follow: Vec<Vec<usize>>,
}

/// The first and last places of a part, and whether the part can match the empty text.
#[derive(Default)]
struct Ends {
    first: Vec<usize>,
    last: Vec<usize>,
    empty: bool,
}

impl Automaton {
    fn place(&mut self, set: ByteSet) -> Option<Ends> {
        let place = self.sets.len();
        if place >= PLACES_MAX {
            return None;
        }
        self.sets.push(set);
        self.follow.push(Vec::new());
        Some(Ends { first: vec![place], last: vec![place], empty: false })
    }

    fn connect(&mut self, from: &[usize], to: &[usize]) {
        for place in from {
            if let Some(follow) = self.follow.get_mut(*place) {
                follow.extend_from_slice(to);
            }
        }
    }

    fn add(&mut self, node: &Node) -> Option<Ends> {
        Some(match node {
            Node::Empty | Node::Look(_) | Node::Start | Node::End | Node::Boundary => {
                Ends { empty: true, ..Ends::default() }
            }
            Node::Back => self.place(ByteSet::ALL)?,
            Node::Set(set) => self.place(*set)?,
            // The inner part is atomic, so its own ways do not multiply.
            Node::Group { atomic: true, node, .. } | Node::Repeat { keeps: true, node, .. } => {
                let mut ends = self.place(node.bytes())?;
                ends.empty = node.may_be_empty();
                ends
            }
            Node::Group { node, .. } => self.add(node)?,
            Node::Seq(nodes) => {
                let mut whole = Ends { empty: true, ..Ends::default() };
                for node in nodes {
                    let part = self.add(node)?;
                    self.connect(&whole.last, &part.first);
                    if whole.empty {
                        whole.first.extend_from_slice(&part.first);
                    }
                    if !part.empty {
                        whole.last.clear();
                    }
                    whole.last.extend_from_slice(&part.last);
                    whole.empty &= part.empty;
                }
                whole
            }
            Node::Alt(nodes) => {
                let mut whole = Ends::default();
                for node in nodes {
                    let part = self.add(node)?;
                    whole.first.extend(part.first);
                    whole.last.extend(part.last);
                    whole.empty |= part.empty;
                }
                whole
            }
            Node::Repeat { node, min, max, .. } => {
                let mut ends = self.add(node)?;
                if max.is_none() {
                    let (last, first) = (ends.last.clone(), ends.first.clone());
                    self.connect(&last, &first);
                }
                ends.empty |= *min == 0;
                ends
            }
        })
    }

    /// Searches pairs of places that the same text reaches, forwards and backwards. There are two ways if the search
    /// gets from (q, q) to a pair of different places and back to (q, q), or if two edges lead from q to the same
    /// place.
    fn is_exponential(&self) -> bool {
        (0..self.sets.len()).any(|place| {
            let there = self.reach(place, false);
            let mut back = None;
            there.iter().enumerate().any(|(pair, ways)| {
                *ways > 0 && {
                    let back = back.get_or_insert_with(|| self.reach(place, true));
                    let returns = back.get(pair).is_some_and(|ways| *ways > 0);
                    let (a, b) = (pair / self.sets.len(), pair % self.sets.len());
                    returns && (a != b || self.is_doubled(a, place, back))
                }
            })
        })
    }

    /// Whether two edges lead from `place` to a place that returns to it.
    fn is_doubled(&self, place: usize, _home: usize, back: &[u8]) -> bool {
        let follow = self.follow.get(place).map_or(&[][..], Vec::as_slice);
        follow.iter().enumerate().any(|(index, to)| {
            let again = follow.get(index + 1..).is_some_and(|rest| rest.contains(to));
            let pair = to * self.sets.len() + to;
            again && back.get(pair).is_some_and(|ways| *ways > 0)
        })
    }

    /// The pairs that are reached from (place, place) in one or more steps; backwards, the pairs that reach it.
    fn reach(&self, place: usize, backwards: bool) -> Vec<u8> {
        let count = self.sets.len();
        let mut reached = vec![0_u8; count * count];
        let mut open = vec![(place, place)];
        let reverse;
        let edges = if backwards {
            reverse = self.reversed();
            &reverse
        } else {
            &self.follow
        };
        let none = Vec::new();
        while let Some((a, b)) = open.pop() {
            for to_a in edges.get(a).unwrap_or(&none) {
                for to_b in edges.get(b).unwrap_or(&none) {
                    // An edge consumes a byte of its target place. Backwards, the target is the present place.
                    let (at_a, at_b) = if backwards { (a, b) } else { (*to_a, *to_b) };
                    let meets = match (self.sets.get(at_a), self.sets.get(at_b)) {
                        (Some(one), Some(other)) => one.meets(*other),
                        _ => false,
                    };
                    if !meets {
                        continue;
                    }
                    if let Some(seen @ 0) = reached.get_mut(to_a * count + to_b) {
                        *seen = 1;
                        open.push((*to_a, *to_b));
                    }
                }
            }
        }
        reached
    }

    fn reversed(&self) -> Vec<Vec<usize>> {
        let mut reverse = vec![Vec::new(); self.sets.len()];
        for (from, follow) in self.follow.iter().enumerate() {
            for to in follow {
                if let Some(list) = reverse.get_mut(*to) {
                    let list: &mut Vec<usize> = list;
                    if !list.contains(&from) {
                        list.push(from);
                    }
                }
            }
        }
        reverse
    }
}

/// Two adjacent unbounded repeats of the same bytes (`.*.*x`), followed by a part that can fail.
fn has_neighbours(node: &Node) -> bool {
    if let Node::Seq(nodes) = node {
        let mut before: Option<ByteSet> = None;
        for (index, node) in nodes.iter().enumerate() {
            let unbounded = unbounded(node);
            let fails_later = nodes.get(index + 1..).is_some_and(|rest| rest.iter().any(|node| !node.may_be_empty()));
            match (before, unbounded) {
                (Some(one), Some(other)) if one.meets(other) && fails_later => return true,
                (_, Some(set)) => before = Some(set),
                (_, None) if !node.may_be_empty() => before = None,
                (_, None) => {}
            }
        }
    }
    node.children().any(has_neighbours)
}

/// The bytes of a node like `a*`, also inside groups.
fn unbounded(node: &Node) -> Option<ByteSet> {
    match node {
        Node::Repeat { node, max: None, keeps: false, .. } => Some(node.bytes()),
        Node::Group { node, atomic: false, .. } => unbounded(node),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::parse;
    use super::*;

    #[test]
    fn ambiguous_patterns_are_told_from_harmless_ones() {
        let cases = [
            ("^/(a+)+$", Some(Ambiguity::Exponential)),
            ("^/(a*)+/files$", Some(Ambiguity::Exponential)),
            ("^/((ab)+)+/test$", Some(Ambiguity::Exponential)),
            ("^/(.|x)+/path$", Some(Ambiguity::Exponential)),
            ("^(a?b?)*c", Some(Ambiguity::Exponential)),
            (r"^(\w+\s?)*$", Some(Ambiguity::Exponential)),
            ("^/.*.*end$", Some(Ambiguity::Polynomial)),
            (r"^/(\w+/)+endpoint$", None),
            (r"^https?://([a-z0-9-]+\.)+com$", None),
            ("^/(foo[a-w]+x|bar[0-8]+9)+$", None),
            ("^/([_0-9a-zA-Z-]+/)?core/(.*)$", None),
            ("^/(?>a+)+$", None),
            ("^/(a++)+$", None),
            (r"^/\s*(.*)$", None),
            ("^/(foo|bar)*$", None),
        ];
        for (pattern, expected) in cases {
            assert_eq!(find(&parse(pattern, false).unwrap()), expected, "{pattern}");
        }
    }
}
