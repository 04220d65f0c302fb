//! `otel_exporter { … }`.

use std::time::Duration;

use weir_conf::Statement;
use weir_net::answers;
use weir_net::log::Os;
use weir_net::tls::ciphers::{Ciphers, Protocols};
use weir_net::tls::{Client, ClientOptions, OriginOptions, Trust, certificates};

use crate::exchange::trace::Settings;
use crate::exchange::trace::endpoint::Endpoint;
use crate::read::build::Build;
use crate::text::refusal::Refusal;
use crate::text::value;

/// The most spans that may wait for each worker: the exporter allocates their room at start, 16 bytes each.
const SPANS_MAX: u64 = 1 << 20;

/// The most certificate authorities between a trusted one and the collector.
const DEPTH_MAX: usize = 8;

/// The statements of the block, and their number of arguments.
const STATEMENTS: &[(&str, usize)] = &[
    ("endpoint", 1),
    ("trusted_certificate", 1),
    ("header", 2),
    ("interval", 1),
    ("batch_size", 1),
    ("batch_count", 1),
];

/// Reads the block.
pub fn read(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let mut draft = Draft::default();
    for line in statement.children() {
        if let Err(refusal) = draft.line(b, line) {
            b.lose(statement);
            b.refuse_at("otel_exporter", refusal, line.at);
        }
    }
    let Some(endpoint) = draft.endpoint else {
        let is_named = statement.children().iter().any(|line| line.name.text == "endpoint");
        return if is_named { Ok(()) } else { Err(Refusal::whole("\"otel_exporter\" requires \"endpoint\"")) };
    };
    let (size, count) = (draft.batch_size.unwrap_or(512), draft.batch_count.unwrap_or(4));
    if size.saturating_mul(count) > SPANS_MAX {
        return Err(Refusal::whole(format!(
            "batch_size times batch_count is {size} times {count} spans for each worker, which is too much"
        ))
        .weirs_own()
        .todo(format!("the product may be at most {SPANS_MAX}")));
    }
    let tls = if endpoint.is_tls { Some(tls(&draft.trusted, endpoint.path.is_none())?) } else { None };
    b.declared.otel.settings = Some(Settings {
        endpoint,
        headers: draft.headers,
        interval: draft.interval.unwrap_or(Duration::from_secs(5)),
        batch_size: size as usize,
        batch_count: count as usize,
        resource: Vec::new(),
        trusted: draft.trusted,
        tls,
    });
    Ok(())
}

fn tls(trusted: &Option<Vec<u8>>, is_grpc: bool) -> Result<Client, Refusal> {
    let alpn: &[u8] = if is_grpc { b"h2" } else { b"http/1.1" };
    let alpn = vec![alpn.to_vec()];
    let Some(text) = trusted else {
        let options = ClientOptions { alpn, ..ClientOptions::default() };
        return Client::new(&options)
            .map_err(|error| format!("weir cannot use the system's trusted authorities: {error}"))
            .map_err(|what| Refusal::whole(what).weirs_own());
    };
    let bad = |why: String| said("trusted_certificate", &format!("names a file without an authority: {why}"));
    let all = certificates(text).map_err(bad)?;
    if all.is_empty() {
        return Err(bad("the file contains no certificate".to_owned()));
    }
    let trust = Trust::new(all).map_err(|flaw| bad(format!("weir cannot read a certificate: {flaw}")))?;
    let options = OriginOptions {
        protocols: Protocols::default(),
        ciphers: Ciphers::default(),
        trust: Some((trust, DEPTH_MAX)),
        sends_name: true,
        resumes: false,
        alpn,
        key_log: None,
    };
    Client::for_origins(options).map_err(Refusal::whole)
}

#[derive(Default)]
struct Draft {
    endpoint: Option<Endpoint>,
    trusted: Option<Vec<u8>>,
    headers: Vec<(String, String)>,
    interval: Option<Duration>,
    batch_size: Option<u64>,
    batch_count: Option<u64>,
    seen: Vec<&'static str>,
}

impl Draft {
    fn line(&mut self, b: &Build<'_>, line: &Statement) -> Result<(), Refusal> {
        let written = line.name.text.as_str();
        let Some((name, arguments)) = STATEMENTS.iter().find(|(name, _)| *name == written) else {
            let known: Vec<&str> = STATEMENTS.iter().map(|(name, _)| *name).collect();
            return Err(Refusal::whole(format!("unknown directive \"{written}\" in \"otel_exporter\""))
                .todo(format!("its directives are: {}", known.join(", "))));
        };
        if line.args.len() != *arguments || line.block.is_some() {
            return Err(Refusal::whole(format!(
                "invalid number of arguments in \"{name}\" directive of \"otel_exporter\""
            )));
        }
        let is_again = self.seen.contains(name);
        if is_again && *name != "header" {
            return Err(said(name, "is duplicate"));
        }
        self.seen.push(name);
        let text = line.text(0);
        match *name {
            "endpoint" => {
                let read = Endpoint::parse(text).map_err(|why| said(name, &format!("has {why} in \"{text}\"")));
                self.endpoint =
                    Some(read.map_err(|refusal| refusal.todo("write [http://|https://]HOST:PORT[/v1/traces]"))?);
            }
            "trusted_certificate" => {
                let path = b.path(text);
                let read = answers::ask(answers::QuestionKind::File, &path, || std::fs::read(&path));
                let failed = |error| Refusal::whole(format!("failed to open \"{path}\" {}", Os(&error)));
                self.trusted = Some(read.map_err(failed)?);
            }
            "header" => self.headers.push(header(text, line.text(1))?),
            "interval" => {
                let time = value::time_of(text).filter(|time| !time.is_zero());
                self.interval = Some(time.ok_or_else(|| said(name, "invalid value"))?);
            }
            _ => {
                let number = value::number(text).filter(|number| (1..=SPANS_MAX).contains(number));
                let place = if *name == "batch_size" { &mut self.batch_size } else { &mut self.batch_count };
                *place = Some(number.ok_or_else(|| said(name, "invalid value"))?);
            }
        }
        Ok(())
    }
}

fn said(name: &str, what: &str) -> Refusal {
    Refusal::whole(format!("\"{name}\" directive of \"otel_exporter\" {what}"))
}

/// A field of every export; gRPC needs names in lower case, so weir converts them.
fn header(name: &str, value: &str) -> Result<(String, String), Refusal> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(is_letter) {
        return Err(said("header", "has invalid header name"));
    }
    if !value.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) {
        return Err(said("header", "has invalid header value"));
    }
    Ok((name.to_ascii_lowercase(), value.to_owned()))
}
