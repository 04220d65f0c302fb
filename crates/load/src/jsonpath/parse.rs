//! Parses a path into steps.

use super::script::Script;
use super::{Step, Type};
use crate::value::Key;

/// The longest path, in bytes.
const TEXT_MAX: usize = 16 << 10;
/// Most steps of one path: each step may nest one level deeper.
const STEPS_MAX: usize = 200;

pub(super) fn parse(text: &str) -> Result<Vec<Step>, String> {
    if text.len() > TEXT_MAX {
        return Err(format!("a JSONPath is at most {TEXT_MAX} bytes"));
    }
    let mut steps = Vec::new();
    let mut rest = text;
    if let Some(after) = rest.strip_prefix('$')
        && (after.is_empty() || after.starts_with(['.', '[', '^', '~', '@']))
    {
        rest = after;
    }
    while !rest.is_empty() {
        rest = step(rest, &mut steps).map_err(|why| format!("JSONPath {text}: {why}"))?;
        if steps.len() > STEPS_MAX {
            return Err(format!("a JSONPath has at most {STEPS_MAX} steps"));
        }
    }
    Ok(steps)
}

/// Parses one step, or two, from the start of a text.
fn step<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    if let Some(rest) = text.strip_prefix("..") {
        steps.push(Step::Descend);
        return Ok(rest);
    }
    if let Some(rest) = text.strip_prefix('.') {
        // `.[` is parsed like `..[`.
        if rest.starts_with('[') {
            steps.push(Step::Descend);
        }
        return Ok(rest);
    }
    if let Some(rest) = text.strip_prefix('^') {
        steps.push(Step::Parent);
        return Ok(rest);
    }
    if let Some(rest) = text.strip_prefix('~') {
        steps.push(Step::NameOf);
        return Ok(rest);
    }
    if let Some((kind, rest)) = kind(text) {
        steps.push(Step::Type(kind));
        return Ok(rest);
    }
    if let Some(rest) = text.strip_prefix('[') {
        return bracket(rest, steps);
    }
    let escaped = text.strip_prefix('`');
    let name = escaped.unwrap_or(text);
    let stop = |(at, char): (usize, char)| match char {
        '.' | '[' => Some(at),
        '^' | '~' if escaped.is_none() => Some(at),
        '@' if kind(name.get(at..).unwrap_or("")).is_some() => Some(at),
        _ => None,
    };
    let end = name.char_indices().find_map(stop).unwrap_or(name.len());
    let (name, rest) = name.split_at_checked(end).unwrap_or((name, ""));
    steps.push(match escaped {
        Some(_) => Step::Name(Key::from(name)),
        None => plain(name),
    });
    Ok(rest)
}

/// `@number()` and the other types.
fn kind(text: &str) -> Option<(Type, &str)> {
    let (name, rest) = text.strip_prefix('@')?.split_once("()")?;
    Some((Type::of(name)?, rest))
}

/// Parses the text in brackets, after the opening bracket.
fn bracket<'t>(text: &'t str, steps: &mut Vec<Step>) -> Result<&'t str, String> {
    let trimmed = text.trim_start();
    if trimmed.starts_with("?(") || trimmed.starts_with('(') {
        let is_filter = trimmed.starts_with('?');
        let code = trimmed.strip_prefix('?').unwrap_or(trimmed);
        let (code, rest) = parenthesised(code)?;
        let script = Script::parse(code)?;
        steps.push(if is_filter { Step::Filter(script) } else { Step::Script(script) });
        return rest.trim_start().strip_prefix(']').ok_or_else(|| "] is missing after )".to_owned());
    }
    let mut parts = Vec::new();
    let mut rest = trimmed;
    loop {
        let (part, after) = bracket_part(rest)?;
        parts.push(part);
        match after.split_at_checked(1) {
            Some((",", after)) => rest = after.trim_start(),
            Some(("]", after)) => {
                steps.push(if parts.len() == 1 { parts.swap_remove(0) } else { Step::Union(parts) });
                return Ok(after);
            }
            _ => return Err("] is missing".to_owned()),
        }
        if parts.len() > STEPS_MAX {
            return Err(format!("a union has at most {STEPS_MAX} parts"));
        }
    }
}

fn bracket_part(text: &str) -> Result<(Step, &str), String> {
    let quote = text.chars().next().filter(|char| matches!(char, '\'' | '"'));
    if let Some(quote) = quote {
        let inner = text.get(1..).unwrap_or("");
        let close = inner
            .match_indices(quote)
            .find(|(at, _)| inner.get(at + 1..).is_some_and(|after| after.trim_start().starts_with([']', ','])));
        let (at, _) = close.ok_or_else(|| format!("the closing {quote} is missing"))?;
        let after = inner.get(at + 1..).unwrap_or("").trim_start();
        return Ok((Step::Name(Key::from(inner.get(..at).unwrap_or(""))), after));
    }
    let end = text.find([']', ',']).ok_or("] is missing")?;
    let (part, after) = text.split_at_checked(end).unwrap_or((text, ""));
    Ok((plain(part.trim()), after))
}

/// A name, `*`, `$` or a slice.
fn plain(text: &str) -> Step {
    match text {
        "*" => Step::Any,
        "$" => Step::Root,
        text => slice(text).unwrap_or_else(|| Step::Name(Key::from(text.strip_prefix('`').unwrap_or(text)))),
    }
}

/// `start:end:step`, each of them optional.
fn slice(text: &str) -> Option<Step> {
    let (start, rest) = text.split_once(':')?;
    let (end, step) = rest.split_once(':').unwrap_or((rest, ""));
    let number = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(text.parse::<i64>().unwrap_or(0))
    };
    let step = if step.starts_with('-') { return None } else { number(step)? };
    Some(Step::Slice { start: number(start)?, end: number(end)?, step: usize::try_from(step).unwrap_or(1) })
}

/// The code between `(` and its `)`, and the text after it. Parentheses in quotes and in slashes do not count.
fn parenthesised(text: &str) -> Result<(&str, &str), String> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match (quote, char) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(open), char) if open == char => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(char),
            (None, '(') => depth += 1,
            (None, ')') if depth == 1 => {
                return Ok((text.get(1..at).unwrap_or(""), text.get(at + 1..).unwrap_or("")));
            }
            (None, ')') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    Err(") is missing".to_owned())
}
