//! `stream`, `server`, `listen`, `server_name`: the addresses and names of a server.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_core_module.html#listen>

use std::any::Any;

use weir_conf::{At, Statement};
use weir_http::exchange::route::{Name, NameKind};
use weir_http::family::server::{addresses, plain_listen, read_name, socket_parameter};
use weir_http::hold::zone_names::NAME_BYTES_MAX;
use weir_http::read::build::{Build, Kind, Scope};
use weir_http::read::directive::{Arity, Directive, MAIN, NONE, ONE, STREAM, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::read::listens::{Draft, ListenDraft};
use weir_http::text::refusal::Refusal;
use weir_http::text::template::{Names, Template};
use weir_http::text::value;
use weir_net::Address;

use crate::conf::{Onward, Stream};
use crate::session::Get;

weir_http::settings! {}

/// The compiled block.
#[derive(Default)]
pub struct Declared {
    /// Its servers, sockets and variables.
    pub stream: Stream,
}

/// The data of a server while weir reads the file.
pub struct Own {
    /// Its TCP and unix sockets, and its names.
    pub draft: Draft,
    /// Its UDP sockets.
    pub datagrams: Vec<ListenDraft>,
    /// Its answer to a session.
    pub content: Written,
    /// `status_zone`.
    pub zone: Option<String>,
    /// Its place.
    pub at: At,
}

/// The answer of a server to a session, as written.
pub enum Written {
    /// Nothing yet.
    Nothing,
    /// `proxy_pass` without variables.
    Proxy(String),
    /// `proxy_pass` with variables.
    ProxyNamed(Template),
    /// `return`.
    Return(Template),
    /// `pass`.
    Pass(Onward),
}

/// The family.
pub static FAMILY: Family = Family::new(
    "stream",
    &[
        Directive::new("stream", MAIN, NONE, "Holds the servers for TCP and UDP.", stream).block(),
        Directive::new("server", STREAM, NONE, "Sets configuration for a server.", server).many().block(),
        Directive::new(
            "listen",
            STREAM_SERVER,
            Arity::AtLeast(1),
            "Sets the address and port, or the unix socket, on which the server accepts sessions.",
            listen,
        )
        .many(),
        Directive::new(
            "server_name",
            STREAM_SERVER,
            Arity::AtLeast(1),
            "Sets names of a server, for TLS: exact, with a wildcard at either end, or regular expressions.",
            server_name,
        )
        .many()
        .default("\"\""),
        Directive::new(
            "status_zone",
            STREAM_SERVER,
            ONE,
            "Names the zone that counts the sessions. By default it has the server's first name, or its first address.",
            status_zone,
        ),
        Directive::new(
            "server_names_hash_bucket_size",
            STREAM,
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        ),
        Directive::new(
            "server_names_hash_max_size",
            STREAM,
            ONE,
            "No effect: weir sizes its tables itself.",
            |_, s| value::first_number(s).map(drop),
        ),
    ],
)
.adopt(|new, old| {
    let before = &crate::declared(old).server.stream.zones;
    for (name, counts) in &mut crate::declared_mut(new).server.stream.zones {
        if let Some((_, old)) = before.iter().find(|(known, _)| known == name) {
            *counts = old.clone();
        }
    }
    Ok(())
});

fn status_zone(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let name = statement.text(0).to_owned();
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Refusal::whole(format!("invalid zone name \"{name}\""))
            .todo(format!("write a name of 1 to {NAME_BYTES_MAX} bytes, without control characters")));
    }
    if let Some(own) = own_of(&mut b.scope().kind) {
        own.zone = Some(name);
    }
    Ok(())
}

fn stream(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    b.session_names = Some(Box::new(Names::<Get>::default()));
    let scope = b.block(Scope::new(Kind::Plain, STREAM, b.at()), statement)?;
    b.scope().children.push(scope);
    Ok(())
}

fn server(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let at = b.at();
    let own = Own { draft: Draft::default(), datagrams: Vec::new(), content: Written::Nothing, zone: None, at };
    let mut scope = b.block(Scope::new(Kind::Other(Box::new(own)), STREAM_SERVER, at), statement)?;
    if let Some(own) = own_of(&mut scope.kind) {
        if own.draft.listens.is_empty() && own.datagrams.is_empty() && !b.has_lost("server", "") {
            return Err(Refusal::whole("no \"listen\" is defined for server")
                .todo("add: listen PORT;")
                .needs("listen", ""));
        }
        if own.draft.names.is_empty() {
            own.draft.names.push(Name { shown: String::new(), kinds: vec![NameKind::Exact(String::new())] });
        }
    }
    b.scope().children.push(scope);
    Ok(())
}

