//! Every place of a configuration where a name is defined or used.
//!
//! A name belongs to `http` or to `stream`; a named location belongs to its server. A host is the name of an upstream
//! only if such an upstream is there. If a variable gives the name of an upstream or of a cache (`proxy_pass http://$up`),
//! the values that `map`, `geo`, `split_clients` and `set` give this variable are uses, too.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use weir_conf::{At, Span, Statement, Tree, Word};

use crate::inside::DATA_BLOCKS;
use crate::names::{
    self, MentionRole, NameForm, NamedKind, carrier, groups, is_variable_byte, pattern_in, rows_of, variables,
};
use crate::place::FilePlace;
use crate::under::is_opaque;

/// Most mentions of one configuration; those behind them are not found.
const MENTIONS_MAX: usize = 500_000;

/// Where a name is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NameScope {
    /// The whole configuration.
    Main,
    /// `http`, and files without such a block.
    Http,
    /// `stream`.
    Stream,
    /// `mail`.
    Mail,
    /// Each server of `http`: a use outside of all servers.
    EachServer,
    /// The server with this number, in the order of the files.
    Server(u32),
}

/// A name where it stands.
#[derive(Clone, Debug)]
pub struct Mention {
    /// Its kind.
    pub kind: NamedKind,
    /// Where it is valid.
    pub scope: NameScope,
    /// The name, in lower case if nginx ignores the case.
    pub name: String,
    /// Its role here.
    pub role: MentionRole,
    /// The bytes of the name.
    pub place: FilePlace,
    /// First byte of what introduces the name (`$`, `${`, `@`), or of the name.
    pub lead: u32,
    /// The place of the statement; [`statement_at`] finds it.
    pub statement: At,
}

/// A name with its kind and scope.
pub type NameKey = (NamedKind, NameScope, String);

impl Mention {
    /// The name with its kind and scope.
    pub fn key(&self) -> NameKey {
        (self.kind, self.scope, self.name.clone())
    }
}

/// All names of a configuration.
#[derive(Default)]
pub struct Mentions {
    /// In the order of the tree.
    pub all: Vec<Mention>,
    by_name: HashMap<NameKey, Vec<u32>>,
}

impl Mentions {
    /// Finds them.
    pub fn new(tree: &Tree) -> Mentions {
        let mut reader = Reader { tree, found: Vec::new(), servers: 0, carriers: Vec::new(), values: HashMap::new() };
        let outside = Surroundings { block: "", scope: NameScope::Http, server: None };
        reader.statements(&tree.root, outside);
        reader.follow_carriers();
        reader.reach_servers();
        let all = reader.named();
        let mut by_name: HashMap<NameKey, Vec<u32>> = HashMap::new();
        for (index, mention) in (0..).zip(&all) {
            by_name.entry(mention.key()).or_default().push(index);
        }
        Mentions { all, by_name }
    }

    /// The mentions at an offset of a file. A file that is included twice may have several.
    pub fn at(&self, file: u32, offset: u32) -> Vec<&Mention> {
        let covers = |mention: &&Mention| {
            mention.place.file == file && mention.lead <= offset && offset <= mention.place.span.end
        };
        let found: Vec<&Mention> = self.all.iter().filter(covers).collect();
        // Between two names, the one that begins here is meant.
        let begins: Vec<&Mention> = found.iter().copied().filter(|mention| offset < mention.place.span.end).collect();
        if begins.is_empty() { found } else { begins }
    }

    /// All mentions of a name.
    pub fn of(&self, key: &NameKey) -> impl Iterator<Item = &Mention> {
        let list = self.by_name.get(key).map_or(&[][..], Vec::as_slice);
        list.iter().filter_map(|index| self.all.get(*index as usize))
    }

    /// The definitions of a name. If blocks share a thing by its name, the first of them.
    pub fn definitions(&self, key: &NameKey) -> Vec<&Mention> {
        let defines: Vec<&Mention> = self.of(key).filter(|one| one.role == MentionRole::Defines).collect();
        if !defines.is_empty() {
            return defines;
        }
        self.of(key).find(|one| one.role == MentionRole::Shares).into_iter().collect()
    }

    /// Whether something defines this name.
    pub fn is_defined(&self, key: &NameKey) -> bool {
        self.of(key).any(|one| one.role != MentionRole::Uses)
    }

