//! `otel_*`: traces like those of nginx's `ngx_otel_module`, with weir's data about each try at an upstream.
//!
//! <https://nginx.org/en/docs/ngx_otel_module.html>; the user's page is `docs/guide/tracing.md`.

mod exporter;
mod span;

use std::io;
use std::sync::{Arc, OnceLock};

use weir_cache::store::Refreshed;
use weir_net::process::Identity;

use self::span::Told;
use crate::exchange::Exchange;
use crate::exchange::trace::context::{self, SpanContext, Trace};
use crate::exchange::trace::{Counts, Exporter, Settings as ExporterSettings};
use crate::exchange::variable::Variable;
use crate::read::build::{Build, Scope};
use crate::read::directive::{Arity, Directive, HSL, HTTP, NONE, ONE, TWO};
use crate::read::families::Family;
use crate::text::refusal::Refusal;
use crate::text::template::Template;
use crate::text::value;

crate::settings! {
    /// `otel_trace`: "on" or "1" records.
    trace: Option<Template> = None,
    /// `otel_trace_context`.
    context: Propagation = Propagation::Ignore,
    /// `otel_span_name`.
    span_name: Option<Template> = None,
    /// `otel_span_attr`.
    attributes: Arc<Vec<(String, Template)>> = Arc::default(),
    /// `otel_upstream_spans`.
    upstream_spans: bool = false,
    /// The location has work to do when a request enters.
    is_active: bool = false,
}

/// The handling of the trace context in a request's fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// weir passes it on unchanged.
    Ignore,
    /// The caller's span becomes the parent.
    Extract,
    /// weir sends the upstream the exchange's own context.
    Inject,
    /// Both `Extract` and `Inject`.
    Propagate,
}

impl Propagation {
    const WORDS: &[(&str, Propagation)] = &[
        ("ignore", Propagation::Ignore),
        ("extract", Propagation::Extract),
        ("inject", Propagation::Inject),
        ("propagate", Propagation::Propagate),
    ];

    fn extracts(self) -> bool {
        matches!(self, Propagation::Extract | Propagation::Propagate)
    }

    fn injects(self) -> bool {
        matches!(self, Propagation::Inject | Propagation::Propagate)
    }
}

/// The one exporter of `http`, and its resource attributes.
#[derive(Default)]
pub struct Declared {
    service_name: Option<String>,
    resource: Vec<(String, String)>,
    settings: Option<ExporterSettings>,
    exporter: OnceLock<Arc<Exporter>>,
    /// Counts of spans sent and lost since the process began.
    pub counts: Arc<Counts>,
    is_missing_said: bool,
}

