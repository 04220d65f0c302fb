//! The words that may stand at an offset: directives, their words, names of the configuration, variables, files.
//!
//! - `snippet`: the text of a directive with places for its arguments

mod snippet;

use std::collections::HashSet;

use weir_conf::{Span, Statement};
use weir_doctor::Target;
use weir_http::read::directive::{Arity, Directive};
use weir_http::read::nginx_only;

use crate::arguments::{ArgumentWord, arguments, words_at};
use crate::files::BesideFile;
use crate::hover;
use crate::inside::{Inside, inside, of_nginx, of_weir};
use crate::look::Look;
use crate::mentions::{Mention, NameScope};
use crate::names::{MentionRole, NameArgument, NameForm, NameRow, NamedKind, is_variable_byte, pattern_in, rows_of};
use crate::under::{Under, UnderKind, decoded, is_opaque, under};
use crate::{meanings, variables};

/// Most proposals of one answer.
const COMPLETIONS_MAX: usize = 1_000;

/// The kind of a proposal, for its icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A directive that ends with `;`.
    Directive,
    /// A directive that opens a block.
    Block,
    /// A fixed word.
    Word,
    /// A parameter, `name=`.
    Parameter,
    /// A variable.
    Variable,
    /// A name that the configuration defines.
    Name,
    /// A file.
    File,
    /// A directory.
    Folder,
}

/// The entries of a directory, as an `include` names it: relative to the main file's, or absolute, with a `/` at its end;
/// empty for the main file's own.
pub type ListBeside<'l> = dyn Fn(&str) -> Vec<BesideFile> + 'l;

/// One proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text in the list.
    pub label: String,
    /// Its kind.
    pub kind: CompletionKind,
    /// A few words beside the label; may be empty.
    pub detail: String,
    /// Its meaning, as Markdown; may be empty.
    pub doc: String,
    /// The text to insert.
    pub insert: String,
    /// Whether the text has places in the form of LSP's snippets.
    pub is_snippet: bool,
    /// The bytes that it replaces.
    pub replaces: Span,
}

impl Completion {
    /// A proposal that inserts its label.
    fn plain(label: &str, kind: CompletionKind, replaces: Span) -> Completion {
        Completion {
            label: label.to_owned(),
            kind,
            detail: String::new(),
            doc: String::new(),
            insert: label.to_owned(),
            is_snippet: false,
            replaces,
        }
    }
}

/// The proposals at this offset that fit the text before it: those that begin with it first, each group by name.
pub fn complete(look: &Look<'_>, file: u32, offset: u32, list: &ListBeside<'_>) -> Vec<Completion> {
    let found = under(look.tree, file, offset);
    let path = found.path();
    let here = inside(&path);
    let at = Cursor::new(look, file, offset, &found);
    let all = match found.kind {
        UnderKind::Comment | UnderKind::Raw => Vec::new(),
        UnderKind::Name if here.data.is_empty() => directives(look, here, &at),
        UnderKind::Name => entries(here, &at),
        UnderKind::Argument(index) => match at.variable() {
            Some(lead) if !is_pattern(look, &found, file, index) => all_variables(look, here, &at, lead),
            Some(_) => Vec::new(),
            None if found.name(at.bytes) == "include" => files(look, &at, list),
            None => of_argument(look, &found, here, &at, index),
        },
    };
    sorted(all, &at)
}

/// The word at an offset, as far as it is typed.
struct Cursor<'l> {
    bytes: &'l [u8],
    file: u32,
    offset: u32,
    /// First byte of the word, behind its quote.
    start: u32,
    /// One past the last byte of the word, before its quote.
    end: u32,
}

