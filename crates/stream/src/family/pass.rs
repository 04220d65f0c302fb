//! `pass`: a server that hands its connections to another listening socket of weir, of `stream` or of `http`.
//!
//! <https://nginx.org/en/docs/stream/ngx_stream_pass_module.html>

use weir_conf::Statement;
use weir_http::read::authority::{literal_address, split_host_port};
use weir_http::read::build::Build;
use weir_http::read::directive::{Directive, ONE, STREAM_SERVER};
use weir_http::read::families::Family;
use weir_http::text::refusal::Refusal;
use weir_net::Address;

use super::server::{Written, serve_by};
use crate::conf::Onward;

weir_http::settings! {}

/// Nothing is declared for all of `stream`.
pub type Declared = ();

/// The family.
pub static FAMILY: Family = Family::new(
    "stream_pass",
    &[Directive::new(
        "pass",
        STREAM_SERVER,
        ONE,
        "Hands connections to another listening socket of weir, of stream or of http; the text may have variables.",
        pass,
    )],
);

/// Why a text is not the address of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text breaks the grammar: nginx's words.
    Malformed(&'static str),
    /// The host is a name.
    NoAddresses,
    /// The port is missing.
    NoPort,
}

fn pass(b: &mut Build<'_>, statement: &Statement) -> Result<(), Refusal> {
    let text = statement.text(0);
    let template = b.template(text)?;
    let onward = match template.literal() {
        None => Onward::Named(template),
        Some(_) => Onward::To(address(text).map_err(|fault| match fault {
            Fault::Malformed(words) => Refusal::whole(format!("{words} in \"{text}\" of the \"pass\" directive")),
            Fault::NoAddresses => Refusal::directive("has no addresses").todo("write an address in place of the name"),
            Fault::NoPort => Refusal::directive("has no port").todo("write ADDRESS:PORT, as in listen"),
        })?),
    };
    serve_by(b, Written::Pass(onward));
    Ok(())
}

/// The address in `IP:PORT` or `unix:PATH`.
pub fn address(text: &str) -> Result<Address, Fault> {
    if let Some(path) = text.strip_prefix("unix:") {
        return match path {
            "" => Err(Fault::Malformed("no path in the unix domain socket")),
            path => Ok(Address::Unix(path.into())),
        };
    }
    let (host, port) = split_host_port(text);
    if port.is_some_and(|port| port.parse::<u16>().map_or(true, |port| port == 0)) {
        return Err(Fault::Malformed("invalid port"));
    }
    if host.is_empty() {
        return Err(Fault::Malformed("no host"));
    }
    match (literal_address(text), port) {
        (None, _) => Err(Fault::NoAddresses),
        (Some(_), None) => Err(Fault::NoPort),
        (Some(address), Some(_)) => Ok(address),
    }
}

#[cfg(test)]
mod tests {
    use crate::of_text;

    #[test]
    fn what_is_wrong_is_told_in_nginx_words() {
        for (text, words) in [
            ("127.0.0.1:8080", None),
            ("[::1]:8080", None),
            ("unix:/tmp/a", None),
            ("127.0.0.1:$remote_port", None),
            ("127.0.0.1", Some("\"pass\" directive has no port")),
            ("localhost:80", Some("\"pass\" directive has no addresses")),
            ("8080", Some("\"pass\" directive has no addresses")),
            ("127.0.0.1:0", Some("invalid port in \"127.0.0.1:0\" of the \"pass\" directive")),
            (":80", Some("no host in \":80\" of the \"pass\" directive")),
            ("unix:", Some("no path in the unix domain socket in \"unix:\" of the \"pass\" directive")),
        ] {
            let problems = of_text(&format!("events {{}}\nstream {{ server {{ listen 1; pass {text}; }} }}")).1;
            assert_eq!(problems, words.into_iter().collect::<Vec<_>>(), "{text}");
        }
        let twice = "events {}\nstream { server { listen 1; pass 127.0.0.1:2; pass 127.0.0.1:3; } }";
        assert_eq!(of_text(twice).1, ["\"pass\" directive is duplicate"]);
    }
}
