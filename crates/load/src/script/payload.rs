//! `config.payload`: CSV files, read as csv-parse 4 does (artillery.md §1.4).

use std::sync::Arc;

use weir_words::{Said, say};

use super::files;
use super::keys;
use super::node::{Node, NodeValue};
use super::notes::Notes;
use super::number;
use crate::csv::{self, CsvFormat};
use crate::plan::Payload;
use crate::texts::script as texts;
use crate::value::{Map, Value, text_to_number};
use crate::vars::{VariableNames, VariableSlot};

/// The largest CSV file, in bytes.
pub(crate) const PAYLOAD_BYTES_MAX: u64 = 512 << 20;

/// Most CSV files of a script.
pub(crate) const PAYLOADS_MAX: usize = 100;

/// Reads all payloads; their paths are absolute.
pub(crate) fn read(config: &Node, names: &mut VariableNames, notes: &mut Notes) -> Vec<Payload> {
    let list = config.get("payload").and_then(Node::list).unwrap_or_default();
    if let Some(node) = list.get(PAYLOADS_MAX) {
        notes.refuse(node.at, say!(texts::TOO_MANY_PAYLOADS, PAYLOADS_MAX));
    }
    list.iter().take(PAYLOADS_MAX).filter_map(|node| one(node, names, notes)).collect()
}

fn one(node: &Node, names: &mut VariableNames, notes: &mut Notes) -> Option<Payload> {
    keys::PAYLOAD.check(node, notes);
    let Some(path) = node.get("path").and_then(Node::text) else {
        notes.refuse(node.at, texts::NO_PATH);
        return None;
    };
    let at = node.get("path").map_or(node.at, |path| path.at);
    let options = Options::of(node, notes)?;
    notes.files.push(path.into());
    let rows = match files::read_bytes(path.as_ref(), PAYLOAD_BYTES_MAX) {
        Ok(bytes) => options.rows(&bytes),
        Err(why) => Err(why),
    };
    let rows = match rows {
        Ok(rows) => rows,
        Err(why) => {
            notes.refuse(at, say!(texts::PAYLOAD_UNREADABLE, why));
            return None;
        }
    };
    if rows.is_empty() {
        notes.warn(at, texts::NO_ROWS);
    }
    Some(put(node, rows, names, notes))
}

/// Stores the rows for the variables of the columns.
fn put(node: &Node, rows: Vec<Vec<Value>>, names: &mut VariableNames, notes: &mut Notes) -> Payload {
    let fields: Vec<String> = node.get("fields").map_or(&[][..], Node::one_or_more).iter().map(Node::shown).collect();
    let is_sequence = node.get("order").and_then(Node::text) == Some("sequence");
    if !node.get("loadAll").is_some_and(Node::is_truthy) {
        let row = |mut row: Vec<Value>| {
            row.resize(fields.len(), Value::Undefined);
            row
        };
        let rows = rows.into_iter().map(row).collect();
        return Payload { fields: fields.iter().map(|name| names.slot(name)).collect(), rows, is_sequence, all: None };
    }
    let Some(name) = node.get("name").map(Node::shown) else {
        notes.say(texts::NO_NAME);
        return Payload { fields: Vec::new(), rows: Vec::new(), is_sequence, all: None };
    };
    let slot: VariableSlot = names.slot(&name);
    if node.get("order").is_some() || !node.get("loadAll").is_some_and(Node::is_yes) {
        notes.warn(node.at, texts::LOAD_ALL_ORDER);
        let rows = rows.into_iter().map(|row| vec![Value::List(Arc::new(row))]).collect();
        return Payload { fields: vec![slot], rows, is_sequence, all: None };
    }
    let keys: Vec<Arc<str>> = fields.iter().map(|name| name.as_str().into()).collect();
    let whole = |row: Vec<Value>| match keys.is_empty() {
        true => Value::List(Arc::new(row)),
        false => {
            let values = row.into_iter().chain(std::iter::repeat(Value::Undefined));
            Value::Map(Arc::new(keys.iter().cloned().zip(values).collect::<Map>()))
        }
    };
    let all = Value::List(Arc::new(rows.into_iter().map(whole).collect()));
    Payload { fields: Vec::new(), rows: Vec::new(), is_sequence, all: Some((slot, all)) }
}

/// The CSV format of a file, and whether numbers become numbers.
struct Options {
    format: CsvFormat,
    casts: bool,
}