impl<'l> Cursor<'l> {
    fn new(look: &Look<'l>, file: u32, offset: u32, found: &Under) -> Cursor<'l> {
        let bytes = look.bytes(file);
        let offset = offset.min(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        let word = found.word.of(bytes);
        let quote = word.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let is_closed = quote.is_some() && word.len() > 1 && word.last().copied() == quote;
        let start = found.word.start + u32::from(quote.is_some());
        let end = found.word.end - u32::from(is_closed);
        // Before the first byte of a word, the proposals stand before the word.
        let is_before = offset <= found.word.start;
        let (start, end) = if is_before { (offset, offset) } else { (start.min(offset), end.max(offset)) };
        Cursor { bytes, file, offset, start, end }
    }

    /// The text of the word before the cursor.
    fn typed(&self) -> &'l [u8] {
        Span { start: self.start, end: self.offset }.of(self.bytes)
    }

    /// The bytes of the word from this one of its typed text on.
    fn from(&self, index: usize) -> Span {
        Span { start: self.start.saturating_add(u32::try_from(index).unwrap_or(u32::MAX)), end: self.end }
    }

    /// The whole word.
    fn whole(&self) -> Span {
        self.from(0)
    }

    /// The index of the `$` of a variable that is being typed.
    fn variable(&self) -> Option<usize> {
        let typed = self.typed();
        let lead = typed.iter().rposition(|byte| *byte == b'$')?;
        let rest = typed.get(lead + 1..)?;
        let rest = rest.strip_prefix(b"{").unwrap_or(rest);
        rest.iter().all(is_variable_byte).then_some(lead)
    }

    /// Whether nothing follows the word on its line.
    fn is_last_on_line(&self) -> bool {
        let rest = self.bytes.get(self.end as usize..).unwrap_or_default();
        let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
        line.is_empty() || line.starts_with(b"#") || line.starts_with(b"}")
    }
}

/// The proposals that fit, in their order.
fn sorted(all: Vec<Completion>, at: &Cursor<'_>) -> Vec<Completion> {
    let mut ranked: Vec<(u8, Completion)> = Vec::new();
    for one in all {
        let typed = Span { start: one.replaces.start, end: at.offset }.of(at.bytes);
        if let Some(rank) = rank(&one.label, &String::from_utf8_lossy(typed)) {
            ranked.push((rank, one));
        }
    }
    ranked.sort_by(|a, b| (a.0, &a.1.label).cmp(&(b.0, &b.1.label)));
    let mut seen = HashSet::new();
    ranked.into_iter().map(|(_, one)| one).filter(|one| seen.insert(one.label.clone())).take(COMPLETIONS_MAX).collect()
}

/// How well a label fits a typed text: 0 if it begins with it, 1 if it has it, 2 if it has its letters in order.
fn rank(label: &str, typed: &str) -> Option<u8> {
    let (label, typed) = (label.to_ascii_lowercase(), typed.to_ascii_lowercase());
    let mut letters = label.chars();
    if label.starts_with(&typed) {
        Some(0)
    } else if label.contains(&typed) {
        Some(1)
    } else if typed.chars().all(|letter| letters.any(|one| one == letter)) {
        Some(2)
    } else {
        None
    }
}

/// The directives of a block.
fn directives(look: &Look<'_>, here: Inside, at: &Cursor<'_>) -> Vec<Completion> {
    let known = &weir_edge::family::ALL.known;
    let mut names: Vec<&'static str> = match look.target {
        Target::Nginx(_) if !here.nginx.is_empty() => {
            nginx_only::names().filter(|name| of_nginx(name).is_some_and(|one| one.is_allowed_in(here.nginx))).collect()
        }
        _ => {
            let fits = |one: &&Directive| one.contexts.meets(here.context());
            known.directives().filter(fits).map(|one| one.name).collect()
        }
    };
    names.push("include");
    names.iter().map(|name| directive(look, name, here, at)).collect()
}

fn directive(look: &Look<'_>, name: &str, here: Inside, at: &Cursor<'_>) -> Completion {
    let ours = of_weir(name, here);
    let is_block = ours.map_or_else(|| is_opaque(name) || snippet::is_nginxs_block(name), |ours| ours.block);
    let kind = if is_block { CompletionKind::Block } else { CompletionKind::Directive };
    let detail = match (look.target, ours) {
        (Target::Weir, Some(ours)) => ours.default.to_owned(),
        _ => of_nginx(name).map(|theirs| theirs.modules.to_owned()).unwrap_or_default(),
    };
    let doc = hover::meaning(look, name, ours).unwrap_or_default();
    let mut one = Completion { kind, detail, doc, ..Completion::plain(name, kind, at.whole()) };
    if at.is_last_on_line() {
        one.insert = snippet::of(name, ours, here, is_block);
        one.is_snippet = true;
    }
    one
}