fn own_of(kind: &mut Kind) -> Option<&mut Own> {
    let Kind::Other(own) = kind else { return None };
    let own: &mut dyn Any = own.as_mut();
    own.downcast_mut()
}

/// Sets what the server does with a session; the last statement wins, as in nginx.
pub fn serve_by(b: &mut Build<'_>, content: Written) {
    if let Some(own) = own_of(&mut b.scope().kind) {
        own.content = content;
    }
}

fn listen(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let at = b.at();
    let addresses = addresses(b, statement.text(0), None)?;
    let mut draft = plain_listen(Address::Unix(std::path::PathBuf::new()), at);
    let mut is_datagram = false;
    // The first parameter that UDP does not have.
    let mut tcp_only: Option<String> = None;
    for word in statement.args.iter().skip(1) {
        let text = word.text.as_str();
        let key = text.split_once('=').map_or(text, |(key, _)| key);
        match text {
            "udp" => is_datagram = true,
            "default_server" => draft.is_default = true,
            "proxy_protocol" => draft.proxy_protocol = true,
            "ssl" => draft.ssl = true,
            "bind" => (draft.sets_options, draft.binds) = (true, true),
            _ => {
                socket_parameter(&mut draft.options, text)?;
                (draft.sets_options, draft.binds) = (true, true);
            }
        }
        let is_tcp_only =
            matches!(key, "fastopen" | "backlog" | "deferred" | "ssl" | "so_keepalive" | "proxy_protocol");
        if is_tcp_only && tcp_only.is_none() {
            tcp_only = Some(key.to_owned());
        }
    }
    if let (true, Some(key)) = (is_datagram, tcp_only) {
        return Err(Refusal::directive(format!("\"{key}\" parameter is incompatible with \"udp\"")));
    }
    for address in addresses {
        let listen = ListenDraft { address, ..draft.clone() };
        if is_datagram && listen.address.is_unix() {
            return Err(
                Refusal::whole(format!("weir has no UDP on unix sockets: \"{}\"", statement.text(0))).weirs_own()
            );
        }
        let Some(own) = own_of(&mut b.scope().kind) else { continue };
        let known = if is_datagram { &mut own.datagrams } else { &mut own.draft.listens };
        if known.iter().any(|known| known.address == listen.address) {
            return Err(Refusal::whole(format!("a duplicate listen {}", listen.shown())));
        }
        known.push(listen);
    }
    Ok(())
}

