//! Finds templates in a text: `{{ path }}`, `{{{ path }}}` and `{{ $name(1, 2) }}`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::value::{self, Path, Value};
use crate::vars::{VariableNames, VariableSlot, Vars};

/// Most arguments of one call; further ones are ignored.
const ARGUMENTS_MAX: usize = 16;

/// A variable, and a path into it.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    slot: VariableSlot,
    /// For a deep path: the variable whose name is the whole text, which wins.
    whole: Option<VariableSlot>,
    pub(super) path: Path,
}

impl Reference {
    pub(super) fn new(text: &str, names: &mut VariableNames) -> Reference {
        let path = Path::parse(text);
        let slot = names.slot(path.keys.first().map_or("", |key| &key.name));
        let whole = (path.keys.len() > 1).then(|| names.slot(text));
        Reference { slot, whole, path }
    }

    pub(super) fn value<'v>(&self, vars: &'v Vars) -> Cow<'v, Value> {
        let whole = self.whole.map(|slot| vars.get(slot)).filter(|value| **value != Value::Undefined);
        if let Some(whole) = whole {
            return Cow::Borrowed(whole);
        }
        let value = vars.get(self.slot);
        match self.path.keys.get(1..) {
            None | Some([]) => Cow::Borrowed(value),
            Some(keys) => Cow::Owned(value::get(value, keys)),
        }
    }
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(super) struct TemplateCall {
    /// The name with the `$`.
    pub(super) name: Arc<str>,
    pub(super) arguments: Vec<Value>,
}

/// A variable's template in a text.
pub(super) struct TemplateVariable {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) name: String,
}

/// The first call in a text: its start, its end, the call.
pub(super) fn call(text: &str) -> Option<(usize, usize, TemplateCall)> {
    opens(text, 0).find_map(|from| {
        let rest = text.get(from + 2..)?.trim_start();
        let name_len = 1 + rest.strip_prefix('$')?.find(|char: char| !is_word(char))?;
        let (name, rest) = rest.split_at_checked(name_len).filter(|(name, _)| name.len() > 1)?;
        let rest = rest.trim_start().strip_prefix('(')?;
        let (arguments, rest) = rest.split_once(')')?;
        if !arguments.chars().all(|char| is_word(char) || char == ',' || char.is_whitespace()) {
            return None;
        }
        let rest = rest.trim_start().strip_prefix("}}")?;
        Some((from, text.len() - rest.len(), TemplateCall { name: name.into(), arguments: read_arguments(arguments) }))
    })
}

/// The first variable in a text from a position on.
pub(super) fn variable(text: &str, at: usize) -> Option<TemplateVariable> {
    opens(text, at).find_map(|from| {
        let (to, name) = variable_at(text, from)?;
        Some(TemplateVariable { from, to, name: name.to_owned() })
    })
}

/// The variable's name, if the text is a single variable.
pub(super) fn only_variable(text: &str) -> Option<String> {
    if !text.starts_with("{{") {
        return None;
    }
    let (to, name) = variable_at(text, 0)?;
    (to == text.len()).then(|| name.to_owned())
}

fn variable_at(text: &str, from: usize) -> Option<(usize, &str)> {
    let rest = text.get(from + 2..)?;
    let rest = rest.strip_prefix('{').unwrap_or(rest);
    let (name, rest) = rest.split_at_checked(rest.find(|char| !is_of_path(char))?)?;
    let rest = rest.strip_prefix("}}").filter(|_| !name.is_empty())?;
    let rest = rest.strip_prefix('}').unwrap_or(rest);
    Some((text.len() - rest.len(), name.trim()))
}

/// Positions at which two braces open.
fn opens(text: &str, at: usize) -> impl Iterator<Item = usize> {
    let bytes = text.as_bytes().get(at..).unwrap_or_default();
    let is_open = |&place: &usize| bytes.get(place..place + 2) == Some(b"{{");
    memchr::memchr_iter(b'{', bytes).filter(is_open).map(move |place| place + at)
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn is_of_path(char: char) -> bool {
    is_word(char) || char.is_whitespace() || "$.[]'\"-".contains(char)
}

/// The arguments: numbers as numbers, names as `undefined`.
fn read_arguments(text: &str) -> Vec<Value> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let read = |argument: &str| match argument.trim() {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "null" => Value::Null,
        argument if argument.starts_with(|first: char| first.is_ascii_digit()) => {
            Value::Number(value::text_to_number(argument))
        }
        _ => Value::Undefined,
    };
    text.split(',').take(ARGUMENTS_MAX).map(read).collect()
}
