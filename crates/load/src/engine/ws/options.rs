//! Address and options of a virtual user's connection: `config.target`, `config.ws` and the flow's `connect`.

use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

use weir_wire::websocket::DeflateOffer;

use crate::engine::dial::UrlAddress;
use crate::engine::websocket::WebSocketOptions;
use crate::failed::Failed;
use crate::plan::{Connect, Step};
use crate::processor::Context;
use crate::value::{Map, Value};
use crate::vuser::Vuser;

/// Messages shorter than this are not compressed; the default of npm's `ws`.
const DEFLATE_THRESHOLD_BYTES: usize = 1024;

/// An address and the options for connecting.
pub(super) struct WsTarget {
    pub(super) place: Rc<UrlAddress>,
    pub(super) options: Rc<WebSocketOptions>,
}

/// The target of the flow's first step; otherwise the configuration's target.
pub(super) async fn target(vuser: &mut Vuser, flow: &[Step]) -> Result<WsTarget, Failed> {
    let connect = match flow.first() {
        Some(Step::Connect(connect)) => Some(&**connect),
        _ => None,
    };
    match connect {
        None => at(vuser, &vuser.worker.plan.target.clone()),
        Some(Connect::Url(url)) => {
            let url = url.value(&vuser.vars, &*vuser.worker.functions);
            at(vuser, &url.to_text())
        }
        Some(Connect::Options(tree)) => {
            let options = match tree.value(&vuser.vars, &*vuser.worker.functions) {
                Value::Map(options) => options,
                _ => return at(vuser, &vuser.worker.plan.target.clone()),
            };
            let url = options.get("target").map_or_else(|| vuser.worker.plan.target.to_string(), |url| url.to_string());
            let inherited = configured(vuser);
            let headers = options.get("headers").or_else(|| inherited.get("headers")).cloned();
            let protocols = options.get("subprotocols").or_else(|| inherited.get("subprotocols")).cloned();
            let mut all = (*options).clone();
            all.insert("headers".into(), headers.unwrap_or_default());
            all.insert("subprotocols".into(), protocols.unwrap_or_default());
            Ok(WsTarget { place: place(vuser, &url)?, options: made(vuser, &all)? })
        }
        Some(Connect::Function(name)) => by_function(vuser, name).await,
    }
}

/// A place, with the options of the configuration.
fn at(vuser: &Vuser, url: &str) -> Result<WsTarget, Failed> {
    let known = &vuser.worker.ws.places.options;
    let cached = known.borrow().clone();
    let options = match cached {
        Some(options) => options,
        None => {
            let options = made(vuser, &configured(vuser))?;
            if vuser.worker.plan.ws.headers.iter().all(|(_, value)| value.literal().is_some()) {
                known.replace(Some(options.clone()));
            }
            options
        }
    };
    Ok(WsTarget { place: place(vuser, url)?, options })
}

fn place(vuser: &Vuser, url: &str) -> Result<Rc<UrlAddress>, Failed> {
    let mut last = vuser.worker.ws.places.place.borrow_mut();
    if let Some((text, place)) = &*last
        && **text == *url
    {
        return Ok(place.clone());
    }
    let place = Rc::new(UrlAddress::parse(url)?);
    *last = Some((url.into(), place.clone()));
    Ok(place)
}

/// `config.ws` in one map.
fn configured(vuser: &Vuser) -> Map {
    let config = &vuser.worker.plan.ws;
    let mut all = config.options.clone();
    let headers = config.headers.iter();
    let headers: Map = headers
        .map(|(name, value)| (name.as_str().into(), value.value(&vuser.vars, &*vuser.worker.functions)))
        .collect();
    all.insert("headers".into(), Value::from(headers));
    let protocols: Vec<Value> = config.subprotocols.iter().map(|name| Value::from(name.as_str())).collect();
    all.insert("subprotocols".into(), Value::from(protocols));
    all
}

