//! The value of a directive that is in force in a block, and where it was set.

use weir_doctor::explain::place;
use weir_doctor::view::{Scope, Spot, View};
use weir_words::{Said, said};

use super::text::code;
use crate::inside::{inside, of_weir_anywhere};
use crate::look::Look;

/// Most blocks that a hover names.
const NAMED_MAX: usize = 3;

/// Directives that may be repeated in a block, of nginx's modules that weir lacks.
const REPEATED: [&str; 4] = ["js_import", "xslt_param", "perl_require", "image_filter"];

/// Directives of which the lines of an outer block stay in force beside those of an inner one.
const ADDED: [&str; 4] =
    ["more_set_headers", "more_clear_headers", "more_set_input_headers", "more_clear_input_headers"];

/// The changes by the statement of this directive at this byte: the lines of outer blocks that it replaces, and the inner
/// blocks that have lines of their own. Nothing if inner blocks do not inherit the directive.
pub fn in_force(look: &Look<'_>, name: &str, file: u32, start: u32, is_inherited: bool) -> Option<String> {
    if !is_inherited {
        return None;
    }
    let view = View::new(look.tree);
    let is_it = |spot: &Spot<'_>| spot.at().file == file && spot.statement().name.at.span.start == start;
    let spot = view.named(name).find(is_it)?;
    let scope = spot.scope();
    let mut parts: Vec<String> = Vec::new();
    parts.extend(outer(look, name, scope, spot).map(|said| said.say(look.language).to_owned()));
    parts.extend(inner(look, name, scope).map(|said| said.say(look.language).to_owned()));
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The name of a block in a sentence.
fn block(scope: Scope<'_>) -> String {
    scope.opener().map_or_else(|| "main".to_owned(), named)
}

/// A block by its line; a server by its names.
fn named(opener: Spot<'_>) -> String {
    let names = opener.inside().get("server_name").map(Spot::text);
    match names {
        Some(names) if opener.name() == "server" && !names.is_empty() => format!("server {names}"),
        _ => opener.line(),
    }
}

fn outer<'v>(look: &Look<'_>, name: &str, scope: Scope<'v>, spot: Spot<'v>) -> Option<Said> {
    let before = scope.outer().map(|outer| outer.effective_all(spot.name())).unwrap_or_default();
    let first = before.first()?;
    let (of, at) = (block(first.scope()), place(look.tree, first.at()));
    let path: Vec<&str> = spot.around().map(Spot::name).collect::<Vec<_>>().into_iter().rev().collect();
    let is_many = of_weir_anywhere(name, inside(&path)).is_some_and(|ours| ours.many) || REPEATED.contains(&name);
    if !is_many {
        let text = code(&first.line());
        return Some(said!(
            "This line replaces {} of {} ({}).",
            "이 줄은 {1}의 {0} ({2}) 대신 적용됩니다.",
            text,
            of,
            at
        ));
    }
    let mode = match name {
        "add_header" => scope.effective("add_header_inherit"),
        "add_trailer" => scope.effective("add_trailer_inherit"),
        _ => None,
    };
    let lines = scope.named(spot.name()).count();
    if mode.is_some_and(|mode| mode.arg(0) == "merge") || ADDED.contains(&name) {
        return Some(said!(
            "The lines of this block ({}) are added to those of {2} ({1}, {3}).",
            "이 블록의 줄({0}개)은 {2}의 줄({1}개, {3})에 더해집니다.",
            lines,
            before.len(),
            of,
            at
        ));
    }
    Some(said!(
        "The lines of this block ({}) replace those of {2} ({1}, {3}): a block inherits them only if it has none of its own.",
        "이 블록의 줄({0}개)이 {2}의 줄({1}개, {3}) 대신 적용됩니다. 블록에 하나도 없을 때만 상속됩니다.",
        lines,
        before.len(),
        of,
        at
    ))
}

/// The blocks inside that have lines of their own.
fn inner(look: &Look<'_>, name: &str, scope: Scope<'_>) -> Option<Said> {
    let mut blocks: Vec<Spot<'_>> = Vec::new();
    for spot in scope.view().named(name) {
        let own = spot.scope();
        let is_inside = !own.is(scope) && own.outwards().any(|outer| outer.is(scope));
        if is_inside && blocks.last().is_none_or(|last| !last.scope().is(own)) {
            blocks.push(spot);
        }
    }
    if blocks.is_empty() {
        return None;
    }
    let shown: Vec<String> = blocks
        .iter()
        .take(NAMED_MAX)
        .map(|spot| format!("{} ({})", code(&block(spot.scope())), place(look.tree, spot.at())))
        .collect();
    let shown = shown.join(", ");
    Some(match blocks.len().saturating_sub(NAMED_MAX) {
        0 => said!("Inside, these blocks set it themselves: {}.", "안쪽에서 따로 정하는 블록: {}", shown),
        more => said!(
            "Inside, these blocks set it themselves: {} and {} more.",
            "안쪽에서 따로 정하는 블록: {} 외 {}개",
            shown,
            more
        ),
    })
}
