//! `autoindex`: lists a directory that has no index file, as HTML, JSON, JSONP or XML.
//!
//! <https://nginx.org/en/docs/http/ngx_http_autoindex_module.html>. The list leaves out names that begin with a dot;
//! directories come first.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;

use weir_http::exchange::Exchange;
use weir_http::exchange::file_path::{errno, path};
use weir_http::exchange::phase::{Next, Phase};
use weir_http::exchange::response_body::Body;
use weir_http::hold::bounds::{BUFFERS, EXCHANGE_BYTES};
use weir_http::read::directive::{Arity, Directive, HSL, ONE};
use weir_http::read::families::Family;
use weir_http::text::value;
use weir_net::clock;
use weir_net::log::{Level, Os};
use weir_net::opening;
use weir_net::path::as_path;
use weir_wire::{date, escape};

weir_http::settings! {
    /// `autoindex`.
    enabled: bool = false,
    /// `autoindex_format`.
    format: ListingFormat = ListingFormat::Html,
    /// `autoindex_localtime`.
    localtime: bool = false,
    /// `autoindex_exact_size`.
    exact_size: bool = true,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// `autoindex_format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ListingFormat {
    Html,
    Json,
    Jsonp,
    Xml,
}

/// The family.
pub static FAMILY: Family = Family::new(
    "autoindex",
    &[
        Directive::new("autoindex", HSL, Arity::Flag, "Lists directories that have no index file.", |b, s| {
            crate::settings(b).autoindex.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new("autoindex_format", HSL, ONE, "The format of the list.", |b, s| {
            let formats = [
                ("html", ListingFormat::Html),
                ("json", ListingFormat::Json),
                ("jsonp", ListingFormat::Jsonp),
                ("xml", ListingFormat::Xml),
            ];
            crate::settings(b).autoindex.format = Some(value::choice(s, &formats)?);
            Ok(())
        })
        .default("html"),
        Directive::new(
            "autoindex_localtime",
            HSL,
            Arity::Flag,
            "Shows times in HTML in the local zone instead of UTC.",
            |b, s| {
                crate::settings(b).autoindex.localtime = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new(
            "autoindex_exact_size",
            HSL,
            Arity::Flag,
            "Shows sizes in HTML in bytes instead of K, M and G.",
            |b, s| {
                crate::settings(b).autoindex.exact_size = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("on"),
    ],
)
.phase(Phase::Content, |location| crate::values(location).autoindex.enabled, answer);

/// The most entries in a list: a longer list is useless and would block the worker.
const ENTRIES_MAX: usize = 100_000;

/// HTML shows longer names cut, with `..>` at the end. weir counts characters of names in UTF-8, and bytes of other
/// names; nginx counts bytes unless `charset utf-8` is set, and may cut in the middle of a character.
const NAME_SHOWN: usize = 50;

/// The longest name of a JSONP callback, in bytes.
const CALLBACK_BYTES_MAX: usize = 128;

/// One name in the directory.
struct Entry {
    name: Vec<u8>,
    kind: Kind,
    modified: i64,
    size: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Directory,
    File,
    Other,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Directory => "directory",
            Kind::File => "file",
            Kind::Other => "other",
        }
    }
}

fn answer(exchange: &mut Exchange<'_>) -> Next {
    if !exchange.uri.ends_with(b"/") || !matches!(exchange.request.method(), b"GET" | b"HEAD") {
        return Next::Continue;
    }
    let Some((mut directory, _)) = path(exchange) else { return Next::Status(500) };
    if directory.len() > 1 {
        directory.pop();
    }
    let settings = &crate::values(exchange.location).autoindex;
    let callback = match settings.format {
        ListingFormat::Jsonp => match callback(exchange.args) {
            Ok(name) => name.to_vec(),
            Err((what, name)) => {
                let name = String::from_utf8_lossy(name).into_owned();
                exchange.log(Level::Info, format_args!("client sent {what} callback name: \"{name}\""));
                return Next::Status(400);
            }
        },
        ListingFormat::Html | ListingFormat::Json | ListingFormat::Xml => Vec::new(),
    };
    let entries = match entries(exchange, &directory) {
        Ok(Some(entries)) => entries,
        Ok(None) => return Next::Status(503),
        Err(error) => return failed(exchange, &directory, &error),
    };
    let offset = if settings.localtime { clock::utc_offset_minutes(clock::unix_seconds() as i64) } else { 0 };
    let (kind, bytes) = match settings.format {
        ListingFormat::Html => ("text/html", html(exchange.uri, &entries, settings.exact_size, offset)),
        ListingFormat::Xml => ("text/xml; charset=utf-8", xml(&entries)),
        ListingFormat::Jsonp if !callback.is_empty() => {
            let list = json(&entries);
            ("application/javascript", [b"/* callback */\r\n", callback.as_slice(), b"(", &list, b");"].concat())
        }
        ListingFormat::Json | ListingFormat::Jsonp => ("application/json", json(&entries)),
    };
    let response = &mut exchange.response;
    response.status.answer(200);
    response.status_line.clear();
    response.content_type.clear();
    response.content_type.extend_from_slice(kind.as_bytes());
    response.content_length = None;
    response.body = Body::Bytes(bytes);
    Next::Respond
}

fn failed(exchange: &mut Exchange<'_>, directory: &[u8], error: &io::Error) -> Next {
    let (level, status) = match error.raw_os_error() {
        Some(errno::ENOENT | errno::ENOTDIR | errno::ENAMETOOLONG) => (Level::Error, 404),
        Some(errno::EACCES) => (Level::Error, 403),
        Some(_) | None => (Level::Crit, 500),
    };
    let shown = String::from_utf8_lossy(directory);
    exchange.log(level, format_args!("opendir() \"{shown}\" failed {}", Os(error)));
    Next::Status(status)
}

/// The value of the argument `callback`; empty if there is none.
fn callback(args: &[u8]) -> Result<&[u8], (&'static str, &[u8])> {
    const KEY: &[u8] = b"callback=";
    let found = args.split(|b| *b == b'&').find_map(|argument| {
        let (key, value) = argument.split_at_checked(KEY.len())?;
        key.eq_ignore_ascii_case(KEY).then_some(value)
    });
    let name = found.unwrap_or_default();
    if name.len() > CALLBACK_BYTES_MAX {
        return Err(("too long", name));
    }
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.');
    if name.iter().all(is_plain) { Ok(name) } else { Err(("invalid", name)) }
}

/// Memory of an entry and of its row in the answer, without the name.
const ENTRY_BYTES: u64 = 256;

/// The entries of the directory, sorted; `None` if there is no memory for them.
fn entries(exchange: &mut Exchange<'_>, directory: &[u8]) -> io::Result<Option<Vec<Entry>>> {
    let (mut list, mut share, mut bytes) = (Vec::new(), BUFFERS.share(), 0);
    for name in opening::names(directory)? {
        let name = name?;
        if name.starts_with(b".") {
            continue;
        }
        if list.len() >= ENTRIES_MAX {
            let shown = String::from_utf8_lossy(directory);
            exchange.log(
                Level::Warn,
                format_args!("\"{shown}\" has more than {ENTRIES_MAX} entries, the others are not listed"),
            );
            break;
        }
        let file = as_path(directory).join(as_path(&name));
        // A link without a target is listed as the link itself.
        let facts: Metadata = match fs::metadata(&file).or_else(|_| fs::symlink_metadata(&file)) {
            Ok(facts) => facts,
            Err(error) => {
                exchange.log(Level::Crit, format_args!("stat() \"{}\" failed {}", file.display(), Os(&error)));
                continue;
            }
        };
        let kind = match (facts.is_dir(), facts.is_file()) {
            (true, _) => Kind::Directory,
            (false, true) => Kind::File,
            (false, false) => Kind::Other,
        };
        bytes += ENTRY_BYTES + 4 * name.len() as u64;
        if bytes > EXCHANGE_BYTES && !share.grow(std::mem::take(&mut bytes)) {
            return Ok(None);
        }
        list.push(Entry { name, kind, modified: facts.mtime(), size: facts.len() });
    }
    exchange.own.add(share);
    list.sort_unstable_by(|a, b| {
        let key = |entry: &Entry| entry.kind != Kind::Directory;
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(Some(list))
}

fn html(uri: &[u8], entries: &[Entry], exact_size: bool, offset_minutes: i32) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + entries.len() * 128);
    out.extend_from_slice(b"<html>\r\n<head><title>Index of ");
    escape::escape_html(uri, &mut out);
    out.extend_from_slice(b"</title></head>\r\n<body>\r\n<h1>Index of ");
    escape::escape_html(uri, &mut out);
    out.extend_from_slice(b"</h1><hr><pre><a href=\"../\">../</a>\r\n");
    for entry in entries {
        html_row(entry, exact_size, offset_minutes, &mut out);
    }
    out.extend_from_slice(b"</pre><hr></body>\r\n</html>\r\n");
    out
}

fn html_row(entry: &Entry, exact_size: bool, offset_minutes: i32, out: &mut Vec<u8>) {
    let is_directory = entry.kind == Kind::Directory;
    out.extend_from_slice(b"<a href=\"");
    escape::escape_uri_component(&entry.name, out);
    out.extend_from_slice(if is_directory { b"/\">" } else { b"\">" });
    let text = std::str::from_utf8(&entry.name).ok();
    let mut width = text.map_or(entry.name.len(), |text| text.chars().count());
    if width > NAME_SHOWN {
        let cut = NAME_SHOWN - 3;
        let cut = text.and_then(|text| text.char_indices().nth(cut)).map_or(cut, |(at, _)| at);
        escape::escape_html(entry.name.get(..cut).unwrap_or_default(), out);
        out.extend_from_slice(b"..&gt;</a>");
    } else {
        escape::escape_html(&entry.name, out);
        if is_directory && width < NAME_SHOWN {
            out.push(b'/');
            width += 1;
        }
        out.extend_from_slice(b"</a>");
        out.resize(out.len() + NAME_SHOWN - width, b' ');
    }
    let line = date::http_date(entry.modified + i64::from(offset_minutes) * 60);
    let piece = |range: std::ops::Range<usize>| line.get(range).unwrap_or_default();
    for part in [b" ", piece(5..7), b"-", piece(8..11), b"-", piece(12..16), b" ", piece(17..22), b" "] {
        out.extend_from_slice(part);
    }
    let written = match (is_directory, exact_size) {
        (true, true) => write!(out, "{:>19}", "-"),
        (true, false) => write!(out, "{:>7}", "-"),
        (false, true) => write!(out, "{:>19}", entry.size),
        (false, false) => write!(out, "{}", rounded(entry.size)),
    };
    debug_assert!(written.is_ok());
    out.extend_from_slice(b"\r\n");
}

/// A size in seven columns, rounded to K, M or G.
fn rounded(size: u64) -> String {
    let in_units = |unit: u64| size / unit + u64::from(size % unit > unit / 2 - 1);
    match size {
        0..=9_999 => format!(" {size:>6}"),
        10_000..=0xf_ffff => format!("{:>6}K", in_units(1 << 10)),
        0x10_0000..=0x3fff_ffff => format!("{:>6}M", in_units(1 << 20)),
        _ => format!("{:>6}G", in_units(1 << 30)),
    }
}

fn json(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + entries.len() * 128);
    out.push(b'[');
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"\r\n{ \"name\":\"");
        escape::escape_json(&entry.name, &mut out);
        let time = date::http_date(entry.modified);
        let written =
            write!(out, "\", \"type\":\"{}\", \"mtime\":\"{}\"", entry.kind.word(), String::from_utf8_lossy(&time));
        debug_assert!(written.is_ok());
        if entry.kind == Kind::File {
            out.extend_from_slice(b", \"size\":");
            weir_wire::encode::push_decimal(&mut out, entry.size);
        }
        out.extend_from_slice(b" }");
    }
    out.extend_from_slice(b"\r\n]");
    out
}

fn xml(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + entries.len() * 128);
    out.extend_from_slice(b"<?xml version=\"1.0\"?>\r\n<list>\r\n");
    for entry in entries {
        let word = entry.kind.word();
        let time = date::iso8601(entry.modified, 0);
        let time = String::from_utf8_lossy(time.get(..19).unwrap_or_default());
        let size = if entry.kind == Kind::File { format!(" size=\"{}\"", entry.size) } else { String::new() };
        let opened = write!(out, "<{word} mtime=\"{time}Z\"{size}>");
        escape::escape_html(&entry.name, &mut out);
        let closed = write!(out, "</{word}>\r\n");
        debug_assert!(opened.is_ok() && closed.is_ok());
    }
    out.extend_from_slice(b"</list>\r\n");
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn entry(name: &str, kind: Kind, size: u64) -> Entry {
        Entry { name: name.as_bytes().to_vec(), kind, modified: 784_111_777, size }
    }

    fn row(entry: &Entry, exact_size: bool) -> String {
        let mut out = Vec::new();
        html_row(entry, exact_size, 0, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_line_up() {
        let file = row(&entry("a<b", Kind::File, 42), true);
        assert_eq!(file, format!("<a href=\"a%3Cb\">a&lt;b</a>{} 06-Nov-1994 08:49 {:>19}\r\n", " ".repeat(47), 42));
        let directory = row(&entry("dir", Kind::Directory, 4096), false);
        assert_eq!(directory, format!("<a href=\"dir/\">dir/</a>{} 06-Nov-1994 08:49       -\r\n", " ".repeat(46)));
        let long = row(&entry(&"x".repeat(51), Kind::File, 1), true);
        assert!(long.contains(&format!(">{}..&gt;</a> 06", "x".repeat(47))), "{long}");
        let cyrillic = row(&entry(&"ф".repeat(51), Kind::File, 1), true);
        assert!(cyrillic.contains(&format!(">{}..&gt;</a> 06", "ф".repeat(47))), "{cyrillic}");
        let exactly = row(&entry(&"ф".repeat(50), Kind::File, 1), true);
        assert!(exactly.contains(&format!(">{}</a> 06", "ф".repeat(50))), "{exactly}");
    }

    #[test]
    fn sizes_are_rounded_as_nginx_rounds_them() {
        for (size, expected) in [
            (9_999, "   9999"),
            (10_000, "    10K"),
            (10_752, "    11K"),
            (1 << 20, "     1M"),
            ((3 << 19) - 1, "     1M"),
            (3 << 19, "     2M"),
            (5 << 30, "     5G"),
        ] {
            assert_eq!(rounded(size), expected, "{size}");
        }
    }

    #[test]
    fn names_are_escaped_in_every_format() {
        let entries = [entry("a\"\u{1}\\<", Kind::File, 3), entry("d", Kind::Other, 0)];
        let json = String::from_utf8(json(&entries)).unwrap();
        assert!(json.starts_with("[\r\n{ \"name\":\"a\\\"\\u0001\\\\<\", \"type\":\"file\""), "{json}");
        assert!(json.ends_with("GMT\" }\r\n]") && json.contains("\"size\":3 },\r\n"), "{json}");
        let xml = String::from_utf8(xml(&entries)).unwrap();
        assert!(xml.contains("<file mtime=\"1994-11-06T08:49:37Z\" size=\"3\">a&quot;\u{1}\\&lt;</file>\r\n"), "{xml}");
    }

    #[test]
    fn callbacks_are_plain_names() {
        assert_eq!(callback(b"a=1&callback=x.y_2"), Ok(&b"x.y_2"[..]));
        assert_eq!(callback(b""), Ok(&b""[..]));
        assert!(callback(b"callback=x(").is_err());
        let long = [b"callback=".as_slice(), &[b'x'; 129]].concat();
        assert_eq!(callback(&long).map_err(|(what, _)| what), Err("too long"));
    }
}