/// The names of entries in blocks that hold no directives.
fn entries(here: Inside, at: &Cursor<'_>) -> Vec<Completion> {
    let names: &[&str] = match here.data {
        "map" => &["default", "hostnames", "include", "volatile"],
        "geo" => &["default", "delete", "include", "proxy", "proxy_recursive", "ranges"],
        "split_clients" => &["*"],
        "types" => &["include"],
        "otel_exporter" => &["batch_count", "batch_size", "endpoint", "header", "interval", "trusted_certificate"],
        "acme_issuer" => &[
            "accept_terms_of_service",
            "account_key",
            "challenge",
            "common_name_in_csr",
            "contact",
            "dns_delay",
            "dns_hook",
            "dns_update",
            "external_account_key",
            "preferred_chain",
            "profile",
            "ssl_trusted_certificate",
            "ssl_verify",
            "state_path",
            "uri",
        ],
        _ => &[],
    };
    names.iter().map(|name| Completion::plain(name, CompletionKind::Word, at.whole())).collect()
}

/// Whether an argument is a pattern, in which `$` is no variable.
fn is_pattern(look: &Look<'_>, found: &Under, file: u32, index: usize) -> bool {
    let bytes = look.bytes(file);
    let mut words = found.words(bytes);
    words.push(decoded(found.word.of(bytes)));
    let block = found.blocks.last().map_or("", |block| block.name());
    let word = |at: usize| words.get(at + 1).map(String::as_bytes);
    words.first().is_some_and(|name| pattern_in(name, block, index, word).is_some())
}

fn scope_of(here: Inside) -> NameScope {
    if here.is_stream() { NameScope::Stream } else { NameScope::Http }
}

/// The variables; `lead` is the index of the `$` in the typed text.
fn all_variables(look: &Look<'_>, here: Inside, at: &Cursor<'_>, lead: usize) -> Vec<Completion> {
    let is_braced = at.typed().get(lead + 1) == Some(&b'{');
    let from = at.from(lead);
    let behind = at.bytes.get(at.offset as usize..from.end as usize).unwrap_or_default();
    let rest = behind.iter().position(|byte| !is_variable_byte(byte)).unwrap_or(behind.len());
    let is_closed = is_braced && behind.get(rest) == Some(&b'}');
    let end = at.offset + u32::try_from(rest).unwrap_or_default() + u32::from(is_closed);
    let replaces = Span { start: from.start, end };
    let written = |name: &str| if is_braced { format!("${{{name}}}") } else { format!("${name}") };
    let own = look.mentions().defined(NamedKind::Variable, scope_of(here)).into_iter().map(|one| {
        let name = spelled(look, one);
        Completion {
            detail: shown(look, one),
            ..Completion::plain(&written(&name), CompletionKind::Variable, replaces)
        }
    });
    let built_in = variables::built_in(here.is_stream()).into_iter().map(|name| {
        let doc = meanings::variable(name).map(|(en, ko)| match look.language {
            weir_words::Language::English => hover::escaped(en),
            weir_words::Language::Korean => hover::escaped(ko),
        });
        let plain = Completion::plain(&written(name), CompletionKind::Variable, replaces);
        Completion { doc: doc.unwrap_or_default(), ..plain }
    });
    own.chain(built_in).collect()
}

/// A name as its definition spells it.
fn spelled(look: &Look<'_>, one: &Mention) -> String {
    String::from_utf8_lossy(one.place.span.of(look.bytes(one.place.file))).into_owned()
}

/// The head of a definition, for the list.
fn shown(look: &Look<'_>, one: &Mention) -> String {
    hover::code(&String::from_utf8_lossy(look.tree.bytes(&one.statement))).trim_matches('`').to_owned()
}