/// The family.
pub static FAMILY: Family = Family::new("otel", &[
    Directive::new("otel_exporter", HTTP, NONE,
        "The collector that gets the spans: endpoint, trusted_certificate, header, interval (5s), batch_size (512), \
         batch_count (4).",
        exporter::read).block(),
    Directive::new("otel_service_name", HTTP, ONE, "The \"service.name\" of the spans.",
        |b, s| { b.declared.otel.service_name = Some(s.text(0).to_owned()); Ok(()) }).default("unknown_service:nginx"),
    Directive::new("otel_resource_attr", HTTP, TWO, "An attribute of the spans' resource.",
        |b, s| { b.declared.otel.attribute(s.text(0), s.text(1)); Ok(()) }).many(),
    Directive::new("otel_trace", HSL, ONE, "Records requests: on, off, or a text with variables; the values on and 1 record.", |b, s| {
        let template = b.template(s.text(0))?;
        b.settings().otel.trace = Some(Some(template));
        Ok(())
    }).default("off"),
    Directive::new("otel_trace_context", HSL, ONE,
        "Handles the fields traceparent and tracestate: extract reads them, inject writes them for the upstream, \
         propagate does both.",
        |b, s| { b.settings().otel.context = Some(value::choice(s, Propagation::WORDS)?); Ok(()) }).default("ignore"),
    Directive::new("otel_span_name", HSL, ONE, "The name of a request's span; by default the name of the location.", |b, s| {
        let template = b.template(s.text(0))?;
        b.settings().otel.span_name = Some(Some(template));
        Ok(())
    }),
    Directive::new("otel_span_attr", HSL, TWO, "An additional attribute of a request's span.", |b, s| {
        let template = b.template(s.text(1))?;
        let attributes = b.settings().otel.attributes.get_or_insert_default();
        Arc::make_mut(attributes).push((s.text(0).to_owned(), template));
        Ok(())
    }).many(),
    Directive::new("otel_upstream_spans", HSL, Arity::Flag,
        "weir's own: records a span for each try at an upstream, instead of an event in the request's span.",
        |b, s| { b.settings().otel.upstream_spans = Some(value::flag(s)?); Ok(()) }).default("off"),
])
.variables(&[
    Variable::without_answer("otel_trace_id", |exchange, _, out| push_hex(&ensure(exchange).current.trace, out)),
    Variable::without_answer("otel_span_id", |exchange, _, out| push_hex(&ensure(exchange).current.span, out)),
    Variable::without_answer("otel_parent_id", |exchange, _, out| match &ensure(exchange).parent {
        Some(parent) => push_hex(&parent.span, out),
        None => false,
    }),
    Variable::without_answer("otel_parent_sampled", |exchange, _, out| {
        let is_sampled = ensure(exchange).parent.as_ref().is_some_and(SpanContext::is_sampled);
        out.push(if is_sampled { b'1' } else { b'0' });
        true
    }),
])
.enter_location(|_, location| location.values.otel.is_active, enter)
// A span may have begun in another location.
.log(|conf, _| conf.declared.otel.settings.is_some(), ended)
.adopt(|new, old| { new.declared.otel.adopt(&old.declared.otel); Ok(()) })
.finish(finish);

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let settings = &mut scope.settings.otel;
    let trace = settings.trace.as_ref().and_then(Option::as_ref);
    let records = trace.is_some_and(|template| template.literal() != Some(b"off"));
    let has_context = settings.context.is_some_and(|context| context != Propagation::Ignore);
    settings.is_active = Some(records || has_context);
    if trace.is_some()
        && b.declared.otel.settings.is_none()
        && !std::mem::replace(&mut b.declared.otel.is_missing_said, true)
    {
        let refusal = Refusal::whole("\"otel_exporter\" block is missing")
            .todo("add in http: otel_exporter { endpoint HOST:4317; }")
            .needs("otel_exporter", "")
            .about("otel_trace", 0);
        b.refuse_in(scope, "otel_trace", refusal);
    }
    if scope.context == HTTP {
        b.declared.otel.settle();
    }
}

impl Declared {
    fn attribute(&mut self, name: &str, value: &str) {
        self.resource.retain(|(known, _)| known != name);
        self.resource.push((name.to_owned(), value.to_owned()));
    }

    /// Runs once all of `http` is read: settles the resource attributes.
    fn settle(&mut self) {
        const NAME: &str = "service.name";
        match self.service_name.take() {
            Some(name) => self.attribute(NAME, &name),
            None if self.resource.iter().all(|(name, _)| name != NAME) => self.attribute(NAME, "unknown_service:nginx"),
            None => {}
        }
        if let Some(settings) = &mut self.settings {
            settings.resource.clone_from(&self.resource);
        }
    }

    /// An exporter with the same settings goes on; the counts always do.
    fn adopt(&mut self, old: &Declared) {
        self.counts = old.counts.clone();
        if self.settings == old.settings
            && let Some(exporter) = old.exporter.get()
        {
            self.exporter = OnceLock::from(exporter.clone());
        }
    }

