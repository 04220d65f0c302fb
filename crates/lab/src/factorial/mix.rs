//! Configurations between two others: with some of the changes, but not all.

use weir_conf::Statement;

use crate::change::{Difference, Together};
use crate::said::{Said, say};

/// Most changes in one experiment: eight combinations.
pub const FACTORS_MAX: usize = 3;
/// Directives whose meaning depends on their order among others.
const ORDERED: [&str; 5] = ["rewrite", "set", "return", "break", "if"];

/// A change with a separate effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Its name: the directive, or several directives that are one idea.
    pub name: String,
    /// Its directives.
    pub directives: Vec<String>,
    /// Its changes, a sentence each.
    pub changes: Vec<Said>,
}

/// The factors of these changes. The error names the change that cannot be a factor.
pub fn factors(changes: &[Difference], together: &Together) -> Result<Vec<Factor>, Said> {
    let mut found: Vec<Factor> = Vec::new();
    for change in changes {
        if let Some(ordered) = ORDERED.iter().find(|name| **name == change.name) {
            return Err(say!(ERR_ORDERED, change.said(), *ordered));
        }
        let list = together.iter().find(|list| list.contains(&change.name));
        let directives = list.map_or_else(|| vec![change.name.clone()], Clone::clone);
        let name = directives.join("+");
        match found.iter_mut().find(|factor| factor.name == name) {
            Some(factor) => factor.changes.push(change.said()),
            None => found.push(Factor { name, directives, changes: vec![change.said()] }),
        }
    }
    match found.len() {
        0 => Err(say!(ERR_NO_EFFECTS)),
        1 => Err(say!(ERR_ONE_FACTOR, found.first().map_or("", |one| one.name.as_str()))),
        count if count > FACTORS_MAX => Err(say!(
            ERR_FACTORS_MANY,
            count,
            1u64.checked_shl(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(u64::MAX),
            FACTORS_MAX,
            found.iter().map(|factor| factor.name.as_str()).collect::<Vec<_>>().join(", ")
        )),
        _ => Ok(found),
    }
}

/// The statements of `after`; each directive that is not on is as in `before`. Blocks have to be the same in both.
pub fn mixed(before: &[Statement], after: &[Statement], is_on: &dyn Fn(&str) -> bool) -> Result<Vec<Statement>, Said> {
    let blocks = |statements: &[Statement]| {
        statements.iter().filter(|statement| statement.is_block()).map(line).collect::<Vec<String>>()
    };
    let (one, other) = (blocks(before), blocks(after));
    if one != other {
        let odd = other.iter().find(|line| !one.contains(line)).or(one.iter().find(|line| !other.contains(line)));
        let odd = odd.or(other.first()).or(one.first()).cloned().unwrap_or_default();
        return Err(say!(ERR_WHOLE_BLOCK, odd));
    }
    let mut counterparts = before.iter().filter(|statement| statement.is_block());
    let of = |statements: &[Statement], name: &str| {
        statements.iter().filter(|one| !one.is_block() && one.name.text == name).map(line).collect::<Vec<String>>()
    };
    let is_as_before = |name: &str| !is_on(name) && of(before, name) != of(after, name);
    let kept =
        |name: &str| before.iter().filter(|one| !one.is_block() && one.name.text == *name).cloned().collect::<Vec<_>>();
    let mut found: Vec<Statement> = Vec::new();
    let mut placed: Vec<&str> = Vec::new();
    for statement in after {
        let name = statement.name.text.as_str();
        if statement.is_block() {
            let inner = counterparts.next().map_or(&[][..], Statement::children);
            let mut mixture = statement.clone();
            mixture.block = Some(mixed(inner, statement.children(), is_on)?);
            found.push(mixture);
        } else if !is_as_before(name) {
            found.push(statement.clone());
        } else if !placed.contains(&name) {
            placed.push(name);
            found.extend(kept(name));
        }
    }
    // Statements that the change removes come back if the factor is not on. They come before the blocks that may
    // inherit them.
    let mut gone: Vec<&str> = Vec::new();
    for statement in before.iter().filter(|statement| !statement.is_block()) {
        let name = statement.name.text.as_str();
        if of(after, name).is_empty() && !is_on(name) && !gone.contains(&name) {
            gone.push(name);
        }
    }
    let back = gone.into_iter().flat_map(kept).collect::<Vec<_>>();
    Ok(back.into_iter().chain(found).collect())
}

/// The words of a statement, without their quotes.
fn line(statement: &Statement) -> String {
    statement.words().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}