    /// The names of a kind that are valid in a scope, each once, as their definition spells them.
    pub fn defined(&self, kind: NamedKind, scope: NameScope) -> Vec<&Mention> {
        let mut seen = HashSet::new();
        let is_such = |one: &&Mention| {
            let fits = one.scope == scope || (kind == NamedKind::NamedLocation && scope == NameScope::EachServer);
            one.kind == kind && one.role != MentionRole::Uses && fits
        };
        self.all.iter().filter(is_such).filter(|one| seen.insert(one.name.as_str())).collect()
    }
}

/// The blocks around statements.
#[derive(Clone, Copy)]
struct Surroundings<'t> {
    /// The innermost block.
    block: &'t str,
    /// `http`, `stream` or `mail`.
    scope: NameScope,
    /// The number of the server.
    server: Option<u32>,
}

/// A value of a variable.
struct GivenValue<'t> {
    word: &'t Word,
    statement: &'t Statement,
    scope: NameScope,
}

struct Reader<'t> {
    tree: &'t Tree,
    found: Vec<Mention>,
    servers: u32,
    /// Variables whose values are names of a kind.
    carriers: Vec<(NameScope, String, NamedKind)>,
    /// The values of variables.
    values: HashMap<(NameScope, String), Vec<GivenValue<'t>>>,
}

impl<'t> Reader<'t> {
    fn statements(&mut self, statements: &'t [Statement], around: Surroundings<'t>) {
        for statement in statements {
            self.statement(statement, around);
            if statement.is_block() {
                self.block(statement, around);
            }
        }
    }

    fn block(&mut self, statement: &'t Statement, around: Surroundings<'t>) {
        let name = statement.name.text.as_str();
        let inside = Surroundings { block: name, ..around };
        match name {
            "http" => self.statements(statement.children(), Surroundings { scope: NameScope::Http, ..inside }),
            "stream" => self.statements(statement.children(), Surroundings { scope: NameScope::Stream, ..inside }),
            "mail" => self.statements(statement.children(), Surroundings { scope: NameScope::Mail, ..inside }),
            "server" => {
                let server = Some(self.servers);
                self.servers = self.servers.saturating_add(1);
                self.statements(statement.children(), Surroundings { server, ..inside });
            }
            data if DATA_BLOCKS.contains(&data) => self.entries(statement, inside),
            _ => self.statements(statement.children(), inside),
        }
    }

    /// The entries of a block that gives a variable its values, or of another block of data.
    fn entries(&mut self, block: &'t Statement, around: Surroundings<'t>) {
        let name = block.name.text.as_str();
        let variable = block.args.last().and_then(|last| last.text.strip_prefix('$')).map(str::to_ascii_lowercase);
        for entry in block.children() {
            if name == "map" {
                if pattern_key(entry.name.bytes()) {
                    self.named_groups(&entry.name, entry, around);
                }
                self.uses(entry, around, |_| false);
            }
            if name == "geoip2" && entry.name.text.starts_with('$') {
                self.mention(NamedKind::Variable, MentionRole::Defines, &entry.name, (0, 1..usize::MAX), entry, around);
            }
            if matches!(name, "map" | "geo" | "split_clients")
                && let (Some(variable), Some(word)) = (&variable, entry.args.first())
            {
                self.give(variable, word, entry, around);
            }
        }
    }

    fn give(&mut self, variable: &str, word: &'t Word, statement: &'t Statement, around: Surroundings<'t>) {
        let value = GivenValue { word, statement, scope: around.scope };
        self.values.entry((around.scope, variable.to_owned())).or_default().push(value);
    }

    fn statement(&mut self, statement: &'t Statement, around: Surroundings<'t>) {
        let name = statement.name.text.as_str();
        if name.ends_with("_by_lua") || is_opaque(name) {
            self.lua(statement, around);
        }
        let mut defined = None;
        // The `match` and `upstream` of other blocks are not those that the table means.
        let is_block = matches!(name, "upstream" | "match" | "acme_issuer" | "oidc_provider");
        let is_elsewhere = (is_block && !statement.is_block()) || (name == "zone" && around.block != "upstream");
        let rows: Vec<&names::NameRow> = rows_of(name).filter(|_| !is_elsewhere).collect();
        for (index, word) in statement.args.iter().enumerate().filter(|(_, word)| word.quoted != Some('{')) {
            let next = statement.args.get(index + 1).map(Word::bytes);
            for row in &rows {
                if let Some(range) = row.find(index, statement.args.len(), word.bytes(), next) {
                    if row.form == NameForm::Dollar {
                        defined = Some(index);
                    }
                    let lead = range.start - usize::from(matches!(row.form, NameForm::Dollar | NameForm::Sign));
                    self.mention(row.kind, row.role, word, (lead, range), statement, around);
                } else if carries(row)
                    && let Some(range) = carrier(word.bytes())
                {
                    let name = word.bytes().get(range).unwrap_or_default();
                    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
                    self.carriers.push((around.scope, name, row.kind));
                }
            }
        }
        if name == "set"
            && let (Some(variable), Some(word)) = (statement.text(0).strip_prefix('$'), statement.arg(1))
        {
            self.give(&variable.to_ascii_lowercase(), word, statement, around);
        }
        if !is_text(name) {
            return;
        }
        for (index, word) in statement.args.iter().enumerate() {
            let bytes = |index: usize| statement.args.get(index).map(Word::bytes);
            if pattern_in(name, around.block, index, bytes).is_some() {
                self.named_groups(word, statement, around);
            }
        }
        let is_pattern =
            |index| pattern_in(name, around.block, index, |index| statement.args.get(index).map(Word::bytes)).is_some();
        self.uses(statement, around, |index| defined == Some(index) || is_pattern(index));
    }