/// `connect: {function: name}`: the function changes its argument. A missing function changes nothing.
async fn by_function(vuser: &mut Vuser, name: &str) -> Result<WsTarget, Failed> {
    let worker = vuser.worker.clone();
    let Some(processor) = worker.processor.as_ref().filter(|processor| processor.has(name)) else {
        return at(vuser, &worker.plan.target.clone());
    };
    let mut options = configured(vuser);
    let protocols = options.shift_remove("subprotocols").unwrap_or_default();
    let mut args = Map::default();
    args.insert("target".into(), Value::Text(worker.plan.target.clone()));
    args.insert("subprotocols".into(), protocols);
    args.insert("options".into(), Value::from(options));
    let mut args = Value::from(args);
    let nothing = Value::Undefined;
    let spec = worker.plan.scenarios.get(vuser.scenario.unwrap_or(usize::MAX)).map(|scenario| &scenario.spec);
    let context = Context {
        wires: None,
        vars: &mut vuser.vars,
        scenario: spec.unwrap_or(&nothing),
        uid: &vuser.uid,
        session: &vuser.session,
        recorder: &worker.recorder,
    };
    processor.ws_connect(name, &mut args, context).await?;
    let member = |name: &str| match &args {
        Value::Map(args) => args.get(name).cloned().unwrap_or_default(),
        _ => Value::Undefined,
    };
    let mut options = match member("options") {
        Value::Map(options) => (*options).clone(),
        _ => Map::default(),
    };
    options.insert("subprotocols".into(), member("subprotocols"));
    Ok(WsTarget { place: place(vuser, &member("target").to_text())?, options: made(vuser, &options)? })
}

/// Options with the run's TLS settings, and with npm's own `rejectUnauthorized` if it is set.
fn made(vuser: &Vuser, map: &Map) -> Result<Rc<WebSocketOptions>, Failed> {
    let mut options = read(map)?;
    options.tls = vuser.worker.tls.with(map)?;
    options.resolver = vuser.worker.http.resolver().clone();
    Ok(Rc::new(options))
}

/// Parses the options of npm's `ws`.
fn read(map: &Map) -> Result<WebSocketOptions, Failed> {
    let mut options = WebSocketOptions::default();
    if let Some(Value::Map(headers)) = map.get("headers") {
        let defined = headers.iter().filter(|(_, value)| **value != Value::Undefined);
        options.headers = defined.map(|(name, value)| (name.to_string(), value.to_text().into_owned())).collect();
    }
    match map.get("subprotocols") {
        Some(Value::List(names)) => options.protocols = names.iter().map(|name| name.to_text().into_owned()).collect(),
        Some(Value::Text(name)) => options.protocols = vec![name.to_string()],
        _ => {}
    }
    let named = options.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
    if let Some((_, names)) = named {
        options.protocols.extend(names.split(',').map(|name| name.trim().to_owned()));
    }
    // To a strict server, a repeated name is an error (RFC 6455 section 4.1).
    let mut seen = HashSet::new();
    options.protocols.retain(|name| seen.insert(name.clone()));
    if let Some(Value::Text(origin)) = map.get("origin") {
        options.headers.push(("Origin".to_owned(), origin.to_string()));
    }
    if let Some(Value::Text(user)) = map.get("auth") {
        options.headers.push(("Authorization".to_owned(), crate::engine::websocket::basic(user)));
    }
    let ms = map.get("handshakeTimeout").map(Value::to_number).filter(|ms| *ms > 0.0);
    options.handshake_timeout = ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1e3).ok());
    if let Some(bytes) = map.get("maxPayload").map(Value::to_number).filter(|bytes| *bytes >= 1.0) {
        options.message_bytes_max = bytes as usize;
    }
    options.deflate = deflate(map.get("perMessageDeflate"));
    if let Some(version) = map.get("protocolVersion").filter(|version| version.to_number() != 13.0) {
        return Err(Failed(format!("Unsupported protocol version: {version} (supported versions: 13)").into()));
    }
    options.bind = address(map.get("localAddress"))?;
    if let Some(Value::Map(proxy)) = map.get("proxy") {
        options.proxy = Some(UrlAddress::parse(&proxy.get("url").map(Value::to_text).unwrap_or_default())?);
        if options.bind.is_none() {
            options.bind = address(proxy.get("localAddress"))?;
        }
    }
    Ok(options)
}