/// The words that may stand as an argument.
fn of_argument(look: &Look<'_>, found: &Under, here: Inside, at: &Cursor<'_>, index: usize) -> Vec<Completion> {
    let bytes = look.bytes(at.file);
    let before = found.words(bytes);
    let Some(name) = before.first() else { return Vec::new() };
    let block = found.blocks.last().map_or("", |block| block.name());
    let mut all = names(look, name, here, at, index);
    let positions = arguments(name, block, here.is_stream());
    let words: &[ArgumentWord] = positions.map_or(&[], |positions| words_at(positions, index));
    let is_said = |text: &str| before.iter().skip(1).any(|word| word.starts_with(text));
    for word in words {
        match word {
            ArgumentWord::Fixed(text) if !before.iter().skip(1).any(|word| word == text) => {
                all.push(Completion::plain(text, CompletionKind::Word, at.whole()));
            }
            ArgumentWord::Parameter(parameter, kind) if !is_said(parameter) => {
                let plain = Completion::plain(parameter, CompletionKind::Parameter, at.whole());
                all.push(Completion { detail: (*kind).to_owned(), ..plain });
            }
            ArgumentWord::Fixed(_) | ArgumentWord::Parameter(..) | ArgumentWord::Value(_) => {}
        }
    }
    let is_flag = of_weir(name, here).is_some_and(|ours| ours.arity == Arity::Flag);
    if words.is_empty() && is_flag && index == 0 {
        all.extend(["off", "on"].map(|word| Completion::plain(word, CompletionKind::Word, at.whole())));
    }
    let usual = usual_words(name, index);
    all.extend(usual.iter().map(|word| Completion::plain(word, CompletionKind::Word, at.whole())));
    all
}

