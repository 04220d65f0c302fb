//! The report as JSON.

use serde_json::{Value, json as object};

use super::model::{ReportedDifference, SwapReport};
use crate::cause::CauseSide;
use crate::compare::EXPLAINED;
use crate::request::SwapRequest;
use crate::verdict::LEVEL;

/// The report as JSON. Bytes that are not UTF-8 are replaced.
pub fn json(report: &SwapReport) -> Value {
    let bound = &report.bound;
    let not_replayed: Vec<Value> =
        report.not_replayed.iter().map(|(why, count)| object!({ "why": why.said().en(), "count": count })).collect();
    let asked = report.asked;
    let share = |count: u64| if asked == 0 { 0.0 } else { count as f64 / asked as f64 };
    let exercised = report.exercised.iter().map(|one| {
        object!({
            "file": one.file,
            "line": one.line,
            "text": one.text,
            "requests": one.requests,
            "share": share(one.requests),
        })
    });
    let explained = report.explained.iter().filter_map(|(index, count)| {
        let one = EXPLAINED.get(*index)?;
        Some(object!({ "name": one.name, "reason": one.reason.en, "requests": count }))
    });
    let noise = report
        .noise
        .iter()
        .map(|one| object!({ "route": one.route, "part": one.part, "differed": one.differed, "of": one.of }));
    let routes = report.routes.iter().map(|one| {
        object!({
            "route": one.route,
            "requests": one.requests,
            "differing": one.differing,
            "is_shown": one.is_shown(),
        })
    });
    object!({
        "version": 1,
        "verdict": report.verdict.word(),
        "a": report.names[0],
        "b": report.names[1],
        "requests": {
            "asked": asked,
            "comparable": bound.requests.1,
            "differing": bound.requests.0,
            "passing": report.passing,
            "not_replayed": not_replayed,
        },
        "bound": {
            "differing": bound.requests.0,
            "of": bound.requests.1,
            "clients": bound.clients.1,
            "clients_differing": bound.clients.0,
            "upper": bound.upper,
            "upper_clients": bound.upper_clients,
            "level": LEVEL,
        },
        "differences": report.differences.iter().map(difference).collect::<Vec<_>>(),
        "explained": explained.collect::<Vec<_>>(),
        "noise": noise.collect::<Vec<_>>(),
        "routes": routes.collect::<Vec<_>>(),
        "exercised": exercised.collect::<Vec<_>>(),
        "sources": report.sources.iter().map(|said| said.en()).collect::<Vec<_>>(),
        "is_stopped": report.is_stopped,
    })
}

fn difference(one: &ReportedDifference) -> Value {
    let causes = one.causes.iter().map(|cause| {
        let side = match cause.side {
            CauseSide::A => "a",
            CauseSide::B => "b",
        };
        object!({ "side": side, "file": cause.file, "line": cause.line, "text": cause.text })
    });
    let mut smallest = request(&one.request);
    if let Some(members) = smallest.as_object_mut() {
        members.insert("before".to_owned(), one.before.iter().map(request).collect());
    }
    let mut value = object!({
        "part": one.part,
        "kind": one.kind.word(),
        "a": one.a,
        "b": one.b,
        "requests": one.requests,
        "routes": one.routes,
        "request": smallest,
        "causes": causes.collect::<Vec<_>>(),
    });
    if let (Some(note), Some(members)) = (&one.cause_note, value.as_object_mut()) {
        members.insert("cause_note".to_owned(), note.en().into());
    }
    value
}

fn request(one: &SwapRequest) -> Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields: Vec<[String; 2]> = one.fields.iter().map(|(name, value)| [text(name), text(value)]).collect();
    let mut value = object!({
        "method": one.method,
        "host": one.host,
        "target": text(&one.target),
        "version": if one.is_http10 { "1.0" } else { "1.1" },
        "fields": fields,
    });
    if let Some(members) = value.as_object_mut().filter(|_| !one.body.is_empty()) {
        members.insert("body".to_owned(), text(&one.body).into());
    }
    value
}