    /// The variables in the arguments of a statement, but for those that are left out.
    fn uses(&mut self, statement: &'t Statement, around: Surroundings<'t>, is_left_out: impl Fn(usize) -> bool) {
        for (index, word) in statement.args.iter().enumerate() {
            if is_left_out(index) || word.quoted == Some('{') || !word.bytes().contains(&b'$') {
                continue;
            }
            for one in variables(word.bytes()) {
                let range = (one.lead, one.start..one.end);
                self.mention(NamedKind::Variable, MentionRole::Uses, word, range, statement, around);
            }
        }
    }

    fn named_groups(&mut self, word: &'t Word, statement: &'t Statement, around: Surroundings<'t>) {
        for range in groups(word.bytes()) {
            let range = (range.start, range);
            self.mention(NamedKind::Variable, MentionRole::Defines, word, range, statement, around);
        }
    }

    /// The variables that Lua reads as `ngx.var.name`.
    fn lua(&mut self, statement: &'t Statement, around: Surroundings<'t>) {
        const READS: &[u8] = b"ngx.var.";
        for word in &statement.args {
            let text = word.bytes();
            let mut at = 0;
            while let Some(found) =
                text.get(at..).and_then(|rest| rest.windows(READS.len()).position(|window| window == READS))
            {
                let start = at + found + READS.len();
                let rest = text.get(start..).unwrap_or_default();
                let end = start + rest.iter().position(|byte| !is_variable_byte(byte)).unwrap_or(rest.len());
                at = end.max(start);
                if end > start {
                    let range = (start, start..end);
                    self.mention(NamedKind::Variable, MentionRole::Uses, word, range, statement, around);
                }
            }
        }
    }

    /// Adds a mention. The range is in the decoded text of the word; the number before it is the first byte of what
    /// introduces the name.
    fn mention(
        &mut self,
        kind: NamedKind,
        role: MentionRole,
        word: &'t Word,
        (lead, range): (usize, Range<usize>),
        statement: &'t Statement,
        around: Surroundings<'t>,
    ) {
        if self.found.len() >= MENTIONS_MAX {
            return;
        }
        let range = range.start..range.end.min(word.bytes().len());
        let Some(name) = word.bytes().get(range.clone()).and_then(|name| std::str::from_utf8(name).ok()) else {
            return;
        };
        if name.is_empty() {
            return;
        }
        let Some(span) = raw_span(self.tree, word, &range) else { return };
        let lead = raw_span(self.tree, word, &(lead..range.end)).map_or(span.start, |span| span.start);
        let name = if kind.ignores_case() { name.to_ascii_lowercase() } else { name.to_owned() };
        let scope = match (kind, around.server) {
            (NamedKind::NamedLocation, Some(server)) => NameScope::Server(server),
            (NamedKind::NamedLocation, None) => NameScope::EachServer,
            (NamedKind::ThreadPool, _) => NameScope::Main,
            _ => around.scope,
        };
        let place = FilePlace { file: word.at.file, span };
        self.found.push(Mention { kind, scope, name, role, place, lead, statement: statement.at });
    }

