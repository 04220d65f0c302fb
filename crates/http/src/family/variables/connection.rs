//! Variables of the connection: its two addresses, and the kernel's data about it.

use std::net::{IpAddr, SocketAddr};

use crate::exchange::Exchange;
use crate::text::template::Argument;
use crate::text::texts::{decimal, push_address, push_ip};
use weir_net::SocketAddress;
use weir_net::stream::TcpInfo;
use weir_wire::proxy_protocol;

/// `$remote_addr`.
pub fn remote_addr(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    push_address(exchange.remote(), out);
    true
}

/// `$remote_port`.
pub fn remote_port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    port(exchange.remote(), out)
}

/// `$binary_remote_addr`: 4 or 16 bytes; the text for a unix socket.
pub fn binary_remote_addr(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    match exchange.remote().tcp().map(|tcp| tcp.ip()) {
        Some(IpAddr::V4(ip)) => out.extend_from_slice(&ip.octets()),
        Some(IpAddr::V6(ip)) => out.extend_from_slice(&ip.octets()),
        None => push_address(exchange.remote(), out),
    }
    true
}

/// `$server_addr`.
pub fn server_addr(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    push_address(exchange.client.local(), out);
    true
}

/// `$server_port`.
pub fn server_port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    port(exchange.client.local(), out)
}

/// `$proxy_protocol_addr`.
pub fn proxied_source_addr(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    address_of(exchange.client.proxied.get().map(|proxied| proxied.source), out)
}

/// `$proxy_protocol_port`.
pub fn proxied_source_port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    port_of(exchange.client.proxied.get().map(|proxied| proxied.source), out)
}

/// `$proxy_protocol_server_addr`.
pub fn proxied_destination_addr(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    address_of(exchange.client.proxied.get().map(|proxied| proxied.destination), out)
}

/// `$proxy_protocol_server_port`.
pub fn proxied_destination_port(exchange: &mut Exchange<'_>, _: &Argument, out: &mut Vec<u8>) -> bool {
    port_of(exchange.client.proxied.get().map(|proxied| proxied.destination), out)
}

/// `$proxy_protocol_tlv_…`.
pub fn proxied_tlv(exchange: &mut Exchange<'_>, argument: &Argument, out: &mut Vec<u8>) -> bool {
    let Some(proxied) = exchange.client.proxied.get() else { return false };
    proxy_protocol::tlv(&proxied.tlvs, &argument.name, out)
}

/// `$tcpinfo_…`; not found without a TCP connection.
pub fn tcp_info(exchange: &mut Exchange<'_>, out: &mut Vec<u8>, pick: fn(&TcpInfo) -> u32) -> bool {
    let info = exchange.client.shared.stream.socket().and_then(|socket| socket.tcp_info().ok());
    info.is_some_and(|info| decimal(out, u64::from(pick(&info))))
}

/// Empty, but found, for a unix socket.
fn port(address: &SocketAddress, out: &mut Vec<u8>) -> bool {
    if let Some(tcp) = address.tcp() {
        decimal(out, u64::from(tcp.port()));
    }
    true
}

fn address_of(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    address.map(|address| push_ip(address.ip(), out)).is_some()
}

fn port_of(address: Option<SocketAddr>, out: &mut Vec<u8>) -> bool {
    address.map(|address| decimal(out, u64::from(address.port()))).is_some()
}
