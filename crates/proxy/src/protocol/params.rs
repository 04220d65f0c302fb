//! The parameters of a request in the manner of CGI: those of `…_param`, and the client's fields as `HTTP_NAME`.
//!
//! nginx: `ngx_http_fastcgi_init_params`, `ngx_http_fastcgi_create_request` and their likes for uwsgi and SCGI.

use weir_http::exchange::Exchange;
use weir_http::family::otel;
use weir_http::text::template::Template;
use weir_wire::Known;

/// One `…_param`, as written.
#[derive(Clone, Debug)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: Template,
    /// `if_not_empty`.
    pub if_not_empty: bool,
}

/// Appends a parameter in the form of a protocol.
pub type Push = fn(&mut Vec<u8>, &[u8], &[u8]);

/// The prefix of the parameters that hold a client's fields.
const PREFIX: &[u8] = b"HTTP_";

/// The field that nginx passes on as `HTTP_PROXY` and weir does not: many applications take this parameter for the
/// address of a proxy for their own requests (CVE-2016-5385, "httpoxy").
const PROXY: &[u8] = b"Proxy";

/// Fields about a version that the client has, or about a range. The cache leaves them out to get the whole answer, and
/// sends the validators of the stored answer.
const CONDITIONS: [Known; 6] = [
    Known::IfModifiedSince,
    Known::IfUnmodifiedSince,
    Known::IfNoneMatch,
    Known::IfMatch,
    Known::Range,
    Known::IfRange,
];

/// The parameters that a location sends, compiled once.
#[derive(Default)]
pub struct Params {
    set: Vec<Set>,
    /// Fields whose `HTTP_NAME` is set above, without the prefix, in upper case.
    replaced: Vec<Box<[u8]>>,
}

enum Set {
    /// Whole parameters, in the form of the protocol.
    Fixed(Vec<u8>),
    /// A parameter with a value to evaluate.
    Computed { name: Box<[u8]>, value: Template, if_not_empty: bool },
}

impl Params {
    /// Compiles the parameters of one block. `host` is the value of `HTTP_HOST` if the block does not set it.
    pub fn compile(written: &[Param], host: Template, push: Push) -> Params {
        let mut params = Params::default();
        for param in written {
            params.add(param, push);
        }
        if !written.iter().any(|param| param.name.eq_ignore_ascii_case("HTTP_HOST")) {
            params.add(&Param { name: "HTTP_HOST".to_owned(), value: host, if_not_empty: true }, push);
        }
        params
    }

    fn add(&mut self, Param { name, value, if_not_empty }: &Param, push: Push) {
        let literal = value.literal();
        if let Some(field) = name.as_bytes().strip_prefix(PREFIX).filter(|field| !field.is_empty()) {
            self.replaced.push(field.to_ascii_uppercase().into());
            // nginx: an empty text only leaves the field out.
            if literal == Some(b"") {
                return;
            }
        }
        let fixed = match literal {
            Some(b"") if *if_not_empty => return,
            Some(text) => text,
            None => {
                let (name, value) = (name.as_bytes().into(), value.clone());
                return self.set.push(Set::Computed { name, value, if_not_empty: *if_not_empty });
            }
        };
        match self.set.last_mut() {
            Some(Set::Fixed(bytes)) => push(bytes, name.as_bytes(), fixed),
            Some(Set::Computed { .. }) | None => {
                let mut bytes = Vec::new();
                push(&mut bytes, name.as_bytes(), fixed);
                self.set.push(Set::Fixed(bytes));
            }
        }
    }

    /// Whether a parameter of the configuration replaces the field of this name.
    fn replaces(&self, name: &[u8]) -> bool {
        self.replaced.iter().any(|replaced| {
            replaced.len() == name.len() && replaced.iter().zip(name).all(|(one, other)| *one == upper(*other))
        })
    }

    /// Appends the parameters; the client's fields only if `passes_fields`.
    pub fn push(&self, exchange: &mut Exchange<'_>, passes_fields: bool, push: Push, out: &mut Vec<u8>) {
        let mut text = exchange.worker.lease_out();
        for set in &self.set {
            match set {
                Set::Fixed(bytes) => out.extend_from_slice(bytes),
                Set::Computed { name, value, if_not_empty } => {
                    text.clear();
                    value.eval(exchange, &mut text);
                    if !(*if_not_empty && text.is_empty()) {
                        push(out, name, &text);
                    }
                }
            }
        }
        self.push_validators(exchange, push, out);
        if passes_fields {
            self.push_fields(exchange, push, &mut text, out);
        }
        exchange.worker.return_out(text);
    }

