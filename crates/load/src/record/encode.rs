//! Encodes taken counts as text: agents send it to the process that merges.
//!
//! JSON with short keys; histograms are sparse. Decoding returns the same counts, or `None` for any other bytes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::phase::{phase, step};
use super::window::{EventRate, OwnMeasurements, Second, Stamps, TakenWindow, Window};
use super::{Glance, Hdr, Sketch};

impl TakenWindow {
    /// The counts as JSON text.
    pub fn encode(&self) -> String {
        let windows: Vec<Value> = self.windows.iter().map(window).collect();
        let seconds: Vec<Value> = self.seconds.iter().map(second).collect();
        json!({"w": windows, "s": seconds}).to_string()
    }

    /// Decodes the text of [`TakenWindow::encode`].
    pub fn decode(text: &str) -> Option<TakenWindow> {
        let json: Value = serde_json::from_str(text).ok()?;
        let windows = json.get("w")?.as_array()?.iter().map(read_window).collect::<Option<_>>()?;
        let seconds = json.get("s")?.as_array()?.iter().map(read_second).collect::<Option<_>>()?;
        Some(TakenWindow { windows, seconds })
    }
}

fn window(window: &Window) -> Value {
    let stamps = window.stamps;
    let rates = window.rates.iter().map(|(name, rate)| json!([&**name, rate.count, rate.first_ms, rate.last_ms]));
    let sketches = window.sketches.iter().map(|(name, sketch)| json!([&**name, sketch.to_json()]));
    json!({
        "t": window.start_ms,
        "c": counts(&window.counters),
        "r": rates.collect::<Vec<_>>(),
        "h": sketches.collect::<Vec<_>>(),
        "at": [stamps.first_counter, stamps.first_histogram, stamps.last_counter, stamps.last_histogram],
        "own": own(&window.own),
    })
}

fn own(own: &OwnMeasurements) -> Value {
    let failures = own.failures.iter().map(|((step, name), count)| json!([phase(*step), &**name, count]));
    json!({
        "response": own.response.encoded(),
        "service": own.service.encoded(),
        "lag": own.lag.encoded(),
        "dropped": own.dropped,
        "failures": failures.collect::<Vec<_>>(),
    })
}

fn second(second: &Second) -> Value {
    let glance = |glance: &Glance| glance.filled().map(|(at, count)| json!([at, count])).collect::<Vec<_>>();
    json!({
        "t": second.start_ms,
        "c": counts(&second.counts),
        "response": glance(&second.response),
        "service": glance(&second.service),
    })
}

fn counts(counts: &[(Arc<str>, u64)]) -> Vec<Value> {
    counts.iter().map(|(name, count)| json!([&**name, count])).collect()
}

fn read_window(json: &Value) -> Option<Window> {
    let at = json.get("at")?;
    let stamp = |index: usize| at.get(index).and_then(Value::as_u64);
    let rate = |json: &Value| {
        let number = |index: usize| json.get(index)?.as_u64();
        Some((name(json)?, EventRate { count: number(1)?, first_ms: number(2)?, last_ms: number(3)? }))
    };
    Some(Window {
        start_ms: json.get("t")?.as_u64()?,
        counters: read_counts(json.get("c")?)?,
        rates: json.get("r")?.as_array()?.iter().map(rate).collect::<Option<_>>()?,
        sketches: json
            .get("h")?
            .as_array()?
            .iter()
            .map(|json| Some((name(json)?, Sketch::from_json(json.get(1)?)?)))
            .collect::<Option<_>>()?,
        stamps: Stamps {
            first_counter: stamp(0),
            first_histogram: stamp(1),
            last_counter: stamp(2),
            last_histogram: stamp(3),
        },
        own: read_own(json.get("own")?)?,
    })
}

fn read_own(json: &Value) -> Option<OwnMeasurements> {
    let hdr = |key: &str| Hdr::decode(json.get(key)?.as_str()?);
    let mut own = OwnMeasurements {
        response: hdr("response")?,
        service: hdr("service")?,
        lag: hdr("lag")?,
        dropped: json.get("dropped")?.as_u64()?,
        ..OwnMeasurements::default()
    };
    for failure in json.get("failures")?.as_array()? {
        own.fail(step(failure.get(0)?.as_str()?)?, failure.get(1)?.as_str()?, failure.get(2)?.as_u64()?);
    }
    Some(own)
}

fn read_second(json: &Value) -> Option<Second> {
    let glance = |key: &str| {
        let mut glance = Glance::default();
        for bucket in json.get(key)?.as_array()? {
            glance.set(usize::try_from(bucket.get(0)?.as_u64()?).ok()?, u32::try_from(bucket.get(1)?.as_u64()?).ok()?);
        }
        Some(glance)
    };
    Some(Second {
        start_ms: json.get("t")?.as_u64()?,
        counts: read_counts(json.get("c")?)?,
        response: glance("response")?,
        service: glance("service")?,
    })
}

fn read_counts(json: &Value) -> Option<Vec<(Arc<str>, u64)>> {
    json.as_array()?.iter().map(|json| Some((name(json)?, json.get(1)?.as_u64()?))).collect()
}

fn name(json: &Value) -> Option<Arc<str>> {
    Some(json.get(0)?.as_str()?.into())
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;
    use std::time::Duration;
    use weir_meter::Step;

    fn taken() -> TakenWindow {
        let recorder = Recorder::at(1_795_186_848_465);
        recorder.count(recorder.metric("http.codes.200"), 3);
        recorder.rate(recorder.metric("http.request_rate"));
        recorder.sample(recorder.metric("http.response_time"), 12.5);
        recorder.latency(Duration::from_micros(700), Duration::from_micros(650));
        recorder.lag(Duration::from_micros(3));
        recorder.failure(Step::AwaitHead, "ETIMEDOUT");
        recorder.dropped(1);
        recorder.take(u64::MAX)
    }

    #[test]
    fn text_gives_it_back() {
        let taken = taken();
        assert_eq!((taken.windows.len(), taken.seconds.len()), (1, 1));
        assert!(TakenWindow::decode(&taken.encode()) == Some(taken));
        assert_eq!(TakenWindow::decode(&TakenWindow::default().encode()), Some(TakenWindow::default()));
    }

    #[test]
    fn anything_else_is_refused() {
        let text = taken().encode();
        for end in (0..text.len()).step_by(7) {
            assert!(TakenWindow::decode(&text[..end]).is_none(), "{end}");
        }
        for (what, with) in
            [("wait", "hope"), ("HISTFAAA", "AISTFAAA"), ("\"t\":", "\"u\":"), ("\"dropped\":1", "\"dropped\":-1")]
        {
            assert!(TakenWindow::decode(&text.replace(what, with)).is_none(), "{what}");
        }
    }

    mod mutate {
        use super::*;
        /// The counts of an agent: they are read and written as the same ones, or they are none.
        #[test]
        fn counts() {
            let seeds = [TakenWindow::default().encode(), r#"{"w":[{"at":1}],"s":[{"at":1,"n":2}]}"#.to_owned()];
            let words = [
                "{",
                "}",
                "[",
                "]",
                ":",
                ",",
                "\"",
                "null",
                "-1",
                "1e999",
                "18446744073709551615",
                "\"w\":",
                "\"s\":",
                "\\u0000",
            ];
            weir_mutate::mutate(&seeds, &words, |bytes| {
                if let Some(read) = TakenWindow::decode(&String::from_utf8_lossy(bytes)) {
                    let text = read.encode();
                    assert_eq!(TakenWindow::decode(&text).map(|again| again.encode()), Some(text));
                }
            });
        }
    }
}
