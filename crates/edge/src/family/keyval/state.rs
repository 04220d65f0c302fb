//! `state=`: a JSON object that keeps a zone's pairs across restarts: `{"KEY": "VALUE"}`, or for a pair that expires,
//! `{"KEY": {"value": "VALUE", "until": UNIX_MILLISECONDS}}`.

use std::io;
use std::path::Path;

use serde_json::{Map, Value, json};
use weir_http::text::refusal::Refusal;
use weir_net::log::Os;
use weir_net::whole_file;

use super::pairs::{Misfit, Pair, Pairs};

/// The largest file that weir reads. A zone may be larger than its file: the file holds keys and values without their
/// assumed cost in memory.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Reads the pairs of a file without the expired ones. A missing file has no pairs.
pub fn read(path: &str, pairs: &mut Pairs, now_ms: u64) -> Result<(), Refusal> {
    let bytes = match whole_file::read(Path::new(path), FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read.map_err(|error| Refusal::whole(format!("open() \"{path}\" failed {}", Os(&error))))?,
    };
    take(&bytes, path, pairs, now_ms)
}

/// Takes the pairs of the file's bytes.
fn take(bytes: &[u8], path: &str, pairs: &mut Pairs, now_ms: u64) -> Result<(), Refusal> {
    if bytes.is_empty() {
        return Ok(());
    }
    let broken = |why: &str| {
        Refusal::whole(format!("\"{path}\" is not the state file of a keyval_zone: {why}"))
            .todo("only the API writes this file; to begin without pairs, move the file away")
    };
    let all: Map<String, Value> = serde_json::from_slice(bytes).map_err(|error| broken(&error.to_string()))?;
    for (key, value) in all {
        let pair = of_json(&value).ok_or_else(|| broken(&format!("\"{key}\" has no value")))?;
        if pair.until_ms.is_some_and(|until| until <= now_ms) {
            continue;
        }
        pairs.set(&key, pair).map_err(|misfit| match misfit {
            Misfit::Key => broken(&format!("invalid key \"{key}\"")),
            Misfit::Full => Refusal::whole(format!("the pairs in \"{path}\" do not fit into the zone"))
                .todo("give the zone a larger size"),
        })?;
    }
    Ok(())
}

/// A value, or an object with a value and its end.
pub fn of_json(value: &Value) -> Option<Pair> {
    let (value, until_ms) = match value {
        Value::Object(members) => (members.get("value")?, Some(members.get("until")?.as_u64()?)),
        plain => (plain, None),
    };
    Some(Pair { value: value.as_str()?.as_bytes().into(), until_ms })
}

/// The form that [`of_json`] reads.
pub fn to_json(pair: &Pair) -> Value {
    let value = String::from_utf8_lossy(&pair.value);
    match pair.until_ms {
        Some(until) => json!({"value": value, "until": until}),
        None => json!(value),
    }
}

/// Writes the file anew, completely or not at all.
pub fn write(path: &str, pairs: &Pairs, now_ms: u64) -> io::Result<()> {
    let line = |(key, pair): (&[u8], &Pair)| (String::from_utf8_lossy(key).into_owned(), to_json(pair));
    let all: Map<String, Value> = pairs.iter(now_ms).map(line).collect();
    let mut text = serde_json::to_vec(&all)?;
    text.push(b'\n');
    whole_file::replace(Path::new(path), &text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::KeyKind;
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let path = std::env::temp_dir().join(format!("weir-keyval-{}.json", std::process::id()));
        let path = path.to_str().unwrap();
        let pair = |value: &str, until_ms| Pair { value: value.as_bytes().into(), until_ms };
        let mut all = Pairs::new(KeyKind::Text, 1 << 20);
        for (key, value, until_ms) in [("a\"\n", "é", None), ("b", "", Some(100)), ("c", "gone", Some(70))] {
            all.set(key, pair(value, until_ms)).unwrap();
        }
        write(path, &all, 50).unwrap();
        let mut pairs = Pairs::new(KeyKind::Text, 1 << 20);
        read(path, &mut pairs, 80).unwrap();
        let kept: Vec<_> = pairs.iter(0).map(|(key, pair)| (key.to_vec(), pair.clone())).collect();
        assert_eq!(kept, [(b"a\"\n".to_vec(), pair("é", None)), (b"b".to_vec(), pair("", Some(100)))]);
        for (text, why) in
            [("[]", "invalid type"), ("{\"a\": 1}", "\"a\" has no value"), ("{\"\": \"v\"}", "invalid key")]
        {
            std::fs::write(path, text).unwrap();
            let refusal = read(path, &mut pairs, 0).unwrap_err();
            assert!(refusal.what.contains(why), "{text}: {refusal:?}");
        }
        std::fs::write(path, "{\"a\": \"too long\"}").unwrap();
        assert!(read(path, &mut Pairs::new(KeyKind::Text, 10), 0).unwrap_err().what.contains("do not fit"));
        std::fs::remove_file(path).unwrap();
        read(path, &mut pairs, 0).unwrap();
    }

    mod mutate {
        use super::*;
        /// A file of another program, or a changed one: the pairs fit into the zone, or the refusal has a reason.
        #[test]
        fn files() {
            let seeds =
                [r#"{"a":"b","c":{"value":"d","until":100}}"#, r#"{"10.0.0.0/8":"x","10.1.0.0/16":"y","::/0":"z"}"#];
            let words = [
                "{",
                "}",
                "\"",
                ":",
                ",",
                "\"until\":",
                "18446744073709551615",
                "1e3",
                "10.0.0.0/33",
                "\\u0000",
                "null",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                for kind in [KeyKind::Text, KeyKind::Prefix, KeyKind::Network] {
                    let mut pairs = Pairs::new(kind, 2_000);
                    if let Err(refusal) = take(bytes, "f", &mut pairs, 50) {
                        assert!(!refusal.what.is_empty());
                    }
                    assert!(pairs.bytes() <= 2_000);
                    for text in [&b"10.1.2.3"[..], b"a", bytes] {
                        let _ = pairs.find(text, 50);
                    }
                }
            });
        }
    }
}