    /// Appends the validators of the stored answer, unless the configuration sets these parameters.
    fn push_validators(&self, exchange: &Exchange<'_>, push: Push, out: &mut Vec<u8>) {
        let Some((last_modified, etag)) = exchange.cache.validators() else { return };
        if let Some(seconds) = last_modified.filter(|_| !self.replaces(b"If-Modified-Since")) {
            push(out, b"HTTP_IF_MODIFIED_SINCE", &weir_wire::date::http_date(seconds));
        }
        if !etag.is_empty() && !self.replaces(b"If-None-Match") {
            push(out, b"HTTP_IF_NONE_MATCH", etag);
        }
    }

    /// Appends the client's fields; fields of one name become one parameter.
    fn push_fields(&self, exchange: &Exchange<'_>, push: Push, text: &mut Vec<u8>, out: &mut Vec<u8>) {
        let request = &exchange.request;
        let holds_back = exchange.cache.holds_conditions_back();
        let told = otel::injected(exchange);
        let mut name = Vec::with_capacity(64);
        let fields = request.fields();
        for (at, field) in fields.iter().enumerate() {
            let own = request.text(field.name);
            let is_same = |other: &weir_wire::Field| request.text(other.name).eq_ignore_ascii_case(own);
            let is_condition = || field.known.is_some_and(|known| CONDITIONS.contains(&known));
            if self.replaces(own)
                || own.eq_ignore_ascii_case(PROXY)
                || (request.is_copy && field.known == Some(Known::Upgrade))
                || (told.is_some() && otel::is_told(own))
                || (holds_back && is_condition())
                || fields.iter().take(at).any(is_same)
            {
                continue;
            }
            name.clear();
            name.extend_from_slice(PREFIX);
            name.extend(own.iter().map(|byte| upper(*byte)));
            let mut rest = fields.iter().skip(at + 1).filter(|other| is_same(other)).peekable();
            if rest.peek().is_none() {
                push(out, &name, request.text(field.value));
                continue;
            }
            text.clear();
            text.extend_from_slice(request.text(field.value));
            let between: &[u8] = if field.known == Some(Known::Cookie) { b"; " } else { b", " };
            for other in rest {
                text.extend_from_slice(between);
                text.extend_from_slice(request.text(other.value));
            }
            push(out, &name, text);
        }
        if let Some(trace) = told {
            if !self.replaces(b"traceparent") {
                push(out, b"HTTP_TRACEPARENT", &trace.current.text());
            }
            if !trace.state.is_empty() && !self.replaces(b"tracestate") {
                push(out, b"HTTP_TRACESTATE", &trace.state);
            }
        }
    }
}

/// A byte of a field's name as it is in the name of the parameter.
fn upper(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_uppercase() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_http::exchange::Get;
    use weir_http::text::template::Names;

    fn pushed(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        out.extend_from_slice(&[name, b"=", value, b";"].concat());
    }

    #[test]
    fn what_the_file_says_is_compiled_once() {
        let mut names = Names::<Get>::default();
        let mut template = |text: &str| Template::compile(text, &mut names).unwrap_or_default();
        let mut param = |name: &str, value: &str, if_not_empty| Param {
            name: name.to_owned(),
            value: template(value),
            if_not_empty,
        };
        let written = [
            param("A", "1", false),
            param("B", "", false),
            param("C", "", true),
            param("HTTP_X_Y", "", false),
            param("HTTP_", "", false),
            param("D", "$uri", true),
            param("E", "2", false),
        ];
        let host = Template::compile("$host", &mut names).unwrap_or_default();
        let params = Params::compile(&written, host, pushed);
        let shown: Vec<String> = params
            .set
            .iter()
            .map(|set| match set {
                Set::Fixed(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Set::Computed { name, if_not_empty, .. } => {
                    format!("{}?{if_not_empty}", String::from_utf8_lossy(name))
                }
            })
            .collect();
        assert_eq!(shown, ["A=1;B=;HTTP_=;", "D?true", "E=2;", "HTTP_HOST?true"]);
        for (name, expected) in [("X-Y", true), ("x_y", true), ("host", true), ("X-Yz", false), ("Accept", false)] {
            assert_eq!(params.replaces(name.as_bytes()), expected, "{name}");
        }
    }
}
