//! The target of `proxy_pass`, `grpc_pass`, `fastcgi_pass` and the like: a URL or an address, in its parts.

use std::borrow::Cow;

use weir_http::read::authority::split_host_port;
use weir_http::text::refusal::Refusal;
use weir_http::text::template::Template;

/// The family whose `…_pass` names a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `proxy_pass`.
    Http,
    /// `grpc_pass`.
    Grpc,
    /// `fastcgi_pass`.
    FastCgi,
    /// `uwsgi_pass`.
    Uwsgi,
    /// `scgi_pass`.
    Scgi,
    /// `memcached_pass`.
    Memcached,
    /// `tunnel_pass`.
    Tunnel,
}

impl Scheme {
    /// The name of the family, which is the prefix of its directives.
    pub fn family(self) -> &'static str {
        match self {
            Scheme::Http => "proxy",
            Scheme::Grpc => "grpc",
            Scheme::FastCgi => "fastcgi",
            Scheme::Uwsgi => "uwsgi",
            Scheme::Scgi => "scgi",
            Scheme::Memcached => "memcached",
            Scheme::Tunnel => "tunnel",
        }
    }

    /// The directive.
    pub fn directive(self) -> &'static str {
        match self {
            Scheme::Http => "proxy_pass",
            Scheme::Grpc => "grpc_pass",
            Scheme::FastCgi => "fastcgi_pass",
            Scheme::Uwsgi => "uwsgi_pass",
            Scheme::Scgi => "scgi_pass",
            Scheme::Memcached => "memcached_pass",
            Scheme::Tunnel => "tunnel_pass",
        }
    }

    /// The scheme of URLs and `://`, as the error log shows it.
    pub fn text(self, is_tls: bool) -> &'static str {
        match (self, is_tls) {
            (Scheme::Http, false) => "http://",
            (Scheme::Http, true) => "https://",
            (Scheme::Grpc, false) => "grpc://",
            (Scheme::Grpc, true) => "grpcs://",
            (Scheme::FastCgi, _) => "fastcgi://",
            (Scheme::Uwsgi, false) => "uwsgi://",
            (Scheme::Uwsgi, true) => "suwsgi://",
            (Scheme::Scgi, _) => "scgi://",
            (Scheme::Memcached, _) => "memcached://",
            (Scheme::Tunnel, _) => "",
        }
    }

    /// Whether requests have a target of their own, a URI (nginx: `u->uri`).
    pub fn has_uri(self) -> bool {
        matches!(self, Scheme::Http | Scheme::Grpc)
    }

    /// The prefixes that a target may have, plain and with TLS.
    fn prefixes(self) -> Option<(&'static str, &'static str)> {
        match self {
            Scheme::Http => Some(("http://", "https://")),
            Scheme::Grpc => Some(("grpc://", "grpcs://")),
            Scheme::Uwsgi => Some(("uwsgi://", "suwsgi://")),
            Scheme::FastCgi | Scheme::Scgi | Scheme::Memcached | Scheme::Tunnel => None,
        }
    }
}

/// The target of `proxy_pass` or its like.
#[derive(Clone, Debug)]
pub struct Pass {
    /// The family whose directive it is.
    pub scheme: Scheme,
    /// As written.
    pub url: String,
    /// The text, if it has variables: evaluated for each request.
    pub template: Option<Template>,
    /// `$proxy_host`: the host, with the port unless it is the scheme's default.
    pub host: String,
    /// `$proxy_port`.
    pub port: String,
    /// The URI that replaces the location's prefix.
    pub uri: Option<String>,
    /// `https://`: weir uses TLS to the upstream.
    pub is_tls: bool,
    /// How many bytes of the request's path the URI replaces.
    pub replaces: usize,
    /// The group, once all blocks are read.
    pub group: Option<usize>,
    /// `proxy_redirect default`: the text to replace and the replacement; `None` with variables.
    pub default_redirect: Option<(String, String)>,
}

impl Pass {
    /// A target with variables.
    pub fn computed(url: &str, template: Template, scheme: Scheme) -> Pass {
        Pass { template: Some(template), ..Pass::at(url, scheme) }
    }

    fn at(url: &str, scheme: Scheme) -> Pass {
        Pass {
            scheme,
            url: url.to_owned(),
            template: None,
            host: String::new(),
            port: String::new(),
            uri: None,
            is_tls: false,
            replaces: 0,
            group: None,
            default_redirect: None,
        }
    }

    /// The scheme and `://`.
    pub fn scheme(&self) -> &'static str {
        self.scheme.text(self.is_tls)
    }

    /// Parses a target without variables, or the value of one with variables.
    pub fn parse(scheme: Scheme, text: &str) -> Result<Pass, Refusal> {
        if scheme == Scheme::Http { parse_url(text) } else { parse_address(text, scheme) }
    }

    /// Whether the address of a peer needs a port and has none: only HTTP and gRPC have a usual port.
    pub fn lacks_port(&self) -> bool {
        !self.scheme.has_uri() && !self.url.starts_with("unix:") && split_host_port(&self.url).1.is_none()
    }

    /// The name of an implicit group: the address to connect to, with the port unless it is `http`'s default.
    pub fn dialled(&self) -> Cow<'_, str> {
        let is_complete = !self.is_tls || self.url.starts_with("unix:") || split_host_port(&self.url).1.is_some();
        if is_complete { Cow::Borrowed(&self.url) } else { Cow::Owned(format!("{}:443", self.url)) }
    }
}

