//! Whom weir trusts as a server that it asks itself.

use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_net::tls::ciphers::{Ciphers, Protocols};
use weir_net::tls::{self, OriginOptions, Trust};

/// How many authorities may stand between a trusted one and the server.
const DEPTH: usize = 10;

/// The authorities that weir trusts: those of a file, or those of the machine if it is empty.
///
/// # Errors
/// The file cannot be read, or it contains no certificate.
pub fn authorities(b: &mut Build<'_>, file: &str) -> Result<Trust, Refusal> {
    if file.is_empty() {
        return Ok(of_machine());
    }
    let failed =
        |path: &str, why: &str| Refusal::whole(format!("SSL_CTX_load_verify_locations(\"{path}\") failed {why}"));
    let text = certificates::read(b, file).map_err(|(path, error)| failed(&path, &error))?;
    let all = tls::certificates(&text).map_err(|why| failed(file, &format!("({why})")))?;
    if all.is_empty() {
        return Err(failed(file, "(the file contains no certificate)"));
    }
    Trust::new(all).map_err(|flaw| failed(file, &format!("({flaw})")))
}

/// The authorities of the machine.
pub fn of_machine() -> Trust {
    // A certificate that weir cannot read is not used.
    let all = tls::system_authorities().into_iter().filter(|der| Trust::new([der.clone()]).is_ok());
    Trust::new(all).unwrap_or_default()
}

/// Speaks TLS with such a server; without `trust` it accepts any certificate.
///
/// # Errors
/// TLS cannot be set up.
pub fn client(trust: Option<Trust>) -> Result<tls::Client, String> {
    tls::Client::for_origins(OriginOptions {
        protocols: Protocols::default(),
        ciphers: Ciphers::default(),
        trust: trust.map(|trust| (trust, DEPTH)),
        sends_name: true,
        resumes: false,
        alpn: vec![b"http/1.1".to_vec()],
        key_log: None,
    })
}
