//! A server by its URL: connections to its addresses, TLS, and one exchange.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weir_net::log::Os;
use weir_net::tls::{self, TlsStream};
use weir_net::{Address, ConnectOptions, Deadline, Stream, Transport};

use crate::answer::FetchedAnswer;
use crate::exchange::{NoAnswer, exchange};

/// How long one address has to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Begins the error of a certificate that weir does not trust, or that is for another host.
pub const DISTRUST: &str = "upstream SSL certificate";

/// A server, by URL.
pub struct Call<'c> {
    /// The URL.
    pub url: &'c url::Url,
    /// The addresses of its host, in the order in which weir tries them.
    pub addresses: &'c [SocketAddr],
    /// Speaks TLS, if the URL asks for it.
    pub tls: Result<&'c tls::Client, String>,
    /// Whether the certificate must be for the host.
    pub verifies: bool,
}

impl Call<'_> {
    /// Connects, sends a request, and reads the answer of at most `bytes_max` bytes with its head.
    ///
    /// # Errors
    /// For the log, in nginx's words. They name the host alone: the rest of a URL may be a secret.
    pub async fn exchange(
        &self,
        request: &[u8],
        bytes_max: usize,
        deadline: &Deadline,
    ) -> Result<FetchedAnswer, String> {
        let transport = self.connect(deadline).await?;
        let host = self.host();
        let answer = exchange(&transport, &mut Vec::new(), request, bytes_max, deadline).await;
        answer.map_err(|failed| match failed {
            NoAnswer::Closed | NoAnswer::Invalid(_) => format!("{host} sent an invalid or incomplete response"),
            failed => format!("{failed} ({host})"),
        })
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    async fn connect(&self, deadline: &Deadline) -> Result<Transport, String> {
        let mut last = format!("{} has no address", self.host());
        for address in self.addresses {
            match connect_to(*address).await {
                Ok(stream) if self.url.scheme() == "http" => return Ok(Transport::from(stream)),
                Ok(stream) => return self.secure(stream, deadline).await,
                Err(error) => last = format!("connect() to {address} failed {}", Os(&error)),
            }
        }
        Err(last)
    }

    /// Speaks TLS, and checks that the certificate is for the host.
    async fn secure(&self, stream: Stream, deadline: &Deadline) -> Result<Transport, String> {
        let host = self.host();
        let client = self.tls.clone()?;
        let begun = TlsStream::to_origin(stream, client, host, None).map_err(|failure| failure.to_string())?;
        begun.handshake(deadline).await.map_err(|error| told(&error))?;
        let is_for = match literal(host) {
            Some(address) => begun.is_for_address(address),
            None => begun.is_for(host),
        };
        if self.verifies && !is_for {
            return Err(format!("{DISTRUST} does not match \"{host}\""));
        }
        Ok(Transport::from(begun))
    }
}

async fn connect_to(address: SocketAddr) -> io::Result<Stream> {
    let deadline = Deadline::new();
    deadline.set(CONNECT_TIMEOUT);
    Stream::connect_by(&Address::Tcp(address), &ConnectOptions::default(), &deadline).await
}

/// Why TLS failed, in nginx's words.
fn told(error: &io::Error) -> String {
    match tls::failure(error) {
        Some(failure) => match failure.distrust {
            Some(complaint) => {
                format!("{DISTRUST} verify error: ({}:{})", complaint.code, complaint.text)
            }
            None => format!("SSL_do_handshake() failed ({failure})"),
        },
        None => format!("SSL_do_handshake() failed {}", Os(error)),
    }
}

/// The address that a URL's host is, if it is one.
pub fn literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_urls_are_known() {
        assert_eq!(literal("[::1]"), Some(IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])));
        assert_eq!(literal("ca.test"), None);
    }
}