    /// Adds the values of variables that carry names.
    fn follow_carriers(&mut self) {
        let mut defined: HashMap<(NamedKind, NameScope), HashSet<String>> = HashMap::new();
        for one in self.found.iter().filter(|one| one.role == MentionRole::Defines) {
            defined.entry((one.kind, one.scope)).or_default().insert(one.name.clone());
        }
        let mut open = std::mem::take(&mut self.carriers);
        let mut seen: HashSet<(NameScope, String, NamedKind)> = HashSet::new();
        while let Some((scope, variable, kind)) = open.pop() {
            if !seen.insert((scope, variable.clone(), kind)) {
                continue;
            }
            let Some(known) = defined.get(&(kind, scope)) else { continue };
            let Some(values) = self.values.remove(&(scope, variable.clone())) else { continue };
            for value in &values {
                let text = value.word.bytes();
                if let Some(range) = carrier(text) {
                    let name = text.get(range).unwrap_or_default();
                    open.push((scope, String::from_utf8_lossy(name).to_ascii_lowercase(), kind));
                    continue;
                }
                let form = if kind == NamedKind::Upstream { NameForm::Host } else { NameForm::Whole };
                let Some(range) = form.find(text) else { continue };
                let name = text.get(range.clone()).unwrap_or_default();
                let name = String::from_utf8_lossy(name);
                let name = if kind.ignores_case() { name.to_ascii_lowercase() } else { name.into_owned() };
                if known.contains(&name) {
                    let around = Surroundings { block: "", scope: value.scope, server: None };
                    self.mention(kind, MentionRole::Uses, value.word, (range.start, range), value.statement, around);
                }
            }
            // A variable may carry names of several kinds.
            self.values.insert((scope, variable), values);
        }
    }

    /// Lets a use of a named location outside of all servers reach the servers that have it.
    fn reach_servers(&mut self) {
        let is_named = |one: &&Mention| one.kind == NamedKind::NamedLocation;
        let mut servers: HashMap<&str, Vec<NameScope>> = HashMap::new();
        for one in self.found.iter().filter(is_named).filter(|one| one.role == MentionRole::Defines) {
            servers.entry(&one.name).or_default().push(one.scope);
        }
        let outside = self.found.iter().filter(is_named).filter(|one| one.scope == NameScope::EachServer);
        let mut reached = Vec::new();
        for one in outside {
            for scope in servers.get(one.name.as_str()).into_iter().flatten().filter(|scope| **scope != one.scope) {
                if self.found.len() + reached.len() >= MENTIONS_MAX {
                    break;
                }
                reached.push(Mention { scope: *scope, ..one.clone() });
            }
        }
        self.found.append(&mut reached);
    }

    /// The mentions without the hosts that are no upstreams.
    fn named(self) -> Vec<Mention> {
        let is_upstream = |one: &&Mention| one.kind == NamedKind::Upstream;
        let defined: HashSet<(NameScope, String)> = self
            .found
            .iter()
            .filter(is_upstream)
            .filter(|one| one.role == MentionRole::Defines)
            .map(|one| (one.scope, one.name.clone()))
            .collect();
        let stays = |one: &Mention| one.kind != NamedKind::Upstream || defined.contains(&(one.scope, one.name.clone()));
        self.found.into_iter().filter(stays).collect()
    }
}

/// The statement at this place. A file that is included twice has two with the same words; the first is taken.
pub fn statement_at(tree: &Tree, at: At) -> Option<&Statement> {
    tree.first(&|statement| statement.at == at)
}

/// Whether the key of a map is a pattern.
fn pattern_key(key: &[u8]) -> bool {
    key.starts_with(b"~")
}

/// Whether a variable may stand for the name of this row.
fn carries(row: &names::NameRow) -> bool {
    use NamedKind::{FastcgiCache, ProxyCache, ScgiCache, Upstream, UwsgiCache};
    let kinds = [Upstream, ProxyCache, FastcgiCache, UwsgiCache, ScgiCache];
    row.role == MentionRole::Uses && kinds.contains(&row.kind) && row.argument == names::NameArgument::At(0)
}

/// Whether the arguments of a directive are texts of nginx, not code of another language.
fn is_text(directive: &str) -> bool {
    let is_code = directive.ends_with("_by_lua") || is_opaque(directive) || directive.starts_with("perl");
    !is_code
}

/// The bytes of a part of a word, whose range is in its decoded text.
fn raw_span(tree: &Tree, word: &Word, range: &Range<usize>) -> Option<Span> {
    let whole = word.at.span;
    let is_quoted = matches!(word.quoted, Some('"' | '\''));
    let first = whole.start.saturating_add(u32::from(is_quoted));
    let raw = tree.source(&word.at)?.bytes.get(first as usize..)?;
    let span = |start: usize, end: usize| {
        let place = |offset: usize| u32::try_from(offset).ok().and_then(|offset| first.checked_add(offset));
        let span = Span { start: place(start)?, end: place(end)? };
        (span.end <= whole.end).then_some(span)
    };
    let length = word.bytes().len();
    let written = (whole.end - whole.start) as usize - 2 * usize::from(is_quoted);
    if length == written {
        return span(range.start, range.end);
    }
    // Escapes make the text shorter than what is written.
    let (mut start, mut at, mut decoded) = (None, 0, 0);
    while decoded <= range.end {
        if decoded == range.start {
            start = Some(at);
        }
        if decoded == range.end {
            return span(start?, at);
        }
        let is_escape =
            raw.get(at) == Some(&b'\\') && matches!(raw.get(at + 1), Some(b'"' | b'\'' | b'\\' | b't' | b'r' | b'n'));
        at += if is_escape { 2 } else { 1 };
        decoded += 1;
    }
    None
}