impl Options {
    fn of(node: &Node, notes: &mut Notes) -> Option<Options> {
        let raw = node.get("options");
        for (name, member) in raw.and_then(Node::map).into_iter().flatten() {
            if !RAW.contains(&&**name) {
                notes.warn(member.at, say!(texts::CSV_OPTION, name.as_ref(), RAW.join(", ")));
            }
        }
        let raw = |key: &str| raw.and_then(|raw| raw.get(key));
        let skips = raw("skip_empty_lines").or(node.get("skipEmptyLines"));
        let delimiter = raw("delimiter").or(node.get("delimiter").filter(|delimiter| delimiter.is_truthy()));
        let line = |key: &str| raw(key).map(Node::number).filter(|line| *line >= 1.0).map(|line| line as u64);
        let is_on = |key: &str| raw(key).is_some_and(Node::is_truthy);
        // As in csv-parse, `trim` is for both sides, and a side with `false` is left as it is.
        let trims =
            |side: &str| is_on(side) || is_on("trim") && raw(side).is_none_or(|own| own.kind != NodeValue::Bool(false));
        let skips_header = node.get("skipHeader").is_some_and(|skip| skip.value() == Value::Bool(true));
        let mut quote = |key: &str| raw(key).map_or(Some(Some(b'"')), |node| byte(Some(node), notes));
        let (quote, escape) = (quote("quote")?, quote("escape")?);
        let format = CsvFormat {
            delimiter: byte(delimiter, notes)?.unwrap_or(b','),
            quote,
            escape,
            comment: byte(raw("comment"), notes)?,
            from_line: line("from_line").unwrap_or(if skips_header { 2 } else { 1 }),
            to_line: line("to_line").unwrap_or(u64::MAX),
            trims_left: trims("ltrim"),
            trims_right: trims("rtrim"),
            is_relaxed: is_on("relax"),
            is_ragged: is_on("relax_column_count"),
            keeps_empty: skips.is_some_and(|skips| !skips.is_truthy() || skips.is_no()),
        };
        Some(Options { format, casts: raw("cast").or(node.get("cast")).is_none_or(Node::is_truthy) })
    }

    /// The rows; the error names the problem and the line.
    fn rows(&self, bytes: &[u8]) -> Result<Vec<Vec<Value>>, Said> {
        csv::read(bytes, &self.format, |field| self.value(field))
    }

    fn value(&self, field: &str) -> Value {
        if self.casts {
            // csv-parse's own test for a number.
            let number = number::read_float(field);
            if text_to_number(field) - number + 1.0 >= 0.0 {
                return Value::Number(number);
            }
        }
        Value::from(field)
    }
}

/// Supported options of csv-parse.
const RAW: &[&str] = &[
    "delimiter",
    "quote",
    "escape",
    "comment",
    "trim",
    "ltrim",
    "rtrim",
    "from_line",
    "to_line",
    "cast",
    "relax",
    "relax_column_count",
    "skip_empty_lines",
];

