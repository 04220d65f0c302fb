//! Texts that contain variables: nginx's "complex values", and the names that a file mentions.
//!
//! Names are interned while the file is read, and bound when the whole file is read, so a `map` may follow its use.
//! At run time a name is an index: into the definitions of the configuration and into the slots of the exchange. A
//! variable that is not found reads as empty, as in nginx.

use std::any::Any;
use std::collections::HashMap;

use crate::text::refusal::Refusal;
use crate::text::slots::{SlotStore, VariableId};
use weir_conf::At;

/// The arguments of a getter besides the exchange: the rest of a prefixed name, and an index for the family.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    /// `user_agent` for `$http_user_agent`; the whole name otherwise.
    pub name: String,
    /// The index of a declaration of the family (which map, which split).
    pub index: u32,
}

/// How weir computes the value of a name. `G` is the getter: of exchanges, or of the sessions of `stream`.
#[derive(Clone)]
pub enum Definition<G> {
    /// A value kept in the exchange: `set`, named captures.
    Slot,
    /// Computed by a family at each reading.
    Computed(G, Argument),
    /// Computed once an exchange and then kept: `map`, `geo`, `split_clients` without `volatile`.
    Cached(G, Argument),
}

/// Something that has variables: an exchange, or a session of `stream`.
pub trait Reads {
    /// Reads a variable into `out`; `false` when it is not found.
    fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool;

    /// The values that it keeps, and the captures of the last match.
    fn slots(&mut self) -> &mut SlotStore;
}

/// Names that a part of a file mentions, without the type of their getters.
pub trait Mentions: Any {
    /// The number of a name that a statement reads: something in the file must define it.
    fn read(&mut self, name: &str) -> VariableId;

    /// Defines a name that keeps its value, unless something defines it already.
    fn define_slot(&mut self, name: &str) -> VariableId;

    /// Sets the place of the current statement.
    fn stand(&mut self, at: At);
}

impl<G: Clone + 'static> Mentions for Names<G> {
    fn read(&mut self, name: &str) -> VariableId {
        Names::read(self, name)
    }

    fn define_slot(&mut self, name: &str) -> VariableId {
        Names::define_slot(self, name)
    }

    fn stand(&mut self, at: At) {
        self.here = at;
    }
}

/// All names that a configuration mentions, and their definitions.
pub struct Names<G> {
    ids: HashMap<String, VariableId>,
    names: Vec<String>,
    definitions: Vec<Option<Definition<G>>>,
    /// The statement that reads each name first.
    used: Vec<Option<At>>,
    /// The names that statements of `http` read for the servers that inherit them, each with its statement.
    inherited: Vec<(VariableId, At)>,
    /// Such a statement is being read.
    pub is_inherited: bool,
    /// For each name that a statement gives a value: the names that the statement reads.
    made_of: Vec<(VariableId, VariableId)>,
    /// The names of the statement that is being read.
    mentioned: Mentioned,
    /// The place of the current statement.
    pub here: At,
}

/// The names that one statement mentions, without the statements in its block.
#[derive(Default)]
pub struct Mentioned {
    read: Vec<VariableId>,
    given: Vec<VariableId>,
}

impl<G> Default for Names<G> {
    fn default() -> Names<G> {
        Names {
            ids: HashMap::new(),
            names: Vec::new(),
            definitions: Vec::new(),
            used: Vec::new(),
            inherited: Vec::new(),
            is_inherited: false,
            made_of: Vec::new(),
            mentioned: Mentioned::default(),
            here: At::default(),
        }
    }
}

impl<G: Clone> Names<G> {
    /// The number of a name; case does not matter (nginx lower-cases variable names).
    pub fn intern(&mut self, name: &str) -> VariableId {
        let name = name.to_ascii_lowercase();
        if let Some(id) = self.ids.get(&name) {
            return *id;
        }
        let id = VariableId(self.names.len() as u32);
        self.names.push(name.clone());
        self.definitions.push(None);
        self.used.push(None);
        self.ids.insert(name, id);
        id
    }