fn server_name(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    for word in &statement.args {
        let name = read_name(b, &word.text)?;
        if let Some(own) = own_of(&mut b.scope().kind) {
            own.draft.names.push(name);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use crate::of_text;

    fn problems(server: &str) -> Vec<String> {
        of_text(&format!("events {{}}\nstream {{ server {{ {server} }} }}")).1
    }

    #[test]
    fn sockets_are_those_of_all_servers() {
        let text = "events {} stream { server { listen 127.0.0.1:1; listen 127.0.0.1:2 udp; return a; } \
                    server { listen 127.0.0.1:3 backlog=5; return b; } }";
        let (conf, problems) = of_text(text);
        assert_eq!(problems, [""; 0]);
        let conf = conf.unwrap();
        let stream = crate::conf::of(&conf);
        assert_eq!((stream.servers.len(), stream.streams.sockets.len(), stream.datagrams.sockets.len()), (2, 2, 1));
        assert_eq!(stream.streams.sockets[1].options.backlog, 5);
    }

    #[test]
    fn a_name_that_resolves_twice_to_one_address_is_listened_on_once() {
        for server in ["listen twice.test:1; return a;", "listen twice.test:1-3 udp; return a;"] {
            assert_eq!(problems(server), [""; 0], "{server}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (server, words) in [
            ("return a;", "no \"listen\" is defined for server"),
            ("listen 127.0.0.1;", "no port in \"127.0.0.1\" of the \"listen\" directive"),
            ("listen 1 udp ssl;", "\"listen\" directive \"ssl\" parameter is incompatible with \"udp\""),
            ("listen 1 http2;", "invalid parameter \"http2\""),
            ("listen 1; listen 1;", "a duplicate listen 0.0.0.0:1"),
            ("listen 1; return $nothing;", "unknown \"nothing\" variable"),
            ("listen 1; proxy_pass 127.0.0.1;", "no port in upstream \"127.0.0.1\""),
            ("listen 1; root /a;", "\"root\" directive is not allowed here"),
        ] {
            assert_eq!(problems(server), [words], "{server}");
        }
    }

    #[test]
    fn a_listen_has_its_parameters_or_is_refused() {
        for (listen, words) in [
            ("127.0.0.1:1 backlog=0", "invalid backlog \"0\""),
            ("127.0.0.1:1 udp backlog=5", "\"listen\" directive \"backlog\" parameter is incompatible with \"udp\""),
            (
                "127.0.0.1:1 udp so_keepalive=on",
                "\"listen\" directive \"so_keepalive\" parameter is incompatible with \"udp\"",
            ),
            (
                "127.0.0.1:1 udp proxy_protocol",
                "\"listen\" directive \"proxy_protocol\" parameter is incompatible with \"udp\"",
            ),
            ("unix:/a udp", "weir has no UDP on unix sockets: \"unix:/a\""),
            ("127.0.0.1:1 ssl", "the \"ssl\" parameter requires ngx_stream_ssl_module"),
            ("127.0.0.1:x", "invalid port in \"127.0.0.1:x\" of the \"listen\" directive"),
        ] {
            assert_eq!(problems(&format!("listen {listen}; return a;")), [words], "{listen}");
        }
        let text = "events {} stream { server { listen 127.0.0.1:1-3; listen unix:/a proxy_protocol; return a; } \
                    server { listen 127.0.0.1:2 default_server; server_name b; return b; } }";
        let (conf, told) = of_text(text);
        assert_eq!(told, [""; 0]);
        let conf = conf.unwrap();
        let stream = crate::conf::of(&conf);
        let shown: Vec<_> = stream
            .streams
            .sockets
            .iter()
            .map(|socket| {
                let listen = &stream.streams.listens[socket.listen_for(None)];
                (socket.address.to_string(), listen.hosts.default_server().0, listen.proxy_protocol)
            })
            .collect();
        let expected =
            [("127.0.0.1:1", 0, false), ("127.0.0.1:2", 1, false), ("127.0.0.1:3", 0, false), ("unix:/a", 0, true)];
        assert_eq!(shown, expected.map(|(address, server, proxied)| (address.to_owned(), server, proxied)));
    }

    #[test]
    fn servers_with_one_zone_count_together() {
        let text = "events {} stream { server { listen 1; server_name a b; return a; } \
                    server { listen 2; server_name a; return b; } server { listen 127.0.0.1:3; return c; } \
                    server { listen 4; status_zone z; return d; } }";
        let conf = of_text(text).0.unwrap();
        let stream = crate::conf::of(&conf);
        let names: Vec<&str> = stream.servers.iter().map(|server| &*stream.zones[server.zone].0).collect();
        assert_eq!(names, ["a", "a", "127.0.0.1:3", "z"]);
        assert_eq!(stream.zones.len(), 3);
        assert_eq!(problems("listen 1; status_zone \"\"; return a;"), ["invalid zone name \"\""]);
    }

    #[test]
    fn the_last_statement_about_the_answer_wins() {
        use crate::conf::Content;
        for (server, expected) in [
            ("", "nothing"),
            ("return a; proxy_pass 127.0.0.1:1;", "group"),
            ("proxy_pass 127.0.0.1:1; return a;", "text"),
            ("return a; proxy_pass $remote_addr:1;", "named"),
            ("return a; pass 127.0.0.1:1;", "pass"),
        ] {
            let (conf, told) = of_text(&format!("events {{}} stream {{ server {{ listen 1; {server} }} }}"));
            assert_eq!(told, [""; 0], "{server}");
            let conf = conf.unwrap();
            let found = match &crate::conf::of(&conf).servers[0].content {
                Content::Nothing => "nothing",
                Content::Return(_) => "text",
                Content::Pass(_) => "pass",
                Content::Proxy(crate::conf::ProxyTarget::Group(_)) => "group",
                Content::Proxy(crate::conf::ProxyTarget::Named(_)) => "named",
            };
            assert_eq!((found, crate::conf::of(&conf).passes), (expected, expected == "pass"), "{server}");
        }
    }
}
