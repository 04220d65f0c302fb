//! One request of a flow as a step of the script: its URL, fields, cookies and body.

use foldhash::HashMap;

use super::detail::{CallVersion, FIELDS, OF_CLIENT, TextId};
use super::parts::{Columns, ScriptParts, quoted, time};
use super::routes::{Route, RoutePiece, plain};
use super::sessions::SessionStep;

/// Pauses below this are no pauses.
const THINK_MS_MIN: u64 = 20;
/// Most cookies of a step that a session can bring with it.
const COOKIES_MAX: usize = 20;
/// The value of a cookie that a session does not have: no jar ever sends it, and it replaces no other cookie.
const NO_COOKIE: &str = "; Path=/-; Max-Age=0";

/// A place in the flow of a scenario.
pub(super) struct StepPlace<'p> {
    pub(super) at: usize,
    pub(super) route: &'p Route,
    /// A client follows redirects with requests of its own, which are in the flow too.
    pub(super) has_redirects: bool,
    /// The sessions that give the values.
    pub(super) rows: &'p [Vec<SessionStep>],
    /// The template of a column.
    pub(super) template: &'p dyn Fn(&str) -> String,
}

impl StepPlace<'_> {
    /// A value from the step of each session.
    fn values(&self, value: impl Fn(&SessionStep) -> String) -> Vec<String> {
        self.rows.iter().map(|steps| steps.get(self.at).map(&value).unwrap_or_default()).collect()
    }
}

impl ScriptParts<'_> {
    /// Writes the pause before a step, and the step.
    pub(super) fn step(&self, place: &StepPlace<'_>, columns: &mut Columns, out: &mut String) {
        let thinks: Vec<u64> =
            place.rows.iter().filter_map(|steps| Some(self.scaled(steps.get(place.at)?.think_ms))).collect();
        if place.at > 0 && thinks.iter().any(|think| *think >= THINK_MS_MIN) {
            let texts = thinks.iter().map(|think| time(*think)).collect();
            let text = columns.place("think", texts, place.template);
            out.push_str(&format!("      - think: {}\n", quoted(&text)));
        }
        let url = self.url(place, columns);
        let mut keys = format!("url: {}", quoted(&url));
        for (key, members) in [("headers", self.headers(place, columns)), ("cookie", self.cookie(place, columns))] {
            if !members.is_empty() {
                keys.push_str(&format!(", {key}: {{ {} }}", members.join(", ")));
            }
        }
        if let Some(body) = self.body(place, columns) {
            keys.push_str(&format!(", body: {}", quoted(&body)));
        }
        if let Some(is_http2) = self.http2(place.route.traits.version) {
            keys.push_str(&format!(", http2: {is_http2}"));
        }
        if place.has_redirects {
            keys.push_str(", followRedirect: false");
        }
        out.push_str(&format!("      - {}: {{ {keys} }}\n", place.route.method.to_ascii_lowercase()));
    }

    fn url(&self, place: &StepPlace<'_>, columns: &mut Columns) -> String {
        let mut url = String::new();
        let mut value = 0;
        for piece in &place.route.pieces {
            match piece {
                RoutePiece::Text(text) => url.push_str(text),
                RoutePiece::Value(name) => {
                    let of = |step: &SessionStep| {
                        self.routes.place(step.call)?.values.get(value).map(|text| text.to_string())
                    };
                    let values = place.values(|step| of(step).unwrap_or_default());
                    url.push_str(&columns.place(name, values, place.template));
                    value += 1;
                }
            }
        }
        url
    }

    /// The fields that the recorded clients sent. A request without one of them has it empty, if others have it.
    fn headers(&self, place: &StepPlace<'_>, columns: &mut Columns) -> Vec<String> {
        let names = FIELDS.iter().filter(|name| **name != "sec-websocket-protocol");
        let header = |name: &&str| {
            let values = place.values(|step| self.text(self.field(step, name)).to_owned());
            if values.iter().all(String::is_empty) {
                return None;
            }
            Some(format!("{name}: {}", quoted(&columns.place(&plain(name), values, place.template))))
        };
        names.filter_map(header).collect()
    }

    /// A field of a step: those of a client are of one client in the whole session.
    pub(super) fn field(&self, step: &SessionStep, name: &str) -> Option<TextId> {
        let details = &self.log.details;
        let of = |number: u32| details.get(number)?.field(name);
        let own = of(step.detail)?;
        Some(if OF_CLIENT.contains(&name) { of(step.client).unwrap_or(own) } else { own })
    }

    /// The cookies that a session brings with it. The jar of the virtual user has those that the target sets.
    fn cookie(&self, place: &StepPlace<'_>, columns: &mut Columns) -> Vec<String> {
        let mut counts: HashMap<TextId, usize> = HashMap::default();
        let steps = || place.rows.iter().filter_map(|steps| steps.get(place.at));
        for (name, _) in steps().flat_map(|step| self.sessions.cookies(step)) {
            *counts.entry(*name).or_default() += 1;
        }
        let mut names: Vec<(&str, TextId, usize)> =
            counts.into_iter().map(|(name, count)| (self.text(Some(name)), name, count)).collect();
        names.sort_by_key(|(text, _, count)| (std::cmp::Reverse(*count), *text));
        names.truncate(COOKIES_MAX);
        names.sort_unstable();
        let member = |(text, name, _): (&str, TextId, usize)| {
            // The jar takes a cookie with a prefix only in this way.
            let end = if text.starts_with("__") { "; Path=/; Secure" } else { "; Path=/" };
            let value = |step: &SessionStep| {
                let own = self.sessions.cookies(step).iter().find(|(own, _)| *own == name);
                own.map_or_else(|| NO_COOKIE.to_owned(), |(_, value)| format!("{}{end}", self.text(Some(*value))))
            };
            let value = columns.place(&plain(&format!("cookie_{text}")), place.values(value), place.template);
            format!("{}: {}", quoted(text), quoted(&value))
        };
        names.into_iter().map(member).collect()
    }

    fn body(&self, place: &StepPlace<'_>, columns: &mut Columns) -> Option<String> {
        if matches!(&*place.route.method, "GET" | "HEAD") {
            return None;
        }
        let body = |step: &SessionStep| self.text(self.log.details.get(step.detail).and_then(|detail| detail.body));
        let values = place.values(|step| body(step).to_owned());
        let has_any = values.iter().any(|value| !value.is_empty());
        has_any.then(|| columns.place("body", values, place.template))
    }

    /// The key `http2` of a step, if its version is not that of the script.
    fn http2(&self, version: Option<CallVersion>) -> Option<bool> {
        match (self.log.protocol()?, version?) {
            (_, CallVersion::Http1) => Some(false),
            (CallVersion::Http3, CallVersion::Http2) => Some(true),
            _ => None,
        }
    }
}