/// Words that people usually write, of directives that take any text.
fn usual_words(name: &str, index: usize) -> &'static [&'static str] {
    match (name, index) {
        ("try_files", _) => &["$uri", "$uri/", "=404"],
        ("proxy_set_header" | "grpc_set_header", 0) => {
            &["Connection", "Host", "Upgrade", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP"]
        }
        ("proxy_set_header", 1) => {
            &["$host", "$http_host", "$http_upgrade", "$proxy_add_x_forwarded_for", "$remote_addr", "$scheme"]
        }
        ("add_header", 0) => &[
            "Access-Control-Allow-Origin",
            "Alt-Svc",
            "Cache-Control",
            "Content-Security-Policy",
            "Permissions-Policy",
            "Referrer-Policy",
            "Strict-Transport-Security",
            "X-Content-Type-Options",
            "X-Frame-Options",
        ],
        _ => &[],
    }
}

/// The names of the configuration that may stand as an argument.
fn names(look: &Look<'_>, directive: &str, here: Inside, at: &Cursor<'_>, index: usize) -> Vec<Completion> {
    let rows: Vec<&NameRow> = rows_of(directive).filter(|row| row.role != MentionRole::Defines).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let server = server_around(&look.tree.root, at.file, at.start);
    let mut all = Vec::new();
    for row in rows {
        let (skip, lead) = match row.argument {
            NameArgument::At(here) if here == index => (0, ""),
            NameArgument::BeforeKey if index == 0 => (0, ""),
            NameArgument::Last if index > 0 => (0, ""),
            NameArgument::After(parameter) if at.typed().starts_with(parameter.as_bytes()) => (parameter.len(), ""),
            NameArgument::After(parameter) => (0, parameter),
            NameArgument::At(_) | NameArgument::BeforeKey | NameArgument::Last => continue,
        };
        let scope = match row.kind {
            NamedKind::NamedLocation => NameScope::EachServer,
            NamedKind::ThreadPool => NameScope::Main,
            _ => scope_of(here),
        };
        let (replaces, lead) = spot(row, directive, at, skip, lead);
        let known = look.mentions().defined(row.kind, scope);
        let fits = known.iter().filter(|one| row.kind != NamedKind::NamedLocation || is_in(one, server));
        all.extend(fits.map(|one| {
            let label = format!("{lead}{}", spelled(look, one));
            Completion { detail: shown(look, one), ..Completion::plain(&label, CompletionKind::Name, replaces) }
        }));
    }
    all
}

/// The bytes that a name replaces, and the text that introduces it.
fn spot(row: &NameRow, directive: &str, at: &Cursor<'_>, skip: usize, lead: &str) -> (Span, String) {
    let typed = at.typed();
    match row.form {
        NameForm::Host => {
            let Some(scheme) = typed.windows(3).position(|window| window == b"://") else {
                let scheme = if directive == "proxy_pass" && skip == 0 && lead.is_empty() { "http://" } else { "" };
                return (at.from(skip), format!("{lead}{scheme}"));
            };
            let span = at.from(scheme + 3);
            let rest = span.of(at.bytes);
            let end = rest.iter().position(|byte| matches!(byte, b':' | b'/' | b'?')).unwrap_or(rest.len());
            let end = span.start.saturating_add(u32::try_from(end).unwrap_or_default()).max(at.offset);
            (Span { start: span.start, end }, String::new())
        }
        NameForm::Sign => (at.from(skip), format!("{lead}@")),
        NameForm::Whole | NameForm::BeforeColon | NameForm::Dollar => (at.from(skip), lead.to_owned()),
    }
}

/// The bytes of the innermost `server` block of a file around a byte.
fn server_around(statements: &[Statement], file: u32, offset: u32) -> Option<(u32, Span)> {
    let mut found = None;
    for block in statements.iter().filter(|statement| statement.is_block()) {
        let inner = server_around(block.children(), file, offset);
        let span = Span { start: block.at.span.start, end: block.end.span.end };
        let is_around = block.at.file == file && block.end.file == file && span.start <= offset && offset <= span.end;
        let own = (block.name == "server" && is_around).then_some((file, span));
        found = inner.or(own).or(found);
    }
    found
}

/// Whether a definition is in a block; without a block, everything is.
fn is_in(one: &Mention, block: Option<(u32, Span)>) -> bool {
    block.is_none_or(|(file, span)| {
        let at = one.statement;
        at.file != file || (span.start <= at.span.start && at.span.end <= span.end)
    })
}

/// The files that may be included: those of the directory that is being typed, and those of the configuration. Names are
/// relative to the main file's directory, as nginx resolves them.
fn files(look: &Look<'_>, at: &Cursor<'_>, list: &ListBeside<'_>) -> Vec<Completion> {
    let main = look.tree.files.iter().find(|file| !file.is_command_line).map_or("", |file| file.name.as_str());
    let home = main.rsplit_once('/').map(|(directory, _)| directory).filter(|home| !home.is_empty());
    let relative = |name: &str| {
        let inside = home.and_then(|home| name.strip_prefix(home)?.strip_prefix('/'));
        inside.unwrap_or(name).to_owned()
    };
    let typed = String::from_utf8_lossy(at.typed());
    let (directory, begun) = typed.rfind('/').map_or(("", &*typed), |slash| typed.split_at(slash + 1));
    // Hidden files are offered to those who begin their names.
    let is_shown = |beside: &BesideFile| begun.starts_with('.') || !beside.name.starts_with('.');
    let mut all: Vec<Completion> = Vec::new();
    for beside in list(directory).into_iter().filter(is_shown) {
        let (slash, kind) = if beside.is_folder { ("/", CompletionKind::Folder) } else { ("", CompletionKind::File) };
        all.push(Completion::plain(&format!("{directory}{}{slash}", beside.name), kind, at.whole()));
    }
    let of_tree = look.tree.files.iter().filter(|file| !file.is_command_line);
    all.extend(of_tree.map(|file| Completion::plain(&relative(&file.name), CompletionKind::File, at.whole())));
    // A file does not include itself, and none includes the main file.
    let is_own = |label: &str| [main, look.name(at.file)].iter().any(|own| relative(own) == label || *own == label);
    all.retain(|one| !is_own(&one.label));
    all
}

#[cfg(test)]
mod tests;
