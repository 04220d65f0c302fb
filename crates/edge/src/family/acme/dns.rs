//! `dns_update`, and the address of weir's own DNS server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use weir_acme::SharedKey;
use weir_conf::Statement;
use weir_http::read::build::Build;
use weir_http::text::refusal::Refusal;
use weir_http::text::value;
use weir_net::process;
use weir_wire::dns::Name;

use crate::acme::publish::Update;

/// The time to live of a record without `ttl=`; seconds.
const TTL_S: u32 = 60;

/// Reads `ADDRESS[:PORT] zone=NAME [key=NAME] [algorithm=hmac-sha256] [secret=BASE64|file:PATH|env:NAME] [ttl=TIME]`.
pub fn update(b: &Build<'_>, line: &Statement) -> Result<Update, Refusal> {
    let bad = |word: &str| Refusal::whole(format!("\"dns_update\" directive \"invalid parameter {word}\""));
    let server = line.text(0);
    let server = address(server, 53)
        .ok_or_else(|| bad(server).todo("write the address of a DNS server, such as 192.0.2.1:53"))?;
    let (mut zone, mut key, mut secret, mut algorithm, mut ttl_s) = (None, None, None, "hmac-sha256", TTL_S);
    for word in line.args.iter().skip(1).map(|word| word.text.as_str()) {
        match word.split_once('=') {
            Some(("zone", text)) => zone = Some(Name::of_text(text).map_err(|_| bad(word))?),
            Some(("key", text)) => key = Some(text),
            Some(("secret", text)) => {
                let read = process::kept_elsewhere(text, |name| b.path(name));
                secret = Some(read.map_err(|why| Refusal::whole(format!("dns_update: secret: {why}")))?);
            }
            Some(("algorithm", text)) => algorithm = text,
            Some(("ttl", text)) => {
                let time = value::long_time_of(text).and_then(|time| u32::try_from(time.as_secs()).ok());
                ttl_s = time.ok_or_else(|| bad(word))?;
            }
            _ => return Err(bad(word).todo("the parameters are zone=, key=, algorithm=, secret= and ttl=")),
        }
    }
    let zone = zone.ok_or_else(|| Refusal::whole("\"dns_update\" must have \"zone\" parameter"))?;
    let key = match (key, secret) {
        (None, None) => None,
        (Some(name), Some(secret)) => {
            let refused = |why: &str| Refusal::whole(format!("dns_update: {why}"));
            let key = SharedKey::new(name, algorithm, &secret).map_err(refused)?;
            let named = Name::of_text(name).map_err(|_| bad(name))?;
            let algorithm = Name::of_text(key.algorithm).map_err(|_| bad(algorithm))?;
            Some((key, named, algorithm))
        }
        _ => return Err(Refusal::whole("\"dns_update\" must have both \"key\" and \"secret\" parameters, or neither")),
    };
    Ok(Update { server, zone, key, ttl_s })
}

/// `PORT`, `ADDRESS` or `ADDRESS:PORT`.
pub fn address(text: &str, port: u16) -> Option<SocketAddr> {
    if let Ok(port) = text.parse::<u16>() {
        return (port > 0).then_some(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port));
    }
    if let Ok(whole) = text.parse::<SocketAddr>() {
        return (whole.port() > 0).then_some(whole);
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    Some(SocketAddr::new(bare.parse().ok()?, port))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_are_read() {
        let shown = |text: &str| address(text, 53).map(|address| address.to_string());
        for (text, wanted) in [
            ("5353", Some("0.0.0.0:5353")),
            ("192.0.2.1", Some("192.0.2.1:53")),
            ("192.0.2.1:54", Some("192.0.2.1:54")),
            ("[::1]", Some("[::1]:53")),
            ("[::1]:54", Some("[::1]:54")),
            ("ns.test", None),
            ("0", None),
            ("192.0.2.1:0", None),
        ] {
            assert_eq!(shown(text).as_deref(), wanted, "{text}");
        }
    }
}
