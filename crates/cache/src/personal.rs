//! Detects personal messages: session cookies, and a number that identifies "the same person".
//!
//! Some guides recommend ignoring `Set-Cookie` and caching for one second. Then every client gets the page of the first
//! logged-in user. A cookie with one of these names shows that somebody is logged in, or soon will be.

use std::hash::{DefaultHasher, Hasher};

use weir_wire::Known;

use weir_wire::fields::FieldRef;

/// Names of session cookies: the defaults of frameworks.
///
/// Compared in any case, after the prefixes `__Host-` and `__Secure-` (RFC 6265bis §4.1.3).
const NAMES: &[&str] = &[
    "phpsessid",
    "jsessionid",
    "sessionid",
    "session_id",
    "session",
    "sid",
    "connect.sid",
    "laravel_session",
    "ci_session",
    "cfid",
    "cftoken",
    "asp.net_sessionid",
    ".aspnetcore.session",
    ".aspnetcore.cookies",
    ".aspxauth",
    "rack.session",
    "_session_id",
    "koa.sess",
    "express.sid",
    "play_session",
    "beaker.session.id",
    "remember_token",
    "remember_user_token",
    "rememberme",
    "auth_token",
    "access_token",
    "refresh_token",
    "id_token",
    "jwt",
    "token",
    "mediawiki_session",
    "moodlesession",
    "joomla_user_state",
    "frontend",
    "next-auth.session-token",
    "authjs.session-token",
    "supabase-auth-token",
    "kc_session",
    "keycloak_session",
    "_oauth2_proxy",
    "mod_auth_openidc_session",
];

/// Prefixes of the names of session cookies.
const PREFIXES: &[&str] = &[
    "wordpress_logged_in_",
    "wordpress_sec_",
    "wp-postpass_",
    "comment_author_",
    "woocommerce_items_in_cart",
    "woocommerce_cart_hash",
    "wp_woocommerce_session_",
    "laravel_session",
    "remember_web_",
    "sess",
    "ssess",
    "aspsessionid",
    ".aspnetcore.identity",
    "prestashop-",
    "shibsession_",
    "_shibsession_",
    "sb-access-token",
    "wikidb_session",
    "phpbb3_",
];

/// Suffixes of the names of session cookies: `myapp_session`, `app.sid`.
const SUFFIXES: &[&str] = &["_session", "-session", ".session", ".sid", "_sid", "sessionid", "session_id", "_sess"];

/// Cookies of analytics, consent and load balancers: they differ for each user but do not change a page.
const MEANINGLESS: &[&str] = &[
    "_ga",
    "_gid",
    "_gat",
    "_gcl_",
    "_fbp",
    "_fbc",
    "__utm",
    "_hj",
    "_pk_",
    "_clck",
    "_clsk",
    "_uet",
    "ajs_",
    "amp_",
    "optimizely",
    "intercom-",
    "__cf_bm",
    "cf_clearance",
    "_cfuvid",
    "cookieconsent",
    "cookieyes",
    "awsalb",
    "awselb",
];

/// Whether a `Cookie` field has a session cookie.
pub fn has_session(cookie: &[u8]) -> bool {
    pairs(cookie).any(|(name, value)| !value.is_empty() && is_session(name))
}

/// Whether a `Set-Cookie` field sets a session cookie.
pub fn sets_session(set_cookie: &[u8]) -> bool {
    pairs(set_cookie).next().is_some_and(|(name, _)| is_session(name))
}

/// Whether this is the name of a session cookie.
pub fn is_session(name: &[u8]) -> bool {
    let name = strip_prefix(name, b"__host-").or_else(|| strip_prefix(name, b"__secure-")).unwrap_or(name);
    let is = |list: &[&str], fits: fn(&[u8], &[u8]) -> bool| list.iter().any(|item| fits(name, item.as_bytes()));
    is(NAMES, <[u8]>::eq_ignore_ascii_case)
        || is(PREFIXES, |name, prefix| strip_prefix(name, prefix).is_some())
        || is(SUFFIXES, |name, suffix| {
            let end = name.len().checked_sub(suffix.len()).and_then(|at| name.get(at..));
            end.is_some_and(|end| end.eq_ignore_ascii_case(suffix))
        })
}

/// The kinds of clients that a cache key distinguishes, so that they need no guard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldApart {
    /// The key contains the credentials: `$http_authorization`, `$remote_user`.
    pub credentials: bool,
    /// The key contains the session: `$http_cookie`, or `$cookie_` and the name of a session cookie.
    pub sessions: bool,
    /// The key contains the method: `$request_method`.
    pub methods: bool,
}