/// Reads `http://HOST[:PORT][URI]` or `http://unix:PATH[:URI]`, and the same with `https`.
pub fn parse_url(url: &str) -> Result<Pass, Refusal> {
    let secret = strip(url, "https://");
    let Some(rest) = secret.or_else(|| strip(url, "http://")) else {
        return Err(Refusal::whole("invalid URL prefix").todo("write http://HOST[:PORT][/URI], or https://"));
    };
    let (authority, uri) = if let Some(path) = rest.strip_prefix("unix:") {
        match path.find(':') {
            Some(at) => (&rest[..at + 5], Some(&path[at + 1..])),
            None => (rest, None),
        }
    } else {
        match rest.find(['/', '?']) {
            Some(at) => (&rest[..at], Some(&rest[at..])),
            None => (rest, None),
        }
    };
    let uri = uri
        .filter(|uri| !uri.is_empty())
        .map(|uri| if uri.starts_with('?') { format!("/{uri}") } else { uri.to_owned() });
    let (host, port) = if authority.starts_with("unix:") {
        ("localhost".to_owned(), String::new())
    } else {
        let usual = if secret.is_some() { 443 } else { 80 };
        match split_host_port(authority) {
            // nginx: `$proxy_host` leaves out the scheme's default port, even if it is written.
            (_, Some(port)) if port.parse() != Ok(usual) => (authority.to_owned(), port.to_owned()),
            (host, _) => (host.to_owned(), usual.to_string()),
        }
    };
    check_host(authority, rest)?;
    Ok(Pass { host, port, uri, is_tls: secret.is_some(), ..Pass::at(authority, Scheme::Http) })
}

/// The rest of a URL after this scheme, whose case does not matter.
pub fn strip<'u>(url: &'u str, scheme: &str) -> Option<&'u str> {
    let (head, rest) = url.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Refuses `:PORT` and nothing: an empty variable in the place of the host. `rest` is the URL after its scheme.
fn check_host(authority: &str, rest: &str) -> Result<(), Refusal> {
    match split_host_port(authority).0.is_empty() {
        true => Err(Refusal::whole(format!("no host in upstream \"{rest}\""))),
        false => Ok(()),
    }
}

/// Reads `HOST[:PORT]` or `unix:PATH`, with a prefix if the family has prefixes.
fn parse_address(url: &str, scheme: Scheme) -> Result<Pass, Refusal> {
    let (plain, secret) = match scheme.prefixes() {
        Some((plain, secret)) => (strip(url, plain), strip(url, secret)),
        None => (None, None),
    };
    let rest = secret.or(plain).unwrap_or(url);
    let is_unix = rest.starts_with("unix:");
    if rest.is_empty() || !is_unix && rest.contains('/') {
        let refusal = Refusal::whole(format!("invalid host in upstream \"{rest}\""));
        return Err(match scheme {
            Scheme::Http | Scheme::Grpc => {
                refusal.todo("write [grpc://]HOST:PORT or grpcs://HOST:PORT; gRPC always passes the path on unchanged")
            }
            Scheme::FastCgi | Scheme::Uwsgi | Scheme::Scgi | Scheme::Memcached | Scheme::Tunnel => {
                refusal.todo("write HOST:PORT, unix:PATH, or the name of an upstream block")
            }
        });
    }
    check_host(rest, rest)?;
    let host = if is_unix { "localhost" } else { rest };
    let port = if is_unix { "" } else { split_host_port(rest).1.unwrap_or_default() };
    Ok(Pass { host: host.to_owned(), port: port.to_owned(), is_tls: secret.is_some(), ..Pass::at(rest, scheme) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_applications() {
        let read =
            |scheme, text| Pass::parse(scheme, text).map(|pass| (pass.url.clone(), pass.is_tls, pass.lacks_port()));
        for (scheme, text, expected) in [
            (Scheme::FastCgi, "127.0.0.1:9000", Some(("127.0.0.1:9000", false, false))),
            (Scheme::FastCgi, "unix:/run/php/php-fpm.sock", Some(("unix:/run/php/php-fpm.sock", false, false))),
            (Scheme::FastCgi, "php", Some(("php", false, true))),
            (Scheme::FastCgi, "fastcgi://a:1", None),
            (Scheme::FastCgi, "a:1/x", None),
            (Scheme::FastCgi, "", None),
            (Scheme::FastCgi, ":9000", None),
            (Scheme::Uwsgi, "uwsgi://a:1", Some(("a:1", false, false))),
            (Scheme::Uwsgi, "suwsgi://a:1", Some(("a:1", true, false))),
            (Scheme::Uwsgi, "SUWSGI://unix:/s", Some(("unix:/s", true, false))),
            (Scheme::Uwsgi, "uwsgi://", None),
            (Scheme::Scgi, "[::1]:4000", Some(("[::1]:4000", false, false))),
            (Scheme::Memcached, "memcached:11211", Some(("memcached:11211", false, false))),
        ] {
            let expected = expected.map(|(url, is_tls, lacks_port)| (url.to_owned(), is_tls, lacks_port));
            assert_eq!(read(scheme, text).ok(), expected, "{text}");
        }
    }
}
