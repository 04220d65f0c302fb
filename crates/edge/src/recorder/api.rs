//! The state of recorders for the API and the metrics, and the orders of the API.
//!
//! Invariant: an order never brings a path. It names a recorder that the configuration has.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};
use weir_http::exchange::conf::Conf;
use weir_http::hold::board::lock;
use weir_meter::live::{Recording, Timestamp};
use weir_net::clock;
use weir_proxy::family::upstream::edit::Refused;

use super::Recorder;
use super::options::{PPM, RecordOptions, share_of};

/// The longest time that an order may name, in seconds.
pub const FOR_S_MAX: u64 = 31 * 24 * 3600;

/// The state of each recorder of a configuration.
pub fn all(conf: &Conf) -> Vec<Recording> {
    let declared = &crate::declared(conf).record;
    declared.recorders.iter().zip(&declared.options).map(|(recorder, options)| state(recorder, options)).collect()
}

/// The answer to `GET /weir/record`.
pub fn shown(all: &[Recording]) -> Value {
    json!({ "recordings": all })
}

/// Switches a recorder on or off, or changes its share. The answer is its state.
pub fn change(conf: Option<&Conf>, method: &str, body: &[u8]) -> Result<Value, Refused> {
    if !matches!(method, "POST" | "PATCH") {
        return Err(no(405, "MethodDisabled", "method disabled"));
    }
    let body = serde_json::from_slice(body).map_err(|error| no(415, "JsonError", format!("json error: {error}")))?;
    let order = RecordOrder::read(&body)?;
    let Some(declared) = conf.map(|conf| &crate::declared(conf).record) else {
        return Err(no(404, "RecordingNotFound", "no configuration is in force"));
    };
    let mut all = declared.recorders.iter().zip(&declared.options);
    let found = match &order.file {
        Some(file) => all.find(|(_, options)| options.path == *file),
        None if declared.recorders.len() == 1 => all.next(),
        None => {
            return Err(no(
                400,
                "RecordingNotNamed",
                "\"file\" is missing, and the configuration has not one recording",
            ));
        }
    };
    let (recorder, options) =
        found.ok_or_else(|| no(404, "RecordingNotFound", "the configuration has no \"record\" with this file"))?;
    recorder.obey(&order)?;
    serde_json::to_value(state(recorder, options)).map_err(|error| no(500, "JsonError", error.to_string()))
}

/// An order of the API.
#[derive(Debug, Default, PartialEq)]
struct RecordOrder {
    file: Option<String>,
    is_on: Option<bool>,
    share_ppm: Option<u32>,
    lasts: Option<Duration>,
}

impl RecordOrder {
    fn read(value: &Value) -> Result<RecordOrder, Refused> {
        let bad = |what: &str| no(400, "RecordingFormatError", what);
        let members = value.as_object().ok_or_else(|| bad("the body is not an object"))?;
        let mut order = RecordOrder::default();
        for (name, value) in members {
            match name.as_str() {
                "file" => {
                    let file = value.as_str().ok_or_else(|| bad("\"file\" is not a text"))?;
                    order.file = Some(file.to_owned());
                }
                "on" => order.is_on = Some(value.as_bool().ok_or_else(|| bad("\"on\" is not true or false"))?),
                "share" => {
                    let share = share(value);
                    order.share_ppm =
                        Some(share.ok_or_else(|| bad("\"share\" is neither above 0 and at most 1, nor a percentage"))?);
                }
                "for_s" => {
                    let time = value.as_u64().filter(|time| (1..=FOR_S_MAX).contains(time));
                    let time = time.ok_or_else(|| bad("\"for_s\" is no number of seconds from 1 to 2678400"))?;
                    order.lasts = Some(Duration::from_secs(time));
                }
                _ => return Err(bad("the members are file, on, share and for_s")),
            }
        }
        if order.is_on == Some(false) && (order.lasts.is_some() || order.share_ppm.is_some()) {
            return Err(bad("\"share\" and \"for_s\" are for a recording that is on"));
        }
        if order.is_on.is_none() && order.lasts.is_none() && order.share_ppm.is_none() {
            return Err(bad("\"on\", \"share\" or \"for_s\" is missing"));
        }
        Ok(order)
    }
}

