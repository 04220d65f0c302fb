//! Proxies of the environment: `HTTP_PROXY`, `HTTPS_PROXY`, and the exceptions in `NO_PROXY`.
//!
//! As in Artillery, which uses hpagent, all requests go through a tunnel made by CONNECT, also those to `http://`.
//! `HTTPS_PROXY` is for `https://` only; without it, `HTTP_PROXY` is used for `https://` too.

use crate::texts;
use crate::url::{Scheme, Url};
use weir_words::{Said, say};

/// The proxies of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    /// Hosts reached without a proxy: `*`, a name and all its subdomains, or an address; each may have a port.
    none: Vec<String>,
}

impl Proxies {
    /// Reads the proxies from the environment; the error is for the user.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>) -> Result<Proxies, Said> {
        let url = |name: &str| {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
            let url = Url::parse(&text).map_err(|error| say!(texts::OF_FILE, name, error))?;
            match url.scheme {
                Scheme::Http => Ok(Some(url)),
                Scheme::Https => Err(say!(texts::PROXY_NO_TLS, name)),
            }
        };
        let (http, https) = (url("HTTP_PROXY")?, url("HTTPS_PROXY")?);
        let none = variable("NO_PROXY").unwrap_or_default();
        let none = none.split([',', ' ']).map(|host| host.trim_start_matches('.').to_ascii_lowercase());
        let https = https.or_else(|| http.clone());
        Ok(Proxies { http, https, none: none.filter(|host| !host.is_empty()).collect() })
    }

    /// The proxy for a URL; `None`: connect directly.
    pub fn of(&self, url: &Url) -> Option<&Url> {
        let proxy = match url.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        proxy.filter(|_| !self.none.iter().any(|host| is_at(host, url)))
    }

    /// All proxies, each once, as `http://host:port`.
    pub fn named(&self) -> Vec<String> {
        let mut named: Vec<String> = self.http.iter().chain(&self.https).map(Url::origin).collect();
        named.dedup();
        named
    }
}

/// True if an entry of `NO_PROXY` matches the host of a URL.
fn is_at(entry: &str, url: &Url) -> bool {
    if entry == "*" || entry == url.host {
        return true;
    }
    let (host, port) = match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') => (host, port.parse().ok()),
        _ => (entry, None),
    };
    let is_below = || url.host.strip_suffix(host).is_some_and(|below| below.ends_with('.'));
    port.is_none_or(|port: u16| port == url.port) && (host == url.host || is_below())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Proxies, Said> {
        Proxies::read(&|name| pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned()))
    }

    fn of(pairs: &[(&str, &str)], url: &str) -> Option<String> {
        read(pairs).unwrap().of(&Url::parse(url).unwrap()).map(Url::origin)
    }

    #[test]
    fn the_proxy_of_http_serves_https_unless_that_has_its_own() {
        let (http, https) = (("HTTP_PROXY", "http://p:3128"), ("HTTPS_PROXY", "http://s:3128"));
        let (p, s) = (Some("http://p:3128".to_owned()), Some("http://s:3128".to_owned()));
        for (variables, plain, tls) in [
            (&[][..], None, None),
            (&[http], p.clone(), p.clone()),
            (&[https], None, s.clone()),
            (&[http, https], p.clone(), s.clone()),
            (&[("HTTP_PROXY", "")], None, None),
        ] {
            assert_eq!((of(variables, "http://a/"), of(variables, "https://a/")), (plain, tls), "{variables:?}");
        }
    }

    #[test]
    fn hosts_without_proxy() {
        for (entries, url, is_straight) in [
            ("a.b", "http://a.b/", true),
            ("a.b", "http://x.a.b/", true),
            (".a.b", "http://x.a.b/", true),
            ("a.b", "http://xa.b/", false),
            ("c, a.b:81", "http://a.b:81/", true),
            ("a.b:81", "http://a.b:82/", false),
            ("127.0.0.1", "http://127.0.0.1:8080/", true),
            ("::1", "http://[::1]:8080/", true),
            ("*", "http://z/", true),
            ("", "http://z/", false),
        ] {
            let proxy = of(&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", entries)], url);
            assert_eq!(proxy.is_none(), is_straight, "{entries} {url}");
        }
    }

    #[test]
    fn what_is_no_proxy_is_named() {
        assert!(
            read(&[("HTTP_PROXY", "p:3128")])
                .unwrap_err()
                .starts_with("HTTP_PROXY: weir cannot use the URL \"p:3128\"")
        );
        assert!(read(&[("HTTPS_PROXY", "https://p")]).unwrap_err().ends_with("write http://"));
    }
}
