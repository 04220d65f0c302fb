//! Lines for a block of a file, as edits.

use weir_conf::edit::{self, Edit};

use crate::view::Spot;

/// The edits that put these lines (without `;`) into the block of a statement. A line replaces the block's line of the
/// same directive, or of the same field for `proxy_set_header`. Other lines come after the statement. `None` in `if` and
/// `limit_except`, where nginx refuses most directives, and if a new `proxy_set_header` would drop those of the outer
/// block.
pub fn edits_for(beside: Spot<'_>, lines: &[String]) -> Option<Vec<Edit>> {
    let scope = beside.scope();
    let headers = scope.effective_all("proxy_set_header");
    let drops = headers.first().is_some_and(|spot| !spot.scope().is(scope));
    let adds_header = lines.iter().any(|line| line.starts_with("proxy_set_header "));
    if ["if", "limit_except"].contains(&scope.name()) || drops && adds_header {
        return None;
    }
    let mut edits = Vec::new();
    let mut new: Vec<&str> = Vec::new();
    for line in lines {
        let mut words = line.split(' ');
        let (name, first) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        // A second line would be a duplicate, or a second field.
        let mut own = scope.statements().filter(|spot| spot.name() == name);
        let old = own.find(|spot| name != "proxy_set_header" || spot.arg(0).eq_ignore_ascii_case(first));
        match old {
            Some(old) => edits.push(edit::replace(old.statement(), line)),
            None => new.push(line),
        }
    }
    if !new.is_empty() {
        edits.push(edit::insert_after(beside.view().tree(), beside.statement(), &new.join("\n"))?);
    }
    Some(edits)
}
