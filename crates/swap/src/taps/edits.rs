//! The addresses of origins in a configuration, and the copy with taps in their places.
//!
//! Pure but for names, which the system resolves.

use std::collections::BTreeSet;
use std::net::ToSocketAddrs;

use weir_conf::edit::Edit;
use weir_conf::{Statement, Tree, Word};
use weir_net::Address;
use weir_words::{Said, Words, said, words};

use super::read::TapNames;

/// The port of an origin without one.
const PORT: u16 = 80;
/// Directives with an address as their argument, with the scheme before it.
const PASSES: &[(&str, &str)] = &[("fastcgi_pass", ""), ("proxy_pass", "http://")];
/// Directives to origins whose requests are not read.
const UNREAD: &[&str] = &["grpc_pass", "memcached_pass", "scgi_pass", "uwsgi_pass"];
/// The directives of a group that choose a peer by its address: another address would be another choice.
const BY_ADDRESS: &[&str] = &["sticky", "sticky_cookie_insert"];

const VARIABLE: Words = words("the address has a variable", "주소에 변수가 있습니다");
const TLS: Words = words("the requests are encrypted", "요청이 암호화됩니다");
const PROTOCOL: Words = words("weir swap does not read this protocol", "weir swap이 이 프로토콜을 읽지 않습니다");
const CHOICE: Words = words("the group chooses by the address", "그룹이 주소로 서버를 고릅니다");
const NAME: Words = words("the name changes its addresses", "이름의 주소가 바뀝니다");
const UNKNOWN: Words = words("the name has no address", "이름에 주소가 없습니다");

/// An origin that gets a tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TappedOrigin {
    /// As the configuration says it: `app:3000`.
    pub shown: String,
    /// The addresses, in the order in which they are tried.
    pub to: Vec<Address>,
    /// The name that the requests have for the origin. Empty if it is that of a group.
    pub name: String,
}

/// An origin that gets none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntappedOrigin {
    /// The statement that names it, with its place: `proxy_pass https://app in /etc/nginx/nginx.conf:12`.
    pub shown: String,
    /// The reason.
    pub why: Words,
}

impl UntappedOrigin {
    /// A sentence for the report.
    pub fn said(&self) -> Said {
        let (shown, Words { en, ko }) = (&self.shown, self.why);
        said!(
            "the requests to this origin are not compared: {shown}: {en}",
            "이 오리진이 받은 요청은 비교하지 않습니다: {shown}: {ko}"
        )
    }
}

/// The edits that put taps in the places of origins. `open` opens a tap and returns its address. The origins without a
/// tap are added to `untapped`.
pub fn edits(
    tree: &Tree,
    open: &mut dyn FnMut(&TappedOrigin) -> Option<Address>,
    untapped: &mut Vec<UntappedOrigin>,
) -> Vec<Edit> {
    let mut finder = Finder { tree, groups: groups(tree), open, untapped, edits: Vec::new() };
    for http in tree.named("http") {
        finder.block(http.children());
    }
    let Finder { mut edits, .. } = finder;
    edits.sort_by_key(|edit| (edit.file, edit.span.start, edit.span.end));
    // A file that is included twice has each statement twice.
    edits.dedup_by_key(|edit| (edit.file, edit.span));
    edits
}

/// The names of the groups.
fn groups(tree: &Tree) -> BTreeSet<String> {
    let all = tree.named("http").flat_map(|http| http.named("upstream"));
    all.map(|group| group.text(0).to_ascii_lowercase()).collect()
}

