//! The target of `proxy_pass` and `grpc_pass`: a URL, in its parts.

use std::borrow::Cow;

use weir_http::authority::split_host_port;
use weir_http::refusal::Refusal;
use weir_http::variable::Template;

/// The target of `proxy_pass`.
#[derive(Clone, Debug)]
pub struct Pass {
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
    /// `grpc_pass` set it.
    pub is_grpc: bool,
    /// How many bytes of the request's path the URI replaces.
    pub replaces: usize,
    /// The group, once all blocks are read.
    pub group: Option<usize>,
    /// `proxy_redirect default`: the text to replace and the replacement; `None` with variables.
    pub default_redirect: Option<(String, String)>,
}

impl Pass {
    /// The scheme and `://`.
    pub fn scheme(&self) -> &'static str {
        match (self.is_grpc, self.is_tls) {
            (false, false) => "http://",
            (false, true) => "https://",
            (true, false) => "grpc://",
            (true, true) => "grpcs://",
        }
    }

    /// Parses the value of the template.
    pub fn parse(&self, text: &str) -> Result<Pass, Refusal> {
        if self.is_grpc { parse_grpc_url(text) } else { parse_url(text) }
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
    if authority.is_empty() {
        return Err(Refusal::whole(format!("no host in upstream \"{rest}\"")));
    }
    let url = authority.to_owned();
    Ok(Pass {
        url,
        template: None,
        host,
        port,
        uri,
        is_tls: secret.is_some(),
        is_grpc: false,
        replaces: 0,
        group: None,
        default_redirect: None,
    })
}

/// The rest of a URL after this scheme, whose case does not matter.
pub fn strip<'u>(url: &'u str, scheme: &str) -> Option<&'u str> {
    let (head, rest) = url.split_at_checked(scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Reads `[grpc://]HOST[:PORT]`, `unix:PATH`, and the same with `grpcs://`.
pub fn parse_grpc_url(url: &str) -> Result<Pass, Refusal> {
    let secret = strip(url, "grpcs://");
    let rest = secret.or_else(|| strip(url, "grpc://")).unwrap_or(url);
    let is_unix = rest.starts_with("unix:");
    if rest.is_empty() || !is_unix && rest.contains('/') {
        return Err(Refusal::whole(format!("invalid host in upstream \"{rest}\""))
            .todo("write [grpc://]HOST:PORT or grpcs://HOST:PORT; gRPC always passes the path on unchanged"));
    }
    let host = if is_unix { "localhost" } else { rest };
    let port = if is_unix { "" } else { split_host_port(rest).1.unwrap_or_default() };
    Ok(Pass {
        url: rest.to_owned(),
        template: None,
        host: host.to_owned(),
        port: port.to_owned(),
        uri: None,
        is_tls: secret.is_some(),
        is_grpc: true,
        replaces: 0,
        group: None,
        default_redirect: None,
    })
}
