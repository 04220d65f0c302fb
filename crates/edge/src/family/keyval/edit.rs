//! The API's view and changes of a zone's pairs, in NGINX Plus' JSON
//! (<https://nginx.org/en/docs/http/ngx_http_api_module.html#http_keyvals_http_keyval_zone_name>).

use std::sync::PoisonError;
use std::time::Duration;

use serde_json::{Map, Value, json};
use weir_net::clock;
use weir_net::log::Os;
use weir_proxy::family::upstream::edit::Refused;

use super::pairs::{Misfit, Pair, Pairs};
use super::state;
use super::zone::{KeptPairs, KeyvalZone, TIMEOUT_MAX};

/// One key in a request's body; attributes it leaves out stay unchanged.
struct Change {
    key: String,
    /// `None` if the value is `null`: the pair is removed.
    value: Option<Option<String>>,
    expire: Option<Duration>,
}

impl KeyvalZone {
    /// All pairs of the zone, or the pair of `key`.
    pub fn shown(&self, key: Option<&str>) -> Result<Value, Refused> {
        let now_ms = clock::unix_ms();
        let pairs = self.read();
        let line = |key: &[u8], pair: &Pair| (String::from_utf8_lossy(key).into_owned(), shown(pair, now_ms));
        match key {
            None => Ok(Value::Object(pairs.iter(now_ms).map(|(key, pair)| line(key, pair)).collect())),
            Some(key) => {
                let pair = pairs.get(key, now_ms).ok_or_else(unknown)?;
                Ok(Value::Object(Map::from_iter([line(key.as_bytes(), pair)])))
            }
        }
    }

    /// Adds the single pair of a body; returns its key.
    pub fn add(&self, body: &Value) -> Result<Vec<String>, Refused> {
        let change = change(body, "added")?;
        let Some(value) = change.value.clone().flatten() else {
            return Err(misformed("a value must be a string"));
        };
        self.edit(|pairs, now_ms| {
            if pairs.get(&change.key, now_ms).is_some() {
                return Err(no(409, "KeyvalKeyExists", "key already exists"));
            }
            let until_ms = self.until(change.expire, now_ms)?;
            set(pairs, &change.key, Pair { value: value.into_bytes().into(), until_ms })
        })?;
        Ok(vec![change.key])
    }

    /// Changes the pair of a body's single key, or removes it if the value is `null`; returns the key.
    pub fn change(&self, body: &Value) -> Result<Vec<String>, Refused> {
        let change = change(body, "updated")?;
        self.edit(|pairs, now_ms| {
            let mut pair = pairs.get(&change.key, now_ms).ok_or_else(unknown)?.clone();
            match change.value.clone() {
                Some(None) => {
                    pairs.remove(&change.key);
                    return Ok(());
                }
                Some(Some(value)) => {
                    pair.value = value.into_bytes().into();
                    pair.until_ms = self.until(change.expire, now_ms)?;
                }
                None => pair.until_ms = self.until(change.expire, now_ms)?,
            }
            set(pairs, &change.key, pair)
        })?;
        Ok(vec![change.key])
    }

    /// Removes all pairs; returns their keys.
    pub fn clear(&self) -> Result<Vec<String>, Refused> {
        let mut keys = Vec::new();
        self.edit(|pairs, now_ms| {
            keys = pairs.iter(now_ms).map(|(key, _)| String::from_utf8_lossy(key).into_owned()).collect();
            pairs.clear();
            Ok(())
        })?;
        Ok(keys)
    }

    /// The time when a pair set now expires.
    fn until(&self, expire: Option<Duration>, now_ms: u64) -> Result<Option<u64>, Refused> {
        if expire.is_some() && self.timeout.is_none() {
            return Err(misformed("keyval timeout is not enabled"));
        }
        let lasts = expire.or(self.timeout);
        Ok(lasts.map(|lasts| now_ms.saturating_add(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX))))
    }

    /// Changes the pairs. If the zone has a state file, weir writes the file first; if that fails, nothing changes.
    fn edit(&self, what: impl FnOnce(&mut Pairs, u64) -> Result<(), Refused>) -> Result<(), Refused> {
        self.pairs.edit(self.state.as_deref(), what)
    }
}