    /// Starts the exporter, if one is configured and does not run.
    ///
    /// # Errors
    /// The exporter's thread could not be started.
    pub fn open(&self, workers: usize, identity: Option<&Identity>) -> io::Result<()> {
        let Some(settings) = self.settings.as_ref().filter(|_| self.exporter.get().is_none()) else { return Ok(()) };
        let exporter = Exporter::start(settings, self.counts.clone(), workers, identity.cloned())?;
        // Only the control thread calls this.
        let _ = self.exporter.set(exporter);
        Ok(())
    }

    /// The running exporter.
    pub fn exporter(&self) -> Option<&Exporter> {
        self.exporter.get().map(Arc::as_ref)
    }

    /// The destination of the spans.
    pub fn endpoint(&self) -> Option<String> {
        self.settings.as_ref().map(|settings| settings.endpoint.to_string())
    }
}

/// Handles a request that enters a location with tracing, or with work on the context in its fields (nginx: before the
/// location's own rewrites).
#[cold]
fn enter(exchange: &mut Exchange<'_>) {
    // After an internal redirect it is the same request: the decision stays.
    if !exchange.flags.internal || exchange.trace().is_none() {
        let location = exchange.location;
        let records = location.values.otel.trace.as_ref().is_some_and(|template| match template.literal() {
            Some(word) => is_yes(word),
            None => is_yes(&template.text(exchange)),
        });
        ensure(exchange).record(records);
    }
    let injects = exchange.location.values.otel.context.injects();
    ensure(exchange).injects = injects;
}

fn is_yes(word: &[u8]) -> bool {
    matches!(word, b"on" | b"1")
}

/// The exchange's trace; the first call creates it.
fn ensure<'e>(exchange: &'e mut Exchange<'_>) -> &'e mut Trace {
    if exchange.trace().is_none() {
        let extracts = exchange.location.values.otel.context.extracts();
        let parent = if extracts { parent_of(exchange) } else { None };
        let state = match parent {
            Some(_) => context::state(named(exchange, b"tracestate")),
            None => Box::default(),
        };
        exchange.rare_mut().trace = Some(Box::new(Trace::below(parent, state)));
    }
    // The code above has created it if there was none.
    exchange.rare_mut().trace.get_or_insert_with(|| Box::new(Trace::below(None, Box::default())))
}

/// The caller's span; two fields count as none (§3.3.1.1 of the recommendation).
fn parent_of(exchange: &Exchange<'_>) -> Option<SpanContext> {
    let mut fields = named(exchange, b"traceparent");
    let first = fields.next()?;
    if fields.next().is_some() { None } else { SpanContext::parse(first) }
}

fn named<'e>(exchange: &'e Exchange<'_>, name: &'static [u8]) -> impl Iterator<Item = &'e [u8]> {
    let request = &exchange.request;
    let fields = request.fields().iter().filter(move |field| request.text(field.name).eq_ignore_ascii_case(name));
    fields.map(|field| request.text(field.value))
}

/// The trace context that the upstream gets in place of the client's fields, if it gets one.
#[inline]
pub fn injected<'e>(exchange: &'e Exchange<'_>) -> Option<&'e Trace> {
    exchange.trace().filter(|trace| trace.injects)
}

/// Whether the field is one that weir replaces.
pub fn is_told(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"traceparent") || name.eq_ignore_ascii_case(b"tracestate")
}

/// `$http_traceparent` and `$http_tracestate` where weir replaces the fields: the values for the upstream (as in
/// nginx, which changes the request). `None` where they are the client's values.
pub fn told(exchange: &Exchange<'_>, name: &str, out: &mut Vec<u8>) -> Option<bool> {
    let trace = injected(exchange)?;
    match name {
        "traceparent" => out.extend_from_slice(&trace.current.text()),
        "tracestate" => out.extend_from_slice(&trace.state),
        _ => return None,
    }
    Some(name == "traceparent" || !trace.state.is_empty())
}