#[cfg(test)]
pub mod tests {
    #![allow(clippy::unwrap_used, missing_docs)]

    use super::*;

    pub fn tree(files: &[(&str, &str)]) -> Tree {
        let memory = files.iter().fold(weir_conf::MemoryFiles::new(), |memory, (name, text)| memory.with(name, text));
        weir_conf::load(&memory, files[0].0, "/", &is_opaque).0
    }

    /// Each mention as `kind name role@line`.
    fn shown(text: &str, kind: NamedKind) -> Vec<String> {
        let tree = tree(&[("/n", text)]);
        let mentions = Mentions::new(&tree);
        let of_kind = mentions.all.iter().filter(|one| one.kind == kind);
        let shown = of_kind.map(|one| {
            let written = String::from_utf8_lossy(one.place.span.of(&tree.files[0].bytes)).into_owned();
            assert!(written.eq_ignore_ascii_case(&one.name), "{written} {}", one.name);
            format!("{:?} {:?} {written}@{}", one.scope, one.role, one.place.span.start)
        });
        shown.collect()
    }

    #[test]
    fn upstreams_are_found_where_they_are_named() {
        let text = "http { upstream app { server a:1; } server { location / { proxy_pass http://App:80/x; }\n\
                    location /b { proxy_pass http://other; } location /c { grpc_pass \"grpc://app\"; } } }\n\
                    stream { server { proxy_pass app; } }";
        assert_eq!(shown(text, NamedKind::Upstream), ["Http Defines app@16", "Http Uses App@76", "Http Uses app@161"]);
    }

    #[test]
    fn variables_are_found_in_texts_and_patterns() {
        let text = r#"map $a $b { default "$c"; ~^(?<d>x)$ $d; $e x; } server { set $f "\"${g}\"$h"; if ($i ~ "^$j(?<k>l)$") { return 200 $k; } location ~ ^/$x$ { rewrite ^/$y$ /$z; } }"#;
        let found: Vec<String> = shown(text, NamedKind::Variable).iter().map(|one| one.replace("Http ", "")).collect();
        let names: Vec<&str> = found.iter().filter_map(|one| one.split('@').next()).collect();
        let expected = [
            "Defines b",
            "Uses a",
            "Uses c",
            "Defines d",
            "Uses d",
            "Defines f",
            "Uses g",
            "Uses h",
            "Defines k",
            "Uses i",
            "Uses k",
            "Uses z",
        ];
        assert_eq!(names, expected, "{found:?}");
    }

    #[test]
    fn a_named_location_belongs_to_its_server() {
        let text =
            "http { error_page 404 @a; server { location @a { } try_files $uri @a; } server { location @a { } } }";
        let found = shown(text, NamedKind::NamedLocation);
        let expected = [
            "EachServer Uses a@",
            "Server(0) Defines a@",
            "Server(0) Uses a@",
            "Server(1) Defines a@",
            "Server(0) Uses a@",
            "Server(1) Uses a@",
        ];
        let is_equal = found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected));
        assert!(is_equal && found.len() == expected.len(), "{found:?}");
    }

    #[test]
    fn the_values_of_a_variable_may_name_an_upstream() {
        let text = "upstream blue { server a:1; } upstream green { server b:1; } map $x $up { default $other; 1 green; 2 gray; }\n\
                    server { set $other blue; location / { proxy_pass http://$up/; } }";
        let found = shown(text, NamedKind::Upstream);
        let uses: Vec<&String> = found.iter().filter(|one| one.contains("Uses")).collect();
        assert_eq!(uses.len(), 2, "{found:?}");
        assert!(
            found.iter().any(|one| one.starts_with("Http Uses green"))
                && found.iter().any(|one| one.starts_with("Http Uses blue"))
        );
    }

    #[test]
    fn variables_of_lua_count() {
        let text = "server { set $a 1; location / { content_by_lua_block { ngx.say(ngx.var.a, '$b') } } }";
        assert_eq!(shown(text, NamedKind::Variable), ["Http Defines a@14", "Http Uses a@71"]);
    }
}
