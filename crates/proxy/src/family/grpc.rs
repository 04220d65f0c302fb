//! `grpc_pass` and its family: the counterpart of `proxy_…` for gRPC.
//!
//! gRPC is HTTP/2 with trailers and bodies that go both ways at once. So its settings are `proxy`'s, and nginx fixes a
//! few of them: see [`Values::grpc`](crate::family::Values). Where `grpc_pass` answers, these settings replace
//! `proxy`'s, so the code that talks to upstreams does not see a difference.
//! <https://nginx.org/en/docs/http/ngx_http_grpc_module.html>

use weir_conf::Statement;
use weir_http::exchange::conf::Location;
use weir_http::exchange::variable::Variable;
use weir_http::read::build::{Build, Scope};
use weir_http::read::directive::{Directive, LOCATION, LOCATION_IF, ONE, join};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_wire::Version;

use crate::family::proxy::pass::{Pass, Scheme};
use crate::family::proxy::shared::{heads, set_header, talking};
use crate::family::proxy::{self, rewrite};
use crate::family::{cache, proxy_ssl, store};
use crate::protocol::Protocol;

pub use crate::family::proxy::{Settings, Values};

/// Nothing is declared for all of `http`.
pub type Declared = ();

const TALKING: &[Directive] = talking!("grpc", grpc);
const HEADS: &[Directive] = heads!("grpc", |_| true, grpc);
const OWN: &[Directive] = &[
    set_header!("grpc", grpc),
    Directive::new(
        "grpc_pass",
        LOCATION.or(LOCATION_IF),
        ONE,
        "The server for gRPC requests of this location: [grpc://]HOST:PORT, unix:PATH or an upstream; grpcs:// uses TLS.",
        pass,
    ),
];
static ALL: [Directive; TALKING.len() + HEADS.len() + OWN.len()] = join(&[TALKING, HEADS, OWN]);

/// The family.
pub static FAMILY: Family = Family::new("grpc", &ALL)
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
        values.cache.zone = cache::facts::Use::Off;
        values.store.store = store::Store::Off;
        values.slice.size = 0;
    }
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let url = statement.text(0);
    let pass = if url.contains('$') {
        Pass::computed(url, b.template(url)?, Scheme::Grpc)
    } else {
        Pass::parse(Scheme::Grpc, url)?
    };
    b.scope().pass(proxy::enter);
    proxy::claim(b, |all| &mut all.grpc, pass);
    Ok(())
}

fn finish(b: &mut Build<'_>, scope: &mut Scope) {
    let at = scope.place("grpc_pass", 0);
    let mut settings = std::mem::take(&mut crate::written_mut(scope).grpc);
    proxy::compile(b, &mut settings, Scheme::Grpc, at);
    crate::written_mut(scope).grpc = settings;
    let mut settings = std::mem::take(&mut crate::written_mut(scope).grpc_ssl);
    if let Some(Some(pass)) = &crate::written(scope).grpc.pass {
        proxy_ssl::compile_block(b, &mut settings, (pass, true), scope);
    }
    crate::written_mut(scope).grpc_ssl = settings;
}

/// The settings with the values that nginx fixes for gRPC: no buffering in either direction.
fn fixed(values: Values) -> Values {
    Values {
        version: Version::Http2,
        protocol: Protocol::Http2,
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
        let read = |url: &str| Pass::parse(Scheme::Grpc, url).ok().map(|pass| (pass.url, pass.host, pass.is_tls));
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
