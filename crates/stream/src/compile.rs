//! Compiles the servers of `stream`: their sockets, their handlers, the variables that they read.

use std::any::Any;
use std::sync::Arc;

use weir_http::exchange::conf::Location;
use weir_http::exchange::route::ServerId;
use weir_http::hold::zone_names;
use weir_http::read::build::{Build, Unknown};
use weir_http::read::listens::{self, Draft, Drafted, Grouped, ListenDraft, Objection};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Definition, Names};

use crate::conf::{Content, ProxyTarget, Server, Sockets, Stream};
use crate::family::server::{Own, Written};
use crate::family::{health, upstream};
use crate::part::{Enter, Part, Phase};
use crate::session::Get;
use crate::variable;

/// Takes the servers of a `stream` block; `parts` are those of the crates above. Returns the TCP addresses of each
/// server.
pub fn take(b: &mut Build<'_>, servers: Vec<(Location, Box<dyn Any>)>, parts: &'static [Part]) -> Vec<Drafted> {
    let mut stream = Stream { parts, ..Stream::default() };
    let (mut tcp, mut udp): (Vec<Drafted>, Vec<Drafted>) = Default::default();
    for (place, own) in servers {
        let Ok(own) = own.downcast::<Own>() else { continue };
        let Own { draft: Draft { listens, names, .. }, datagrams, content, zone, at } = *own;
        let id = ServerId(stream.servers.len() as u32);
        b.stand(at);
        let content = match settled(b, content) {
            Ok(content) => content,
            Err(refusal) => {
                b.refuse("proxy_pass", refusal);
                Content::Nothing
            }
        };
        let name = names.first().map(|name| name.shown.clone()).unwrap_or_default();
        let automatic = listens.first().or(datagrams.first()).map(ListenDraft::shown);
        let zone = zone.unwrap_or_else(|| zone_names::automatic(&name, automatic));
        let zone = stream.zones.iter().position(|(known, _)| *known == zone).unwrap_or_else(|| {
            stream.zones.push((zone, Arc::default()));
            stream.zones.len() - 1
        });
        tcp.push((id, listens, names.clone()));
        udp.push((id, datagrams, names));
        let walk = walk(&place, parts);
        stream.servers.push(Server { id, name, place, walk, content, zone });
    }
    health::settle(b, &stream.servers);
    stream.passes = stream.servers.iter().any(|server| matches!(server.content, Content::Pass(_)));
    stream.streams = sockets(b, &tcp);
    stream.datagrams = sockets(b, &udp);
    refuse_plain(b, &stream, &tcp);
    stream.definitions = bind(b, parts);
    crate::declaring(b).server.stream = stream;
    tcp
}

/// The handlers that have something to do, phase by phase.
fn walk(place: &Location, parts: &[Part]) -> Vec<(Phase, Enter)> {
    let handlers = parts.iter().filter_map(|part| part.handler.as_ref());
    let mut walk: Vec<_> = handlers.filter(|(_, active, _)| active(place)).collect();
    walk.sort_by_key(|(phase, ..)| *phase);
    walk.into_iter().map(|(phase, _, enter)| (*phase, *enter)).collect()
}

/// Finds the group of a `proxy_pass`; groups may be declared after their use.
fn settled(b: &mut Build<'_>, content: Written) -> Result<Content, Refusal> {
    Ok(match content {
        Written::Nothing => Content::Nothing,
        Written::Return(text) => Content::Return(text),
        Written::Pass(onward) => Content::Pass(onward),
        Written::ProxyNamed(text) => Content::Proxy(ProxyTarget::Named(text)),
        Written::Proxy(text) => Content::Proxy(ProxyTarget::Group(upstream::of_pass(b, &text)?)),
    })
}

fn sockets(b: &mut Build<'_>, drafts: &[Drafted]) -> Sockets {
    let Grouped { sockets, listens, .. } = listens::listens(drafts, &mut |objection| match objection {
        Objection::Refused(refusal, at) => b.refuse_at("listen", refusal, at),
        Objection::Ignored(text) => b.warn(text, None),
    });
    Sockets { sockets, listens }
}