/// One ASCII character; the outer `None` means that the user got a message.
fn byte(node: Option<&Node>, notes: &mut Notes) -> Option<Option<u8>> {
    let Some(node) = node.filter(|node| node.is_truthy()) else { return Some(None) };
    match node.text().map(str::as_bytes) {
        Some([byte]) if byte.is_ascii() => Some(Some(*byte)),
        _ => {
            notes.refuse(node.at, texts::ONE_CHARACTER);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::yaml;
    use super::*;

    fn rows(options: &str, csv: &str) -> Result<Vec<Vec<Value>>, String> {
        let node = yaml::read(options, 0).unwrap();
        let rows = Options::of(&node, &mut Notes::default()).unwrap().rows(csv.as_bytes());
        rows.map_err(|why| why.en().to_owned())
    }

    #[test]
    fn rows_are_read_as_csv_parse_does() {
        let n = Value::from(7.0);
        let t = |text: &str| Value::from(text);
        assert_eq!(
            rows("{}", "a,007\n\n\"x, \"\"y\"\"\",true\n"),
            Ok(vec![vec![t("a"), n.clone()], vec![t("x, \"y\""), t("true")],])
        );
        for csv in ["a\n7\n", "a\r\n7\r\n", "a\r7\r"] {
            assert_eq!(rows("{skipHeader: true}", csv), Ok(vec![vec![n.clone()]]), "{csv:?}");
        }
        assert_eq!(rows("{options: {quote: false}}", "\"7\""), Ok(vec![vec![t("\"7\"")]]));
        assert_eq!(rows("{options: {quote: \"'\", ltrim: true}}", " '7,8'"), Ok(vec![vec![t("7,8")]]));
        assert_eq!(rows("{skipHeader: 'true'}", "a\n7\n"), Ok(vec![vec![t("a")], vec![n.clone()]]));
        assert_eq!(rows("{delimiter: ;, cast: false}", "7;8"), Ok(vec![vec![t("7"), t("8")]]));
        assert_eq!(rows("{options: {comment: '#', trim: true}}", "#x\n 7 ,8x\n"), Ok(vec![vec![n, t("8x")]]));
        assert_eq!(
            rows("{}", ",0x10,1e3,Infinity"),
            Ok(vec![vec![t(""), Value::from(0.0), Value::from(1000.0), t("Infinity"),]])
        );
        assert_eq!(rows("{}", ""), Ok(vec![]));
        for (options, field) in [
            ("{trim: true}", "a"),
            ("{trim: true, ltrim: false}", " a"),
            ("{trim: true, rtrim: false}", "a "),
            ("{trim: false, ltrim: true}", "a "),
            ("{rtrim: true}", " a"),
        ] {
            assert_eq!(rows(&format!("{{options: {options}}}"), " a "), Ok(vec![vec![t(field)]]), "{options}");
        }
    }

    #[test]
    fn empty_lines_are_rows_where_they_are_wanted() {
        let t = |text: &str| vec![Value::from(text)];
        let kept = "{skipEmptyLines: false}";
        for csv in ["\na\n\n\nb\n\n", "\r\na\r\n\r\n\r\nb\r\n\r\n"] {
            assert_eq!(rows("{}", csv), Ok(vec![t("a"), t("b")]), "{csv:?}");
            assert_eq!(rows(kept, csv), Ok(vec![t(""), t("a"), t(""), t(""), t("b"), t("")]), "{csv:?}");
        }
        assert_eq!(rows(kept, "a\nb"), Ok(vec![t("a"), t("b")]));
        assert_eq!(rows(kept, "a,b\n\n"), Err("Invalid Record Length: expect 2, got 1 on line 2".to_owned()));
        assert_eq!(rows("{options: {skip_empty_lines: false}}", "a\n\n"), Ok(vec![t("a"), t("")]));
    }

    #[test]
    fn ragged_rows_are_refused() {
        assert_eq!(rows("{}", "a,b\nc\n"), Err("Invalid Record Length: expect 2, got 1 on line 2".to_owned()));
        assert!(rows("{options: {relax_column_count: true}}", "a,b\nc\n").is_ok());
    }

    #[test]
    fn all_rows_become_one_variable() {
        let mut names = VariableNames::default();
        let row = || vec![vec![Value::from(1.0), Value::from(2.0)]];
        let mut put = |text: &str| put(&yaml::read(text, 0).unwrap(), row(), &mut names, &mut Notes::default());
        let all = put("{loadAll: true, name: all, fields: [a]}").all.unwrap().1;
        let map: Map = [("a".into(), Value::from(1.0))].into_iter().collect();
        assert_eq!(all, Value::List(Arc::new(vec![Value::Map(Arc::new(map))])));
        let trap = put("{loadAll: true, name: all, order: sequence}");
        assert!(trap.all.is_none() && trap.is_sequence && trap.rows.len() == 1 && trap.fields.len() == 1);
        assert!(put("{loadAll: true}").all.is_none());
        assert_eq!(put("{fields: [a, b, c]}").rows, vec![vec![Value::from(1.0), Value::from(2.0), Value::Undefined]]);
    }

    mod mutate {
        use super::*;
        /// Rows of a file: each value is one of the file, or the error has a reason.
        #[test]
        fn rows_of_files() {
            let seeds = ["a,007\n\n\"x, \"\"y\"\"\",true\r\n", "#c\n 7 ,8x\n", "\u{feff}a;b\n"];
            weir_mutate::mutate(
                &seeds,
                &[",", ";", "\"", "\n", "\r", "\r\n", "#", "1e999", "0x", "\0", "é"],
                |bytes| {
                    let text = String::from_utf8_lossy(bytes);
                    for options in [
                        "{}",
                        "{delimiter: ;, cast: false, options: {comment: '#', trim: true, relax_column_count: true, skip_empty_lines: false}}",
                    ] {
                        match rows(options, &text) {
                            Ok(rows) => assert!(rows.iter().map(Vec::len).sum::<usize>() <= 2 * text.len() + 1),
                            Err(why) => assert!(!why.is_empty()),
                        }
                    }
                },
            );
        }
    }
}