fn address(value: Option<&Value>) -> Result<Option<std::net::IpAddr>, Failed> {
    match value {
        Some(Value::Text(text)) => match text.parse() {
            Ok(address) => Ok(Some(address)),
            Err(_) => Err(Failed(format!("localAddress: {text} is no IP address").into())),
        },
        _ => Ok(None),
    }
}

/// Offered only if the script asks: usually servers decline, and every virtual user would need memory for the window.
fn deflate(value: Option<&Value>) -> Option<(DeflateOffer, usize)> {
    let value = value.filter(|value| value.is_truthy())?;
    let nothing = Map::default();
    let map = match value {
        Value::Map(map) => &**map,
        _ => &nothing,
    };
    let is_true = |name: &str| map.get(name).is_some_and(Value::is_truthy);
    let number = |name: &str| map.get(name).map(Value::to_number).filter(|number| *number >= 0.0);
    let offer = DeflateOffer {
        server_no_context_takeover: is_true("serverNoContextTakeover"),
        client_no_context_takeover: is_true("clientNoContextTakeover"),
        server_max_window_bits: number("serverMaxWindowBits")
            .map(|bits| bits as u8)
            .filter(|bits| (8..=15).contains(bits)),
    };
    Some((offer, number("threshold").map_or(DEFLATE_THRESHOLD_BYTES, |bytes| bytes as usize)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::parse_json;

    fn options(json: &str) -> Result<WebSocketOptions, Failed> {
        match parse_json(json.as_bytes()).unwrap() {
            Value::Map(map) => read(&map),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn subprotocols_come_from_both_places() {
        let read =
            options(r#"{"subprotocols":["json","a"],"headers":{"Sec-WebSocket-Protocol":"b, a, c","x":1}}"#).unwrap();
        assert_eq!(read.protocols, ["json", "a", "b", "c"]);
        assert_eq!(read.headers.last().unwrap(), &("x".to_owned(), "1".to_owned()));
    }

    #[test]
    fn numbers_flags_and_addresses() {
        let read = options(
            r#"{"handshakeTimeout":1500,"maxPayload":9,"perMessageDeflate":{"threshold":7,"serverNoContextTakeover":true},
                "proxy":{"url":"http://127.0.0.1:9095","localAddress":"127.0.0.1"},"origin":"http://o"}"#,
        );
        let read = read.unwrap();
        assert_eq!(read.handshake_timeout, Some(Duration::from_millis(1500)));
        assert_eq!(read.message_bytes_max, 9);
        let (offer, threshold) = read.deflate.unwrap();
        assert_eq!((offer.value().as_str(), threshold), ("permessage-deflate; server_no_context_takeover", 7));
        assert_eq!(read.proxy.unwrap().port, 9095);
        assert_eq!(read.bind, Some("127.0.0.1".parse().unwrap()));
        assert_eq!(read.headers, [("Origin".to_owned(), "http://o".to_owned())]);
        assert_eq!(options(r#"{"perMessageDeflate":false}"#).unwrap().deflate, None);
    }

    #[test]
    fn refusals_are_named() {
        let refusal = |json| options(json).unwrap_err().0.into_owned();
        assert_eq!(refusal(r#"{"protocolVersion":8}"#), "Unsupported protocol version: 8 (supported versions: 13)");
        assert_eq!(refusal(r#"{"localAddress":"here"}"#), "localAddress: here is no IP address");
        assert_eq!(refusal(r#"{"proxy":{"url":"nowhere"}}"#), "Invalid URL: nowhere");
    }
}