/// The trace of a background fetch: a span below the request's span, recorded if that span is.
pub fn behind(exchange: &Exchange<'_>) -> Option<Box<Trace>> {
    let cause = exchange.trace()?;
    let mut trace = Trace::below(Some(cause.current), cause.state.clone());
    trace.record(cause.is_recorded());
    trace.injects = cause.injects;
    Some(Box::new(trace))
}

/// The request is over: sends its span.
fn ended(exchange: &mut Exchange<'_>) {
    send(exchange, Told::Request);
}

/// The same for the cache's own refresh, which has no log phase, with its result.
pub fn refreshed(exchange: &mut Exchange<'_>, how: Refreshed) {
    send(exchange, Told::Refresh(how));
}

fn send(exchange: &mut Exchange<'_>, told: Told) {
    let taken = exchange.rare.as_mut().and_then(|rare| rare.trace.take_if(|trace| trace.is_recorded()));
    let Some(trace) = taken else { return };
    let conf = exchange.conf;
    if let Some(exporter) = conf.declared.otel.exporter() {
        span::write(exchange, &trace, told, |span| exporter.push(span));
    }
    exchange.rare_mut().trace = Some(trace);
}

fn push_hex(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    out.extend(bytes.iter().flat_map(|byte| [context::digit(byte >> 4), context::digit(byte & 15)]));
    true
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::of_text;

    #[test]
    fn a_location_without_traces_has_nothing_to_do() {
        let text =
            "events {} http { otel_exporter { endpoint [::1]; } otel_trace on; otel_resource_attr service.name a;
            server { listen 1; location /on { } location /off { otel_trace off; }
                location /in { otel_trace off; otel_trace_context extract; } location /var { otel_trace $arg_t; } } }";
        let (conf, said) = of_text(text);
        assert!(said.is_empty(), "{said:?}");
        let conf = conf.unwrap();
        let active: Vec<bool> = conf.locations.iter().map(|location| location.values.otel.is_active).collect();
        assert_eq!(active, [true, true, false, true, true]);
        assert!(
            conf.locations
                .iter()
                .all(|location| location.steps.enter_location.is_empty() != location.values.otel.is_active)
        );
        let resource = conf.declared.otel.settings.as_ref().unwrap().resource.clone();
        assert_eq!(resource, [("service.name".to_owned(), "a".to_owned())]);
        let (conf, _) = of_text("events {} http { server { listen 1; location / { } } }");
        assert!(conf.unwrap().locations.iter().all(|location| !location.values.otel.is_active));
    }

    #[test]
    fn statements_are_refused_in_the_modules_words() {
        for (text, expected) in [
            ("otel_trace on;", "\"otel_exporter\" block is missing"),
            ("otel_exporter { interval 1s; }", "\"otel_exporter\" requires \"endpoint\""),
            ("otel_exporter { endpoint a; endpoint b; }", "\"endpoint\" directive of \"otel_exporter\" is duplicate"),
            (
                "otel_exporter { endpoint a b; }",
                "invalid number of arguments in \"endpoint\" directive of \"otel_exporter\"",
            ),
            ("otel_exporter { endpoint a; colour red; }", "unknown directive \"colour\" in \"otel_exporter\""),
            ("otel_exporter { endpoint a; batch_size 0; }", "batch_size"),
            ("otel_exporter { endpoint a; interval soon; }", "interval"),
            ("otel_exporter { endpoint a:b; }", "endpoint"),
            ("otel_exporter { endpoint a; header \"x y\" 1; }", "has invalid header name"),
            ("otel_exporter { endpoint a; header x \"\u{1}\"; }", "has invalid header value"),
            ("otel_exporter { endpoint https://a; trusted_certificate /nowhere; }", "/nowhere"),
            ("otel_exporter { endpoint a; batch_size 60000; batch_count 60000; }", "60000 times 60000 spans"),
            ("otel_trace_context both;", "invalid value \"both\""),
        ] {
            let (_, said) = of_text(&format!("events {{}} http {{ {text} }}"));
            assert!(said.join("\n").contains(expected), "{text}: {said:?}");
        }
    }
}
