//! `map`: a variable whose value depends on another text.
//!
//! <https://nginx.org/en/docs/http/ngx_http_map_module.html>

use weir_conf::Statement;
use weir_http::exchange::subject::Subject;
use weir_http::family::rewrite::declarable;
use weir_http::hold::host_table::HostTable;
use weir_http::read::build::Build;
use weir_http::read::directive::{Directive, HTTP, ONE, STREAM, TWO};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_http::text::regex::Regex;
use weir_http::text::slots::Captures;
use weir_http::text::template::{Argument, Template};
use weir_http::text::value;
use weir_net::buffer;
use weir_net::log::Level;

weir_http::settings! {}

/// The maps, in the order of the file.
pub type Declared = Vec<Map>;

/// The family.
pub static FAMILY: Family = Family::new(
    "map",
    &[
        Directive::new("map", HTTP.or(STREAM), TWO, "Defines a variable whose value depends on another text.", map)
            .many()
            .block(),
        Directive::new(
            "map_hash_max_size",
            HTTP.or(STREAM),
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        )
        .default("2048"),
        Directive::new(
            "map_hash_bucket_size",
            HTTP.or(STREAM),
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        )
        .default("64"),
    ],
);

/// One `map` block.
#[derive(Default)]
pub struct Map {
    source: Template,
    hostnames: bool,
    volatile: bool,
    keys: HostTable<Template>,
    regexes: Vec<(Regex, Template)>,
    default: Option<Template>,
}

/// Longer texts need a larger buffer.
const KEY_BYTES: usize = 1024;

fn map(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let source = b.template(statement.text(0))?;
    let name = declarable(b, statement.text(1))?;
    let mut map = Map { source, ..Map::default() };
    for line in statement.children() {
        b.stand(line.at);
        if let Err(refusal) = map.line(b, line) {
            b.refuse_at("map", refusal, line.at);
        }
    }
    b.stand(statement.at);
    let argument = Argument { name, index: crate::declaring(b).map.len() as u32 };
    super::define(b, argument, !map.volatile, |x, a, out| get(x, a, out), |s, a, out| get(s, a, out));
    crate::declaring(b).map.push(map);
    Ok(())
}

impl Map {
    fn line(&mut self, b: &mut Build<'_>, line: &Statement) -> Result<(), Refusal> {
        let key = line.name.text.as_str();
        match (key, line.args.as_slice()) {
            ("hostnames", []) => self.hostnames = true,
            ("volatile", []) => self.volatile = true,
            ("default", [value]) => {
                let value = b.template(&value.text)?;
                if self.default.replace(value).is_some() {
                    return Err(Refusal::whole("duplicate default map parameter"));
                }
            }
            (_, [value]) => {
                let value = b.template(&value.text)?;
                self.key(b, line, value)?;
            }
            _ => return Err(Refusal::whole("invalid number of the map parameters")),
        }
        Ok(())
    }

    fn key(&mut self, b: &mut Build<'_>, line: &Statement, value: Template) -> Result<(), Refusal> {
        if let Some(pattern) = line.name.text.strip_prefix('~') {
            let (pattern, caseless) = match pattern.strip_prefix('*') {
                Some(pattern) => (pattern, true),
                None => (pattern, false),
            };
            let regex = b.regex(pattern, caseless).map_err(Refusal::whole)?;
            self.regexes.push((regex, value));
            return Ok(());
        }
        let key = line.name.bytes();
        let key = key.strip_prefix(b"\\").unwrap_or(key);
        self.keys
            .add(key, self.hostnames, value)
            .map_err(|misfit| Refusal::whole(misfit.words(&String::from_utf8_lossy(key).to_ascii_lowercase())))
    }
}

fn get<'c>(subject: &mut impl Subject<'c>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let conf = subject.conf();
    let Some(map) = crate::declared(conf).map.get(argument.index as usize) else { return false };
    let mut text = buffer::lease(KEY_BYTES);
    map.source.eval(subject, &mut text);
    if map.hostnames && text.ends_with(b".") {
        text.pop();
    }
    let mut lower = buffer::lease(text.len());
    lower.extend_from_slice(&text);
    lower.make_ascii_lowercase();
    if let Some(value) = map.keys.find(&lower) {
        value.eval(subject, out);
        return true;
    }
    // `$1` of a location or of a rewrite stays for the rest of the text that the map is a part of. nginx loses it.
    match matched(map, subject, &text) {
        Some((value, before)) => {
            value.eval(subject, out);
            subject.slots().restore(before);
        }
        None => map.default.iter().for_each(|value| value.eval(subject, out)),
    }
    true
}

/// The value of the first regex that matches, and the captures before the match.
fn matched<'c, 'm>(map: &'m Map, subject: &mut impl Subject<'c>, text: &[u8]) -> Option<(&'m Template, Captures)> {
    if text.is_empty() {
        return None;
    }
    for (regex, value) in &map.regexes {
        match subject.slots().capture_within(regex, text) {
            Ok(Some(before)) => return Some((value, before)),
            Ok(None) => {}
            Err(failed) => {
                // nginx: the map then has its default value.
                subject.note(Level::Alert, format_args!("{failed}"));
                return None;
            }
        }
    }
    None
}
