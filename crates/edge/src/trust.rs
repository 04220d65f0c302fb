//! Whom weir trusts as a server that it asks itself.

use weir_http::family::certificates;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_net::tls::{self, Trust};

/// The authorities that weir trusts: those of a file, or those of the machine if it is empty.
///
/// # Errors
/// The file cannot be read, or it contains no certificate.
pub fn authorities(b: &mut Build<'_>, file: &str) -> Result<Trust, Refusal> {
    if file.is_empty() {
        return Ok(Trust::of_machine());
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

/// The protocol of a server that speaks HTTP.
pub const HTTP: &[&[u8]] = &[b"http/1.1"];