    /// As `intern`, for a place that reads the value: something in the file must define this name.
    pub fn read(&mut self, name: &str) -> VariableId {
        let id = self.intern(name);
        if self.is_inherited {
            self.inherited.push((id, self.here));
        } else if let Some(used @ None) = self.used.get_mut(id.0 as usize) {
            *used = Some(self.here);
        }
        self.mentioned.read.push(id);
        id
    }

    /// Notes that the current statement gives this name a value.
    pub fn give(&mut self, name: &str) -> VariableId {
        let id = self.intern(name);
        self.mentioned.given.push(id);
        id
    }

    /// Begins a statement; returns the names of the statement around it.
    pub fn begin_statement(&mut self) -> Mentioned {
        std::mem::take(&mut self.mentioned)
    }

    /// Ends a statement: its values are made of the names that it reads. The statement around it goes on.
    pub fn end_statement(&mut self, around: Mentioned) {
        let Mentioned { read, given } = std::mem::replace(&mut self.mentioned, around);
        self.made_of.extend(given.iter().flat_map(|given| read.iter().map(|read| (*given, *read))));
    }

    /// For each name, whether its value is made of one of these variables, perhaps through other names; empty if the file
    /// mentions none of them.
    pub fn made_of(&self, variables: &[&str]) -> Vec<bool> {
        let mut made = vec![false; self.names.len()];
        let mut new: Vec<VariableId> = variables.iter().filter_map(|name| self.find(name)).collect();
        if new.is_empty() {
            return Vec::new();
        }
        while let Some(id) = new.pop() {
            if let Some(is_made @ false) = made.get_mut(id.0 as usize) {
                *is_made = true;
                new.extend(self.made_of.iter().filter(|(_, read)| *read == id).map(|(given, _)| *given));
            }
        }
        made
    }

    /// Defines a name. A second definition replaces the first, as with a second `map` to one name.
    pub fn define(&mut self, name: &str, definition: Definition<G>) -> VariableId {
        let id = self.give(name);
        if let Some(slot) = self.definitions.get_mut(id.0 as usize) {
            *slot = Some(definition);
        }
        id
    }

    /// Defines a name that keeps its value in the exchange, unless something defines it already.
    pub fn define_slot(&mut self, name: &str) -> VariableId {
        let id = self.give(name);
        if let Some(slot @ None) = self.definitions.get_mut(id.0 as usize) {
            *slot = Some(Definition::Slot);
        }
        id
    }

    /// As `define`, but replaces only a plain slot and no other definition: for `set` on a `map`'s variable.
    pub fn define_weak(&mut self, name: &str, definition: Definition<G>) -> VariableId {
        let id = self.give(name);
        if let Some(slot @ (None | Some(Definition::Slot))) = self.definitions.get_mut(id.0 as usize) {
            *slot = Some(definition);
        }
        id
    }

    /// The number of a name in lower case, if the configuration mentions it.
    pub fn find(&self, name: &str) -> Option<VariableId> {
        self.ids.get(name).copied()
    }

    /// A name by its number.
    pub fn name(&self, id: VariableId) -> &str {
        self.names.get(id.0 as usize).map_or("", String::as_str)
    }

    /// Whether `is_one` is true for any name.
    pub fn any(&self, is_one: impl Fn(&str) -> bool) -> bool {
        self.names.iter().any(|name| is_one(name))
    }

    /// A server reads the names of the statements of `http` that it inherits.
    pub fn inherit(&mut self, is_inherited: impl Fn(At) -> bool) {
        let used = &mut self.used;
        self.inherited.retain(|(id, at)| {
            let is_read = is_inherited(*at);
            if let (true, Some(used)) = (is_read, used.get_mut(id.0 as usize)) {
                used.get_or_insert(*at);
            }
            !is_read
        });
    }