impl ToldApart {
    /// Reads the text of `proxy_cache_key` as written.
    pub fn by_key(key: &str) -> ToldApart {
        let mut told = ToldApart::default();
        for text in key.split('$').skip(1) {
            let text = text.strip_prefix('{').unwrap_or(text);
            let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
            let name = text.get(..end).unwrap_or_default();
            told.methods |= name == "request_method";
            told.credentials |= matches!(name, "http_authorization" | "remote_user");
            let cookie = name.strip_prefix("cookie_").is_some_and(|cookie| is_session(cookie.as_bytes()));
            told.sessions |= name == "http_cookie" || cookie;
        }
        told
    }
}

/// A number that two requests share if their cookies and credentials are the same; 0 for a request with none.
///
/// It leaves out cookies of analytics and consent; otherwise every visitor would be a different person.
pub fn identity<'a>(fields: impl Iterator<Item = FieldRef<'a>>) -> u64 {
    // Cookies may come in any order, so the sum does not depend on the order.
    let mut sum = 0_u64;
    for field in fields {
        match field.known {
            Some(Known::Cookie) => {
                for (name, value) in pairs(field.value) {
                    if !MEANINGLESS.iter().any(|prefix| strip_prefix(name, prefix.as_bytes()).is_some()) {
                        sum = sum.wrapping_add(hash(&[name, b"=", value]));
                    }
                }
            }
            Some(Known::Authorization) => sum = sum.wrapping_add(hash(&[b"authorization ", field.value])),
            _ => {}
        }
    }
    sum
}

fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for part in parts {
        hasher.write(part);
    }
    hasher.finish()
}

/// The `name=value` pairs of a `Cookie` field, or of the beginning of a `Set-Cookie`.
fn pairs(cookie: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    cookie.split(|b| *b == b';').filter_map(|pair| {
        let pair = pair.trim_ascii();
        let equals = memchr::memchr(b'=', pair)?;
        let (name, value) = pair.split_at_checked(equals)?;
        Some((name.trim_ascii_end(), value.get(1..)?.trim_ascii()))
    })
}

fn strip_prefix<'a>(name: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cookie(value: &str) -> FieldRef<'_> {
        FieldRef { name: b"Cookie", value: value.as_bytes(), known: Some(Known::Cookie) }
    }

    #[test]
    fn sessions_are_known_by_the_names_of_their_cookies() {
        for (value, expected) in [
            ("PHPSESSID=1", true),
            ("a=b; connect.sid=s%3Ax", true),
            ("wordpress_logged_in_0123=admin", true),
            ("JSESSIONID=x", true),
            ("__Host-session=x", true),
            ("shop_session=x", true),
            ("SESS0123456789abcdef=x", true),
            (".AspNetCore.Identity.Application=x", true),
            ("myapp.sid=1", true),
            ("a=b", false),
            ("a=PHPSESSID", false),
            ("wordpress_test_cookie=1", false),
            ("_ga=GA1.2.3; _gid=4", false),
            ("theme=dark; lang=de", false),
            ("PHPSESSID=", false),
            ("PHPSESSID", false),
            ("", false),
        ] {
            assert_eq!(has_session(value.as_bytes()), expected, "{value}");
        }
        assert!(sets_session(b"laravel_session=x; Path=/; HttpOnly"));
        assert!(!sets_session(b"lang=de; Path=/; session=no"), "attributes are no cookies");
    }

    #[test]
    fn the_same_person_has_the_same_number() {
        let of = |value| identity([cookie(value)].into_iter());
        assert_eq!(of("a=1; b=2"), of("b=2; a=1; _ga=5"));
        assert_ne!(of("a=1; b=2"), of("a=2; b=1"));
        assert_eq!(of("_ga=5; __utma=6"), 0);
        assert_eq!(identity([].into_iter()), 0);
        let basic = FieldRef { name: b"Authorization", value: b"Basic eA==", known: Some(Known::Authorization) };
        assert_ne!(identity([basic].into_iter()), 0);
    }

    #[test]
    fn keys_tell_persons_apart_by_what_they_name() {
        assert!(ToldApart::by_key("$scheme$request_method$uri").methods && !ToldApart::by_key("$uri").methods);
        for (key, credentials, sessions) in [
            ("$scheme$proxy_host$request_uri", false, false),
            ("$request_uri$http_cookie", false, true),
            ("${cookie_PHPSESSID}$uri", false, true),
            ("$uri$cookie_theme", false, false),
            ("$uri|$remote_user", true, false),
            ("$http_authorization$cookie_sessionid", true, true),
            ("$http_cookies http_cookie", false, false),
            ("$", false, false),
        ] {
            assert_eq!(ToldApart::by_key(key), ToldApart { credentials, sessions, methods: false }, "{key}");
        }
    }

    proptest! {
        #[test]
        fn any_key_is_read(key: String) {
            ToldApart::by_key(&key);
        }

        #[test]
        fn any_bytes_are_read(value: Vec<u8>) {
            has_session(&value);
            sets_session(&value);
        }
    }
}