struct Finder<'t> {
    tree: &'t Tree,
    groups: BTreeSet<String>,
    open: &'t mut dyn FnMut(&TappedOrigin) -> Option<Address>,
    untapped: &'t mut Vec<UntappedOrigin>,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            let name = statement.name.text.as_str();
            match PASSES.iter().find(|(known, _)| *known == name) {
                Some((_, scheme)) => self.pass(statement, scheme),
                None if UNREAD.contains(&name) => self.leave(statement, PROTOCOL),
                None if name == "upstream" => self.group(statement),
                None => self.block(statement.children()),
            }
        }
    }

    fn group(&mut self, group: &Statement) {
        let is_by_address = |one: &Statement| {
            BY_ADDRESS.contains(&one.name.text.as_str())
                || (one.name == "hash" && one.args.iter().any(|word| word.text == "consistent"))
        };
        if group.children().iter().any(is_by_address) {
            return self.leave(group, CHOICE);
        }
        for server in group.named("server") {
            let is_named_anew = |word: &Word| word.text == "resolve" || word.text.starts_with("service=");
            if server.args.iter().any(is_named_anew) {
                self.leave(server, NAME);
            } else if let Some(word) = server.arg(0) {
                match addresses(&word.text) {
                    Some(to) => {
                        let origin = TappedOrigin { shown: word.text.clone(), to, name: String::new() };
                        self.put(server, word, &origin, &|tap| shown(tap));
                    }
                    None => self.leave(server, UNKNOWN),
                }
            }
        }
    }

    fn pass(&mut self, statement: &Statement, scheme: &str) {
        let Some(word) = statement.arg(0) else { return };
        let text = word.text.as_str();
        let head = text.get(..scheme.len()).unwrap_or_default();
        if !head.eq_ignore_ascii_case(scheme) {
            // Requests by TLS pass the taps of a group unread.
            return self.leave(statement, if text.contains('$') { VARIABLE } else { TLS });
        }
        let rest = text.get(scheme.len()..).unwrap_or_default();
        let (authority, uri) = split(rest, scheme.is_empty());
        if self.is_group(authority) {
            return;
        }
        if authority.contains('$') || uri.starts_with('$') && !scheme.is_empty() && authority.is_empty() {
            return self.leave(statement, VARIABLE);
        }
        let Some(to) = addresses(authority) else { return self.leave(statement, UNKNOWN) };
        // A unix socket has the name `localhost` in requests.
        let is_named = !scheme.is_empty() && !authority.starts_with("unix:");
        let name = if is_named { authority.to_owned() } else { String::new() };
        let origin = TappedOrigin { shown: authority.to_owned(), to, name };
        let is_unix_url = !scheme.is_empty() && authority.starts_with("unix:");
        self.put(statement, word, &origin, &|tap| {
            let colon = if is_unix_url && !uri.is_empty() { ":" } else { "" };
            format!("{head}{}{colon}{uri}", shown(tap))
        });
    }

    fn is_group(&self, authority: &str) -> bool {
        let end = authority.find(['/', '?']).unwrap_or(authority.len());
        self.groups.contains(&authority.get(..end).unwrap_or_default().to_ascii_lowercase())
    }

    fn put(&mut self, statement: &Statement, word: &Word, origin: &TappedOrigin, text: &dyn Fn(&Address) -> String) {
        // A file that is included twice needs one tap.
        if self.edits.iter().any(|edit| edit.file == word.at.file && edit.span == word.at.span) {
            return;
        }
        match (self.open)(origin) {
            Some(tap) => {
                let with = weir_conf::quote(text(&tap).as_bytes());
                self.edits.push(Edit { file: word.at.file, span: word.at.span, with });
            }
            None => self.leave(statement, UNKNOWN),
        }
    }

    fn leave(&mut self, statement: &Statement, why: Words) {
        let words: Vec<&str> = statement.words().map(|word| word.text.as_str()).collect();
        let place = weir_conf::places(&[statement.at], self.tree);
        let one = UntappedOrigin { shown: format!("{} in {place}", words.join(" ")), why };
        if !self.untapped.contains(&one) {
            self.untapped.push(one);
        }
    }
}