    /// Binds every name; returns the names that nothing defines, with the statement that reads each first.
    pub fn bind(&self, families: impl Fn(&str) -> Option<Definition<G>>) -> (Vec<Definition<G>>, Vec<(String, At)>) {
        let mut unknown = Vec::new();
        let mut bound = Vec::with_capacity(self.names.len());
        for ((name, definition), used) in self.names.iter().zip(&self.definitions).zip(&self.used) {
            let definition = definition.clone().or_else(|| families(name));
            if let (None, Some(at)) = (&definition, used) {
                unknown.push((name.clone(), *at));
            }
            bound.push(definition.unwrap_or(Definition::Slot));
        }
        (bound, unknown)
    }

    /// The names that the file itself defines.
    pub fn defined(&self) -> impl Iterator<Item = &str> {
        let all = self.names.iter().zip(&self.definitions);
        all.filter(|(_, definition)| definition.is_some()).map(|(name, _)| name.as_str())
    }
}

/// One piece of a template.
#[derive(Clone, Debug)]
enum Part {
    Literal(Box<[u8]>),
    Variable(VariableId),
    Capture(usize),
}

/// A text with variables in it, compiled.
#[derive(Clone, Debug, Default)]
pub struct Template {
    parts: Vec<Part>,
}

impl Template {
    /// Compiles `text`: `$name`, `${name}`, `$1`. Refuses a `$` without a name, as nginx does.
    pub fn compile(text: &str, names: &mut dyn Mentions) -> Result<Template, Refusal> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            if at > 0 {
                parts.push(Part::Literal(rest.as_bytes()[..at].into()));
            }
            let after = &rest[at + 1..];
            let (name, length) = match after.strip_prefix('{') {
                Some(braced) => {
                    let end = braced.find('}').ok_or_else(|| {
                        Refusal::whole(format!("the closing bracket in \"{braced}\" variable is missing"))
                    })?;
                    (&braced[..end], end + 2)
                }
                None => {
                    let end =
                        after.bytes().position(|b| !(b.is_ascii_alphanumeric() || b == b'_')).unwrap_or(after.len());
                    // nginx: `$1` is one digit; `$12` is `$1` followed by "2".
                    let end = if after.starts_with(|c: char| c.is_ascii_digit()) { 1 } else { end };
                    (&after[..end], end)
                }
            };
            if name.is_empty() {
                return Err(Refusal::whole("invalid variable name"));
            }
            match name.as_bytes() {
                [digit @ b'0'..=b'9'] => parts.push(Part::Capture(usize::from(digit - b'0'))),
                _ => parts.push(Part::Variable(names.read(name))),
            }
            rest = &after[length..];
        }
        if !rest.is_empty() {
            parts.push(Part::Literal(rest.as_bytes().into()));
        }
        Ok(Template { parts })
    }

    /// A template without variables.
    pub fn fixed(text: impl Into<Vec<u8>>) -> Template {
        let text: Vec<u8> = text.into();
        let parts = if text.is_empty() { Vec::new() } else { vec![Part::Literal(text.into_boxed_slice())] };
        Template { parts }
    }

    /// The value of one variable; its name may have any letters.
    pub fn of_variable(name: &str, names: &mut dyn Mentions) -> Template {
        Template { parts: vec![Part::Variable(names.read(name))] }
    }

    /// The value of the variable of this number.
    pub fn of_id(id: VariableId) -> Template {
        Template { parts: vec![Part::Variable(id)] }
    }

    /// The text, when it holds no variable.
    pub fn literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The text before the first variable, and whether that is all.
    pub fn beginning(&self) -> (&[u8], bool) {
        match self.parts.as_slice() {
            [Part::Literal(text), rest @ ..] => (text, rest.is_empty()),
            rest => (b"", rest.is_empty()),
        }
    }

    /// The variables it reads; `None` for a capture.
    pub fn variables(&self) -> impl Iterator<Item = Option<VariableId>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Variable(id) => Some(Some(*id)),
            Part::Capture(_) => Some(None),
        })
    }

    /// Whether it reads `$1` to `$9`.
    pub fn has_captures(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Capture(_)))
    }

    /// The one variable this template consists of, if it is just that.
    pub fn single_variable(&self) -> Option<VariableId> {
        match self.parts.as_slice() {
            [Part::Variable(id)] => Some(*id),
            _ => None,
        }
    }

    /// Appends the value to `out`.
    pub fn eval<R: Reads>(&self, reader: &mut R, out: &mut Vec<u8>) {
        self.eval_with(reader, out, |capture, out| out.extend_from_slice(capture));
    }

    /// As `eval`, captures written as `write_capture` does: `rewrite` escapes them in some places.
    pub fn eval_with<R: Reads>(&self, reader: &mut R, out: &mut Vec<u8>, write_capture: impl Fn(&[u8], &mut Vec<u8>)) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Variable(id) => {
                    reader.variable(*id, out);
                }
                Part::Capture(group) => write_capture(reader.slots().captures.get(*group).unwrap_or_default(), out),
            }
        }
    }

    /// The value in a buffer of its own; for code outside the hot path.
    pub fn text<R: Reads>(&self, reader: &mut R) -> Vec<u8> {
        let mut out = Vec::new();
        self.eval(reader, &mut out);
        out
    }
}

