//! Why a connection to an upstream has no TLS.

use std::fmt;
use std::io;

use weir_net::log::Os;
use weir_net::tls::{Failure as TlsFailure, failure};

/// Why there is no TLS connection.
#[derive(Debug)]
pub enum Fault {
    /// The handshake failed.
    Handshake(io::Error),
    /// The certificate is for another name.
    OtherName(Box<str>),
    /// weir cannot load its own certificate; the text is nginx's line.
    Certificate(String),
}

impl fmt::Display for Fault {
    /// nginx's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Certificate(line) => f.write_str(line),
            Fault::OtherName(name) => write!(f, "upstream SSL certificate does not match \"{name}\""),
            Fault::Handshake(error) => match failure(error) {
                None => write!(f, "SSL_do_handshake() failed {}", Os(error)),
                Some(TlsFailure { code: "ECONNRESET", .. }) => f.write_str("peer closed connection in SSL handshake"),
                Some(TlsFailure { distrust: Some(distrust), .. }) => {
                    write!(f, "upstream SSL certificate verify error: ({}:{})", distrust.code, distrust.text)
                }
                Some(failed) => write!(f, "SSL_do_handshake() failed (SSL: {failed})"),
            },
        }
    }
}