/// The address of a tap in a configuration.
pub(super) fn shown(tap: &Address) -> String {
    match tap {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

/// The authority of a URL without its scheme, and the rest of the URL.
fn split(rest: &str, is_bare: bool) -> (&str, &str) {
    if is_bare {
        return (rest, "");
    }
    if rest.starts_with("unix:") {
        let colon = rest.get(5..).and_then(|path| path.find(':'));
        return colon.map_or((rest, ""), |at| (rest.get(..5 + at).unwrap_or(rest), rest.get(6 + at..).unwrap_or("")));
    }
    // A variable after the port begins the path: `http://app:80$request_uri`.
    let end = rest.find(['/', '?', '$']).unwrap_or(rest.len());
    let (authority, uri) = rest.split_at_checked(end).unwrap_or((rest, ""));
    // A variable in the host: `http://app$number`.
    let is_whole = !uri.starts_with('$') || authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty());
    if is_whole { (authority, uri) } else { (rest, "") }
}

/// The addresses of `host:port`, `host` or `unix:path`. `None`: there is none.
fn addresses(text: &str) -> Option<Vec<Address>> {
    if let Some(path) = text.strip_prefix("unix:") {
        return Some(vec![Address::unix(path).ok()?]);
    }
    let has_port = text.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let with_port = if has_port { text.to_owned() } else { format!("{text}:{PORT}") };
    let found: Vec<Address> = with_port.to_socket_addrs().ok()?.map(Address::Tcp).collect();
    (!found.is_empty()).then_some(found)
}

impl TappedOrigin {
    /// The names that its tap exchanges.
    pub fn names(&self, tap: &Address) -> TapNames {
        match self.name.is_empty() {
            true => TapNames::default(),
            false => TapNames { tap: shown(tap).into_bytes(), origin: self.name.clone().into_bytes() },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cause::edits::tests::tree;
    use weir_conf::edit;

    /// The copy, the origins, and the origins without a tap.
    fn copy(text: &str) -> (String, Vec<String>, Vec<String>) {
        let tree = tree(text);
        let (mut origins, mut untapped) = (Vec::new(), Vec::new());
        let mut open = |origin: &TappedOrigin| {
            origins.push(format!("{}={}", origin.shown, origin.name));
            Some(match origin.to.first()? {
                Address::Tcp(_) => Address::Tcp(format!("127.0.0.1:{}", 4000 + origins.len()).parse().ok()?),
                Address::Unix(_) => Address::Unix(format!("/t/{}", origins.len()).into()),
            })
        };
        let edits = edits(&tree, &mut open, &mut untapped);
        let bytes = edit::apply(&tree.files[0].bytes, &edits.iter().collect::<Vec<_>>()).unwrap();
        let untapped = untapped.into_iter().map(|one| format!("{}: {}", one.shown, one.why.en)).collect();
        (String::from_utf8(bytes).unwrap(), origins, untapped)
    }

    #[test]
    fn addresses_of_origins_are_replaced() {
        let (text, origins, untapped) = copy(
            "http { upstream app { server 127.0.0.1:3000 weight=2; server unix:/a; }\n\
             server { location /a { proxy_pass http://app/x; } location /b { proxy_pass http://127.0.0.1:3001/x; }\n\
             location /c { proxy_pass http://unix:/s:/u; } location /d { fastcgi_pass 127.0.0.1:9000; }\n\
             location /e { proxy_pass http://127.0.0.1; } location /f { proxy_pass http://127.0.0.1:3002$uri; }\n\
             location /g { fastcgi_pass unix:/p; } location /h { proxy_pass HTTP://[::1]:1/; } } }",
        );
        assert_eq!(
            text,
            "http { upstream app { server 127.0.0.1:4001 weight=2; server unix:/t/2; }\n\
             server { location /a { proxy_pass http://app/x; } location /b { proxy_pass http://127.0.0.1:4003/x; }\n\
             location /c { proxy_pass http://unix:/t/4:/u; } location /d { fastcgi_pass 127.0.0.1:4005; }\n\
             location /e { proxy_pass http://127.0.0.1:4006; } location /f { proxy_pass http://127.0.0.1:4007$uri; }\n\
             location /g { fastcgi_pass unix:/t/8; } location /h { proxy_pass HTTP://127.0.0.1:4009/; } } }"
        );
        let wanted = [
            "127.0.0.1:3000=",
            "unix:/a=",
            "127.0.0.1:3001=127.0.0.1:3001",
            "unix:/s=",
            "127.0.0.1:9000=",
            "127.0.0.1=127.0.0.1",
            "127.0.0.1:3002=127.0.0.1:3002",
            "unix:/p=",
            "[::1]:1=[::1]:1",
        ];
        assert_eq!((origins, untapped), (wanted.map(str::to_owned).to_vec(), vec![]));
    }

    #[test]
    fn an_origin_without_a_tap_is_said() {
        let text = "http { upstream a { hash $uri consistent; server 127.0.0.1:1; } upstream b { server x resolve; }\n\
             server { location /1 { proxy_pass https://127.0.0.1; } location /2 { proxy_pass http://$x; }\n\
             location /3 { grpc_pass 127.0.0.1:1; } location /4 { proxy_pass http://app$n; } location /5 { proxy_pass $y; }\n\
             location /6 { proxy_pass https://a; } location /7 { fastcgi_pass $z; } } }";
        let (copy, origins, untapped) = copy(text);
        assert_eq!((copy.as_str(), origins), (text, vec![]));
        let shown: Vec<&str> = untapped.iter().map(String::as_str).collect();
        assert_eq!(
            shown,
            [
                "upstream a in /f:1: the group chooses by the address",
                "server x resolve in /f:1: the name changes its addresses",
                "proxy_pass https://127.0.0.1 in /f:2: the requests are encrypted",
                "proxy_pass http://$x in /f:2: the address has a variable",
                "grpc_pass 127.0.0.1:1 in /f:3: weir swap does not read this protocol",
                "proxy_pass http://app$n in /f:3: the address has a variable",
                "proxy_pass $y in /f:3: the address has a variable",
                "proxy_pass https://a in /f:4: the requests are encrypted",
                "fastcgi_pass $z in /f:4: the address has a variable",
            ]
        );
    }
}
