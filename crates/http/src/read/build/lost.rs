//! The names that the file would declare if weir had not refused some of its statements.
//!
//! A problem may only follow from a refused statement: a variable that the statement would have defined, a group
//! whose server is wrong. weir reports the cause and not this problem. If the problem has another cause, it appears
//! once the first cause is fixed.

use std::collections::HashSet;

use weir_conf::{Problem, Statement};

use crate::read::nginx_only;
use crate::text::refusal::Need;

/// The names that refused statements would have declared.
pub(super) struct LostNames {
    /// Whether weir has a directive of this name.
    is_known: Box<dyn Fn(&str) -> bool>,
    given: HashSet<Need>,
    /// Names of variables, lower case, without `$`.
    variables: HashSet<String>,
    /// Modules that have a refused directive.
    modules: HashSet<&'static str>,
    /// Part of the file could not be read: anything may be missing.
    all: bool,
    /// Problems that count only if they do not follow from another.
    waiting: Vec<(Need, Problem)>,
}

impl LostNames {
    /// Nothing is lost yet.
    pub(super) fn new(is_known: impl Fn(&str) -> bool + 'static) -> LostNames {
        LostNames {
            is_known: Box::new(is_known),
            given: HashSet::new(),
            variables: HashSet::new(),
            modules: HashSet::new(),
            all: false,
            waiting: Vec::new(),
        }
    }

    /// Notes that part of the file could not be read.
    pub(super) fn lose_all(&mut self) {
        self.all = true;
    }

    /// Notes a refused statement and all statements in its block.
    pub(super) fn note(&mut self, statement: &Statement) {
        self.note_head(statement);
        self.note_variables(statement);
        for inner in statement.children() {
            self.note(inner);
        }
    }

    /// Notes that the declaration of this statement is incomplete.
    pub(super) fn note_head(&mut self, statement: &Statement) {
        let directive = statement.name.text.as_str();
        self.given.insert(Need::new(directive, ""));
        for word in &statement.args {
            self.given.insert(Need::new(directive, &word.text));
            // `zone=NAME:SIZE`, `keys_zone=NAME:SIZE`.
            if let Some((key, value)) = word.text.split_once('=')
                && key.ends_with("zone")
            {
                self.given.insert(Need::new(directive, value.split(':').next().unwrap_or_default()));
            }
        }
        if let Some(entry) = nginx_only::lookup(directive) {
            self.modules.extend(entry.modules.split(", "));
        }
    }

    /// Notes the variables that the statement would have defined.
    fn note_variables(&mut self, statement: &Statement) {
        let words = || statement.args.iter().map(|word| word.text.as_str());
        match statement.name.text.as_str() {
            "set" | "auth_request_set" | "js_set" | "perl_set" => {
                self.variables.extend(words().next().and_then(variable))
            }
            "map" | "split_clients" | "geo" => self.variables.extend(words().next_back().and_then(variable)),
            "keyval" => self.variables.extend(words().nth(1).and_then(variable)),
            name if (self.is_known)(name) => {}
            // weir does not know this directive: it may define any variable in its arguments, and a line of its block
            // starts with the name of a variable.
            name => self.variables.extend(std::iter::once(name).chain(words()).filter_map(variable)),
        }
        for pattern in words() {
            self.variables.extend(group_names(pattern));
        }
    }

    /// Whether a refused statement would have declared this.
    pub(super) fn gives(&self, need: &Need) -> bool {
        self.all || self.given.contains(need)
    }

    /// Whether a refused statement, or its module, would have defined this variable.
    pub(super) fn gives_variable(&self, name: &str) -> bool {
        let of_module = nginx_only::variable_module(name).is_some_and(|module| self.modules.contains(module));
        // Modules that are not part of nginx begin the names of their variables with their own name.
        let first = name.split_once('_').map_or("", |(first, _)| first);
        let is_its_own =
            |module: &&str| module.strip_prefix("separate module ").is_some_and(|name| name.contains(first));
        let of_separate = !first.is_empty() && self.modules.iter().any(is_its_own);
        self.all || self.variables.contains(name) || of_module || of_separate
    }

    /// Keeps a problem until it is known whether it follows from another.
    pub(super) fn wait(&mut self, need: Need, problem: Problem) {
        self.waiting.push((need, problem));
    }

    /// The waiting problems that do not follow from a refused statement.
    pub(super) fn settled(&mut self) -> Vec<Problem> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter(|(need, _)| !self.gives(need)).map(|(_, problem)| problem).collect()
    }
}

/// The name of a variable, if the word is a variable and nothing else.
fn variable(word: &str) -> Option<String> {
    let name = word.strip_prefix('$')?;
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| name.to_ascii_lowercase())
}

/// The named groups of a pattern: `(?<name>…)`, `(?P<name>…)`, `(?'name'…)`.
fn group_names(pattern: &str) -> impl Iterator<Item = String> {
    pattern.split("(?").skip(1).filter_map(|rest| {
        let rest = rest.strip_prefix('P').unwrap_or(rest);
        let end = match rest.bytes().next()? {
            b'<' => '>',
            b'\'' => '\'',
            _ => return None,
        };
        let (name, _) = rest.get(1..)?.split_once(end)?;
        // `(?<=` and `(?<!` look behind.
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then(|| name.to_ascii_lowercase())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_statement_gives_its_names_and_no_other() {
        for (text, gives, lacks) in [
            ("set $a $b;", "a", "b"),
            ("map $a $b { default $c; }", "b", "a"),
            ("geo $a;", "a", "b"),
            ("keyval $a $b zone=z;", "b", "a"),
            ("auth_request_set $A $b;", "a", "b"),
            ("geoip2 /x { $geoip2_code source=$ip country; }", "geoip2_code", "ip"),
            ("location ~ ^/(?<tail>.*) { set $inside 1; return 200 $read; }", "tail", "read"),
            ("location ~ ^/(?<tail>.*) { set $inside 1; return 200 $read; }", "inside", "read"),
            ("rewrite ^/(?P<one>a)(?<=b)$ /;", "one", "b"),
            ("geoip_country /x;", "geoip_country_code", "http3"),
        ] {
            let mut lost = LostNames::new(|name| crate::families().known.has(name));
            let parsed = weir_conf::parse(text.as_bytes(), 0, &|_| false);
            parsed.statements.iter().for_each(|statement| lost.note(statement));
            assert!(lost.gives_variable(gives), "{text}: ${gives}");
            assert!(!lost.gives_variable(lacks), "{text}: ${lacks}");
        }
    }

    #[test]
    fn zones_are_known_by_their_names() {
        let mut lost = LostNames::new(|name| crate::families().known.has(name));
        let parsed =
            weir_conf::parse(b"limit_req_zone $a zone=one:x; proxy_cache_path /p keys_zone=two:1m;", 0, &|_| false);
        parsed.statements.iter().for_each(|statement| lost.note(statement));
        assert!(lost.gives(&Need::new("limit_req_zone", "one")) && lost.gives(&Need::new("limit_req_zone", "")));
        assert!(lost.gives(&Need::new("proxy_cache_path", "two")));
        assert!(!lost.gives(&Need::new("limit_req_zone", "two")) && !lost.gives(&Need::new("limit_conn_zone", "")));
        lost.lose_all();
        assert!(lost.gives(&Need::new("limit_conn_zone", "three")));
    }
}
