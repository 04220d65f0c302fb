//! `grpc_pass` and its family: the counterpart of `proxy_…` for gRPC.
//!
//! gRPC is HTTP/2 with trailers and bodies that go both ways at once. So its settings are `proxy`'s, and nginx fixes a
//! few of them: see [`Values::grpc`](crate::family::Values). Where `grpc_pass` answers, these settings replace
//! `proxy`'s, so the code that talks to upstreams does not see a difference.
//! <https://nginx.org/en/docs/http/ngx_http_grpc_module.html>

use std::sync::Arc;

use weir_conf::Statement;
use weir_http::build::{Build, Scope};
use weir_http::conf::Location;
use weir_http::directive::{LOCATION, LOCATION_IF};
use weir_http::families::Family;
use weir_http::refusal::Refusal;
use weir_http::variable::Variable;
use weir_wire::Version;

use crate::family::proxy::pass::{Pass, parse_grpc_url};
use crate::family::proxy::{self, passing, rewrite};
use crate::family::{cache, proxy_ssl, store};

pub use crate::family::proxy::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "grpc",
    passing!(
        grpc,
        "grpc",
        [Directive::new(
            "grpc_pass",
            LOCATION.or(LOCATION_IF),
            ONE,
            "The server for gRPC requests of this location: [grpc://]HOST:PORT, unix:PATH or an upstream; grpcs:// \
             uses TLS.",
            pass
        ),]
    ),
)
.variables(&[Variable::without_answer("grpc_internal_trailers", |ex, _, out| {
    let takes = proxy::request::takes_trailers(ex);
    if takes {
        out.extend_from_slice(b"trailers");
    }
    takes
})])
.finish(finish)
.settle(settle);

/// Where `grpc_pass` answers, its settings replace those of `proxy_pass`, which nothing in this location reads. gRPC
/// is neither cached nor stored.
fn settle(location: &mut Location) {
    let values = crate::values_mut(location);
    if values.grpc.pass.is_some() {
        values.proxy = fixed(values.grpc.clone());
        values.proxy_ssl = values.grpc_ssl.clone();
        values.cache.zone = cache::Use::Off;
        values.store.store = store::Store::Off;
        values.slice.size = 0;
    }
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let url = statement.text(0);
    let pass = if url.contains('$') {
        let parsed = Pass { url: url.to_owned(), template: Some(b.template(url)?), ..parse_grpc_url("none")? };
        Pass { host: String::new(), ..parsed }
    } else {
        parse_grpc_url(url)?
    };
    b.scope().handler = Some(proxy::enter);
    crate::settings(b).grpc.pass = Some(Some(Arc::new(pass)));
    Ok(())
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let at = scope.place("grpc_pass", 0);
    proxy::compile(b, &mut crate::written_mut(scope).grpc, "grpc_pass", at, true);
    let mut settings = std::mem::take(&mut crate::written_mut(scope).grpc_ssl);
    if let Some(Some(pass)) = &crate::written(scope).grpc.pass {
        proxy_ssl::compile_block(b, &mut settings, (pass, true), "grpc_pass", scope);
    }
    crate::written_mut(scope).grpc_ssl = settings;
}

/// The settings with the values that nginx fixes for gRPC: no buffering in either direction.
fn fixed(values: Values) -> Values {
    Values {
        version: Version::Http2,
        pass_trailers: true,
        buffering: false,
        request_buffering: false,
        max_temp_file: Some(0),
        redirect: rewrite::Redirects::Off,
        ..values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_grpc_goes() {
        let read = |url: &str| parse_grpc_url(url).ok().map(|pass| (pass.url, pass.host, pass.is_tls));
        let is = |url: &str, host: &str, is_tls| Some((url.to_owned(), host.to_owned(), is_tls));
        assert_eq!(read("127.0.0.1:8081"), is("127.0.0.1:8081", "127.0.0.1:8081", false));
        assert_eq!(read("grpc://u"), is("u", "u", false));
        assert_eq!(read("GRPCS://u:1"), is("u:1", "u:1", true));
        assert_eq!(read("unix:/a/b"), is("unix:/a/b", "localhost", false));
        for wrong in ["", "grpc://", "http://a/", "grpc://a/b"] {
            assert!(read(wrong).is_none(), "{wrong}");
        }
    }
}