/// nginx: a server of a socket that speaks TLS needs a certificate; the part of TLS checks its own settings.
fn refuse_plain(b: &mut Build<'_>, stream: &Stream, drafts: &[Drafted]) {
    let speaks_tls = |drafts: &[ListenDraft]| drafts.iter().find(|draft| draft.ssl).map(|draft| draft.at);
    if stream.parts.iter().any(|part| part.secure.is_some()) {
        return;
    }
    if let Some(at) = drafts.iter().find_map(|(_, drafts, _)| speaks_tls(drafts)) {
        let refusal = Refusal::whole("the \"ssl\" parameter requires ngx_stream_ssl_module");
        b.refuse_at("listen", refusal, at);
    }
}

/// Binds the names of the block; a name that nothing defines is a problem.
fn bind(b: &mut Build<'_>, parts: &'static [Part]) -> Vec<Definition<Get>> {
    let Some(names) = b.session_names.take() else { return Vec::new() };
    let names: Box<dyn Any> = names;
    let Ok(names) = names.downcast::<Names<Get>>() else { return Vec::new() };
    let all = crate::family::variables().chain(parts.iter().flat_map(|part| part.variables));
    let (definitions, unknown) = names.bind(|name| variable::built_in(all.clone(), name));
    for (name, at) in unknown {
        let known = b.known.session_variables().iter().copied().filter(|name| !name.ends_with('_'));
        let meant = weir_conf::did_you_mean(&name, known.chain(names.defined())).map(str::to_owned);
        b.unknown.push(Unknown { name, at, meant });
    }
    definitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Next;
    use crate::session::Session;
    use crate::tests::problems;

    fn refuse(_: &mut Session<'_>) -> Next {
        Next::End(403)
    }

    fn go_on(_: &mut Session<'_>) -> Next {
        Next::Continue
    }

    #[test]
    fn handlers_run_in_the_order_of_the_phases_and_only_where_they_have_something_to_do() {
        static PARTS: &[Part] = &[
            Part { handler: Some((Phase::Access, |_| true, refuse)), ..Part::NOTHING },
            Part { handler: Some((Phase::Preaccess, |_| false, go_on)), ..Part::NOTHING },
            Part { handler: Some((Phase::PostAccept, |_| true, go_on)), ..Part::NOTHING },
            Part { handler: Some((Phase::Access, |_| true, go_on)), ..Part::NOTHING },
            Part::NOTHING,
        ];
        let conf = crate::of_text("events {} stream { server { listen 1; return a; } }").0.unwrap();
        let found = walk(&crate::conf::of(&conf).servers[0].place, PARTS);
        let phases: Vec<Phase> = found.iter().map(|(phase, _)| *phase).collect();
        assert_eq!(phases, [Phase::PostAccept, Phase::Access, Phase::Access]);
        let is_refuse = |enter: &Enter| std::ptr::fn_addr_eq(*enter, refuse as Enter);
        assert!(is_refuse(&found[1].1) && !is_refuse(&found[2].1), "parts of one phase keep their order");
    }

    #[test]
    fn a_variable_of_http_is_unknown_in_stream() {
        for (text, words) in [
            ("return $remote_addr;", None),
            ("return $proxy_protocol_tlv_alpn;", None),
            ("set $mine a; return $mine;", None),
            ("return $later; set $later a;", None),
            ("return $uri;", Some("unknown \"uri\" variable")),
            ("set mine a;", Some("invalid variable name \"mine\"")),
            ("set $remote_addr a;", Some("the duplicate \"remote_addr\" variable")),
        ] {
            let told = problems(&format!("server {{ listen 1; {text} }}"));
            assert_eq!(told, words.into_iter().collect::<Vec<_>>(), "{text}");
        }
    }
}
