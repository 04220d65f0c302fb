//! A Redis server as directives name it.

use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_net::process;
use weir_net::tls::Client;
use weir_redis::RedisServer;

use crate::trust;

/// The server of a URL, or of `env:NAME` or `file:PATH` with the URL. `trusted` is the file with the authorities for
/// `rediss://`; empty for those of the machine.
///
/// # Errors
/// The URL or the file is of no use. The message has no password.
pub fn server(b: &mut Build<'_>, text: &str, trusted: &str) -> Result<RedisServer, Refusal> {
    let invalid = |what: &str| Refusal::directive(format!("is invalid: {what}"));
    let url = process::kept_elsewhere(text, |name| b.path(name)).map_err(|what| invalid(&what))?;
    let server = RedisServer::parse(&url).map_err(invalid)?;
    match (server.is_secure(), trusted.is_empty()) {
        (false, true) => Ok(server),
        (false, false) => {
            Err(invalid("trusted_certificate= is for TLS").todo("write rediss://, or leave trusted_certificate= out"))
        }
        (true, _) => {
            let authorities = trust::authorities(b, trusted)?;
            let client = Client::for_servers(Some(authorities), &[]).map_err(|why| invalid(&why))?;
            let text = match trusted {
                "" => Vec::new(),
                file => certificates::read(b, file).map(|text| text.to_vec()).unwrap_or_default(),
            };
            Ok(server.trusting(client, &text))
        }
    }
}
