//! The PROXY protocol header before a client's bytes, if `listen … proxy_protocol` asks for one.
//!
//! <https://nginx.org/en/docs/http/ngx_http_core_module.html#listen>. weir keeps its values with the client;
//! `set_real_ip_from` decides whether weir trusts them (`family/realip.rs`).

use std::io;

use weir_http::exchange::conf::Conf;
use weir_http::exchange::line;
use weir_http::hold::client::Proxied;
use weir_http::hold::conn::Conn;
use weir_net::log::Level;
use weir_wire::proxy_protocol::{self, Parsed, ProxyProtocolFault, V2_BYTES_MAX};

/// Reads the header under the deadline that is already set. Returns the client's bytes that arrived with it. Logs the
/// reason and returns `None` if the connection must be closed.
pub async fn read(conn: &Conn, conf: &Conf) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        match conn.stream().try_read_vec(&mut bytes, V2_BYTES_MAX) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                conn.stream().readable(&conn.deadline).await.ok()?;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return None,
        }
        match proxy_protocol::parse(&bytes) {
            Ok(Parsed::Partial) => {}
            Ok(Parsed::Done { length, ends }) => {
                if let Some(ends) = ends {
                    let tlvs = ends.tlvs.of(&bytes).into();
                    let proxied = Proxied { source: ends.source, destination: ends.destination, tlvs };
                    // There is one header per connection, so nothing was set before.
                    let _ = conn.client.proxied.set(Box::new(proxied));
                }
                bytes.drain(..length);
                return Some(bytes);
            }
            Err(fault) => {
                refuse(conn, conf, fault, &bytes);
                return None;
            }
        }
    }
}

fn refuse(conn: &Conn, conf: &Conf, fault: ProxyProtocolFault, bytes: &[u8]) {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    let message = match fault {
        ProxyProtocolFault::Broken | ProxyProtocolFault::Address | ProxyProtocolFault::LineTooLong => {
            format!("{fault}: \"{}\"", line.escape_ascii())
        }
        ProxyProtocolFault::Version(_) | ProxyProtocolFault::TooLarge | ProxyProtocolFault::AddressesCut => {
            fault.to_string()
        }
    };
    line::client_line(conf, &conn.client, Level::Error, format_args!("{message} while reading PROXY protocol"));
}
