//! `ssi`: commands in a body (Server Side Includes), with which a page contains the answers of other locations.
//!
//! <https://nginx.org/en/docs/http/ngx_http_ssi_module.html>. `scan` finds the commands, `commands` runs them, `text`
//! replaces variables in their parameters. Unlike nginx, weir bounds the memory of variables and blocks, and it passes on
//! the beginning of a command with which a body ends.

mod commands;
mod condition;
mod date;
mod scan;
mod shared;
mod text;

use std::sync::Arc;

use commands::Reader;
use weir_conf::Statement;
use weir_http::exchange::Exchange;
use weir_http::exchange::composing;
use weir_http::exchange::variable::Variable;
use weir_http::read::build::Build;
use weir_http::read::directive::{Arity, Contexts, Directive, HSL, LOCATION_IF, ONE};
use weir_http::read::families::Family;
use weir_http::read::media_types;
use weir_http::send::altered;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_wire::Known;

weir_http::settings! {
    /// `ssi`.
    enabled: bool = false,
    /// `ssi_types`, lower case; empty for all.
    types: Arc<Vec<String>> = Arc::new(vec![media_types::HTML.to_owned()]),
    /// `ssi_silent_errors`.
    silent_errors: bool = false,
    /// `ssi_value_length`.
    value_length: u64 = 255,
    /// `ssi_last_modified`.
    last_modified: bool = false,
}

/// Nothing is declared for all of `http`.
pub type Declared = ();

const HSLI: Contexts = HSL.or(LOCATION_IF);

/// The family.
pub static FAMILY: Family = Family::new(
    "ssi",
    &[
        Directive::new("ssi", HSLI, Arity::Flag, "Runs the SSI commands in bodies.", |b, s| {
            crate::settings(b).ssi.enabled = Some(value::flag(s)?);
            Ok(())
        })
        .default("off"),
        Directive::new(
            "ssi_types",
            HSL,
            Arity::AtLeast(1),
            "The media types besides text/html in whose bodies SSI commands run; * for all.",
            types,
        )
        .default("text/html")
        .many(),
        Directive::new(
            "ssi_silent_errors",
            HSL,
            Arity::Flag,
            "Leaves out the text that stands for a command that failed.",
            |b, s| {
                crate::settings(b).ssi.silent_errors = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::new("ssi_value_length", HSL, ONE, "The longest value of a parameter.", |b, s| {
            crate::settings(b).ssi.value_length = Some(value::size(s)?);
            Ok(())
        })
        .default("255"),
        Directive::new(
            "ssi_last_modified",
            HSL,
            Arity::Flag,
            "Keeps Last-Modified and the entity tag of bodies in which SSI commands run.",
            |b, s| {
                crate::settings(b).ssi.last_modified = Some(value::flag(s)?);
                Ok(())
            },
        )
        .default("off"),
        Directive::idle("ssi_min_file_chunk", HSL, ONE, "1k", "weir manages this memory itself", |_, s| {
            value::size(s).map(drop)
        }),
        Directive::idle(
            "ssi_ignore_recycled_buffers",
            HSL,
            Arity::Flag,
            "off",
            "weir manages this memory itself",
            |_, s| value::flag(s).map(drop),
        ),
    ],
)
.variables(&[
    Variable::without_answer("date_local", |exchange, _, out| date::push(exchange, true, out)),
    Variable::without_answer("date_gmt", |exchange, _, out| date::push(exchange, false, out)),
])
.filter(|location| crate::values(location).ssi.enabled, filter)
.inner();

fn types(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let earlier = crate::settings(b).ssi.types.clone();
    crate::settings(b).ssi.types = Some(media_types::read(b, statement, earlier));
    Ok(())
}

fn filter(exchange: &mut Exchange<'_>) {
    let settings = &crate::values(exchange.location).ssi;
    let is_main = !exchange.flags.is_subrequest;
    let response = &exchange.response;
    if response.has_no_bytes() || !media_types::is_listed(&settings.types, &response.content_type) {
        return;
    }
    let reader = Reader::new(exchange, settings.value_length, settings.silent_errors);
    if !composing::compose(exchange, |composed| composed.reader = Some(Box::new(reader))) {
        return;
    }
    let response = &mut exchange.response;
    if is_main && settings.last_modified {
        altered::weaken_etag(response);
    } else if is_main {
        response.last_modified = None;
        response.fields.remove(Known::LastModified);
        response.fields.remove(Known::Etag);
    }
}