/// Whether one of these texts evaluates to a value that is neither empty nor `0` (nginx: `ngx_http_test_predicates`).
pub fn any_set<R: Reads>(reader: &mut R, templates: &[Template]) -> bool {
    if templates.is_empty() {
        return false;
    }
    let mut text = weir_net::buffer::lease(0);
    templates.iter().any(|template| {
        text.clear();
        template.eval(reader, &mut text);
        !text.is_empty() && text.as_slice() != b"0"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Variables whose values are their names in capital letters; one is not found.
    struct Reader(SlotStore, Vec<String>);

    impl Reads for Reader {
        fn variable(&mut self, id: VariableId, out: &mut Vec<u8>) -> bool {
            let name = &self.1[id.0 as usize];
            out.extend(name.to_ascii_uppercase().bytes().filter(|_| name != "missing"));
            name != "missing"
        }

        fn slots(&mut self) -> &mut SlotStore {
            &mut self.0
        }
    }

    fn reader(names: &Names<()>) -> Reader {
        let mut slots = SlotStore::default();
        slots.captures.fill(b"ab c", [Some((0, 4)), Some((0, 2)), None].into_iter());
        Reader(slots, names.names.clone())
    }

    #[test]
    fn a_text_is_its_literals_its_variables_and_its_captures() {
        for (text, expected) in [
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("$a", Ok("A")),
            ("x$a.y", Ok("xA.y")),
            ("${a}b", Ok("Ab")),
            ("$a_b-$A_B", Ok("A_B-A_B")),
            ("[$missing]", Ok("[]")),
            ("$0|$1|$2|$3", Ok("ab c|ab||")),
            ("$12", Ok("ab2")),
            ("${1}2", Ok("ab2")),
            ("$", Err("invalid variable name")),
            ("a$-", Err("invalid variable name")),
            ("${}", Err("invalid variable name")),
            ("${a", Err("the closing bracket in \"a\" variable is missing")),
        ] {
            let mut names = Names::<()>::default();
            let found = Template::compile(text, &mut names).map_err(|refusal| refusal.what);
            let found = found.map(|template| String::from_utf8(template.text(&mut reader(&names))).unwrap());
            assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn a_template_knows_what_it_is_made_of() {
        let mut names = Names::<()>::default();
        let (a, b) = (names.intern("a"), names.intern("b"));
        for (text, literal, beginning, single, variables) in [
            ("", Some("".as_bytes()), (&b""[..], true), None, vec![]),
            ("x", Some(b"x"), (b"x", true), None, vec![]),
            ("$a", None, (b"", false), Some(a), vec![Some(a)]),
            ("x$a$1$b", None, (b"x", false), None, vec![Some(a), None, Some(b)]),
        ] {
            let template = Template::compile(text, &mut names).unwrap();
            assert_eq!((template.literal(), template.beginning()), (literal, beginning), "{text}");
            assert_eq!((template.single_variable(), template.variables().collect::<Vec<_>>()), (single, variables));
            assert_eq!(template.has_captures(), text.contains("$1"), "{text}");
        }
        let escaped = Template::compile("$1 $a", &mut names).unwrap();
        let mut out = Vec::new();
        escaped.eval_with(&mut reader(&names), &mut out, |capture, out| out.extend(capture.iter().rev()));
        assert_eq!(out, b"ba A", "captures alone are written in another way");
    }

    #[test]
    fn a_predicate_is_any_text_that_is_neither_empty_nor_zero() {
        for (texts, expected) in [
            (&[][..], false),
            (&[""][..], false),
            (&["0"], false),
            (&["00"], true),
            (&["", "0", "x"], true),
            (&["$missing"], false),
            (&["$a"], true),
        ] {
            let mut names = Names::<()>::default();
            let templates: Vec<_> = texts.iter().map(|text| Template::compile(text, &mut names).unwrap()).collect();
            assert_eq!(any_set(&mut reader(&names), &templates), expected, "{texts:?}");
        }
    }

    #[test]
    fn a_name_that_is_read_needs_a_definition() {
        let mut names = Names::<u8>::default();
        let at = |line| At { line, ..At::default() };
        names.here = at(1);
        let read = names.read("Known");
        assert_eq!((names.read("KNOWN"), names.name(read)), (read, "known"), "case does not matter");
        names.here = at(2);
        names.read("lost");
        names.here = at(3);
        names.read("lost");
        names.intern("mentioned");
        names.define_slot("own");
        names.read("own");
        let of_family = |name: &str| (name == "known").then_some(Definition::Computed(7, Argument::default()));
        let (bound, unknown) = names.bind(of_family);
        assert_eq!(unknown, [("lost".to_owned(), at(2))], "the first statement that reads it is told");
        assert!(matches!(bound[read.0 as usize], Definition::Computed(7, _)) && bound.len() == 4);
        assert_eq!(names.defined().collect::<Vec<_>>(), ["own"]);
    }

    #[test]
    fn a_later_definition_replaces_an_earlier_one_unless_it_is_weaker() {
        let computed = |number| Definition::Computed(number, Argument::default());
        let mut names = Names::<u8>::default();
        let value = |names: &Names<u8>, id: VariableId| match names.definitions[id.0 as usize] {
            Some(Definition::Computed(number, _)) => Some(number),
            _ => None,
        };
        let id = names.define_slot("a");
        names.define_weak("a", computed(1));
        assert_eq!(value(&names, id), Some(1), "a plain slot gives way");
        names.define_weak("a", computed(2));
        names.define_slot("a");
        assert_eq!(value(&names, id), Some(1));
        names.define("a", computed(3));
        assert_eq!(value(&names, id), Some(3), "the second map to one name counts");
    }

    #[test]
    fn values_are_made_of_what_their_statements_read_through_other_names_too() {
        let mut names = Names::<u8>::default();
        for (given, read) in [("b", "a"), ("c", "b"), ("d", "x"), ("a", "c")] {
            let around = names.begin_statement();
            names.give(given);
            names.read(read);
            names.end_statement(around);
        }
        let made = names.made_of(&["a"]);
        let of = |name: &str| made[names.find(name).unwrap().0 as usize];
        assert_eq!(["a", "b", "c", "d", "x"].map(of), [true, true, true, false, false]);
        assert!(names.made_of(&["nothing"]).is_empty());
    }

    #[test]
    fn names_of_http_are_read_by_the_servers_that_inherit_their_statements() {
        let mut names = Names::<u8>::default();
        let at = |line| At { line, ..At::default() };
        names.is_inherited = true;
        (names.here, _) = (at(1), names.read("a"));
        names.here = at(2);
        names.read("b");
        names.is_inherited = false;
        assert!(names.bind(|_| None).1.is_empty(), "nobody inherits them");
        names.inherit(|place| place == at(2));
        assert_eq!(names.bind(|_| None).1, [("b".to_owned(), at(2))]);
    }
}