/// `0.1` or `"10%"`, in millionths.
fn share(value: &Value) -> Option<u32> {
    match (value.as_str(), value.as_f64()) {
        (Some(text), _) => share_of(text),
        (None, Some(share)) if share > 0.0 && share <= 1.0 => {
            Some(((share * f64::from(PPM)).round() as u32).clamp(1, PPM))
        }
        _ => None,
    }
}

impl Recorder {
    /// Carries an order out. A change of the share or of the end is another run.
    fn obey(self: &Arc<Recorder>, order: &RecordOrder) -> Result<(), Refused> {
        let mut state = lock(&self.state);
        if state.options.is_none() {
            return Err(no(503, "RecordingNotReady", "the recording has no key, the error log says why"));
        }
        if order.is_on == Some(false) {
            self.end(&mut state);
            return Ok(());
        }
        if order.share_ppm.is_some() {
            state.share_ppm = order.share_ppm;
        }
        let changes = order.share_ppm.is_some() || order.lasts.is_some();
        if order.is_on == Some(true) && (state.run.is_none() || changes) || state.run.is_some() && changes {
            let until = order.lasts.map(|lasts| clock::precise() + lasts);
            self.begin(&mut state, until);
            if state.run.is_none() {
                return Err(no(500, "RecordingFailed", "the recording could not begin, the error log says why"));
            }
        }
        Ok(())
    }
}

/// The state of a recorder.
fn state(recorder: &Recorder, options: &RecordOptions) -> Recording {
    let state = lock(&recorder.state);
    let share_ppm = state.share_ppm.unwrap_or(options.share_ppm);
    let mut recording = Recording {
        file: options.path.clone(),
        is_on: state.run.is_some(),
        is_ending: state.run.is_none() && state.ended.iter().any(|run| !run.has_ended()),
        share: f64::from(share_ppm) / f64::from(PPM),
        bytes: recorder.file.handle().and_then(|file| file.metadata().ok()).map_or(0, |facts| facts.len()),
        max_bytes: options.max_bytes,
        totals: state.totals,
        ..Recording::default()
    };
    for run in state.ended.iter().chain(&state.run) {
        run.add_to(&mut recording.totals);
    }
    let Some(run) = state.run.as_ref().or(state.last.as_ref()) else { return recording };
    let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    recording.since = Some(Timestamp(run.unix_us / 1000));
    if state.run.is_some() {
        recording.share = f64::from(run.share_ppm) / f64::from(PPM);
        recording.until = run.until.map(|until| {
            Timestamp(clock::unix_ms() + until.saturating_duration_since(clock::precise()).as_millis() as u64)
        });
    }
    recording.recorded = count(&run.counts.recorded);
    recording.exchanges = run.exchanges();
    recording.lost = run.lost();
    recording.messages = count(&run.counts.messages);
    recording
}

fn no(status: u16, code: &'static str, text: impl Into<String>) -> Refused {
    Refused { status, code, text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_read_or_refused_by_name() {
        let read = |text: &str| {
            let value = serde_json::from_str(text).unwrap_or_default();
            RecordOrder::read(&value).map_err(|refused| (refused.status, refused.text))
        };
        let order = RecordOrder {
            file: Some("/r".to_owned()),
            is_on: Some(true),
            share_ppm: Some(100_000),
            lasts: Some(Duration::from_secs(600)),
        };
        assert_eq!(read(r#"{"file":"/r","on":true,"share":0.1,"for_s":600}"#), Ok(order));
        assert_eq!(read(r#"{"share":"10%"}"#).map(|order| order.share_ppm), Ok(Some(100_000)));
        for (text, what) in [
            ("[]", "the body is not an object"),
            ("{}", "\"on\", \"share\" or \"for_s\" is missing"),
            (r#"{"file":1}"#, "\"file\" is not a text"),
            (r#"{"on":1}"#, "\"on\" is not true or false"),
            (r#"{"share":0}"#, "\"share\" is neither"),
            (r#"{"share":1.5}"#, "\"share\" is neither"),
            (r#"{"share":"0%"}"#, "\"share\" is neither"),
            (r#"{"for_s":0}"#, "\"for_s\" is no number"),
            (r#"{"for_s":2678401}"#, "\"for_s\" is no number"),
            (r#"{"path":"/etc/passwd"}"#, "the members are"),
            (r#"{"on":false,"for_s":1}"#, "\"share\" and \"for_s\" are for"),
        ] {
            let refused = read(text).err().unwrap_or_default();
            assert!(refused.0 == 400 && refused.1.contains(what), "{text}: {refused:?}");
        }
    }
}