impl KeptPairs {
    /// Changes the pairs, as [`KeyvalZone::edit`].
    pub(super) fn edit(
        &self,
        state: Option<&str>,
        what: impl FnOnce(&mut Pairs, u64) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let _one_at_a_time = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
        let now_ms = clock::unix_ms();
        let Some(path) = state else {
            let mut pairs = self.pairs.write().unwrap_or_else(PoisonError::into_inner);
            pairs.expire(now_ms);
            return what(&mut pairs, now_ms);
        };
        let mut pairs = self.read().clone();
        pairs.expire(now_ms);
        what(&mut pairs, now_ms)?;
        state::write(path, &pairs, now_ms).map_err(|error| {
            let text = format!("weir cannot write the state file \"{path}\" {}", Os(&error));
            Refused { status: 500, code: "KeyvalStateError", text }
        })?;
        *self.pairs.write().unwrap_or_else(PoisonError::into_inner) = pairs;
        Ok(())
    }
}

/// A value, with its milliseconds left if it expires.
fn shown(pair: &Pair, now_ms: u64) -> Value {
    let value = String::from_utf8_lossy(&pair.value);
    match pair.until_ms {
        Some(until) => json!({"value": value, "expire": until.saturating_sub(now_ms)}),
        None => json!(value),
    }
}

fn set(pairs: &mut Pairs, key: &str, pair: Pair) -> Result<(), Refused> {
    pairs.set(key, pair).map_err(|misfit| match misfit {
        Misfit::Key => misformed("invalid key format"),
        Misfit::Full => {
            no(413, "KeyvalZoneFull", "the zone has no room for this pair: increase the size of the keyval_zone")
        }
    })
}

fn change(body: &Value, done: &str) -> Result<Change, Refused> {
    let Value::Object(members) = body else { return Err(misformed("the body must be a JSON object")) };
    let mut members = members.iter();
    let (Some((key, said)), others) = (members.next(), members.len()) else { return Err(misformed("key required")) };
    if key.is_empty() {
        return Err(misformed("key required"));
    }
    if others > 0 {
        return Err(misformed(&format!("only one key can be {done}")));
    }
    let (value, expire) = match said {
        Value::Object(members) => {
            if let Some(other) = members.keys().find(|name| !matches!(name.as_str(), "value" | "expire")) {
                return Err(misformed(&format!("unknown parameter \"{other}\"")));
            }
            (members.get("value"), members.get("expire"))
        }
        plain => (Some(plain), None),
    };
    let value = match value {
        None => None,
        Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => return Err(misformed("a value must be a string")),
    };
    let expire = expire.map(|expire| {
        let milliseconds = expire.as_u64().filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis);
        milliseconds
            .filter(|time| *time <= TIMEOUT_MAX)
            .ok_or_else(|| misformed("expire must be a number of milliseconds, from 1 ms to 24 days"))
    });
    let expire = expire.transpose()?;
    if value.is_none() && expire.is_none() {
        return Err(misformed("the body contains neither value nor expire"));
    }
    Ok(Change { key: key.clone(), value, expire })
}

fn unknown() -> Refused {
    no(404, "KeyvalKeyNotFound", "keyval key not found")
}

fn misformed(text: &str) -> Refused {
    no(400, "KeyvalFormatError", text)
}

fn no(status: u16, code: &'static str, text: &str) -> Refused {
    Refused { status, code, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod mutate {
        use super::*;
        /// A body of the API is a change, or a refusal with a status of a client's error.
        #[test]
        fn bodies() {
            let seeds = [r#"{"a":"b"}"#, r#"{"a":{"value":"b","expire":1000}}"#, r#"{"a":null}"#, r#"{"":"x"}"#];
            let words =
                ["{", "}", "[", "\"", ":", ",", "null", "1e400", "-1", "18446744073709551616", "\\u0000", "\\ud800"];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let Ok(body) = serde_json::from_slice::<Value>(bytes) else { return };
                match change(&body, "added") {
                    Ok(Change { key, value, expire }) => {
                        assert!(!key.is_empty() && (value.is_some() || expire.is_some()));
                        assert!(expire.is_none_or(|time| !time.is_zero() && time <= TIMEOUT_MAX));
                    }
                    Err(refused) => assert!((400..500).contains(&refused.status)),
                }
            });
        }
    }
}
