//! Tests how a configuration compiles the directives; `tests/proxy_ssl` tests the connections.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use weir_conf::{Level, MemoryFiles};
use weir_http::exchange::conf::Conf;
use weir_http::hold::paths::Paths;

use super::*;

fn compile(server: &str) -> (Option<Conf>, Vec<String>) {
    let text = format!("events {{ }} http {{ server {{ {server} }} }}");
    let files = MemoryFiles::new().with("/nginx.conf", text);
    let (tree, problems) = weir_conf::load(&files, "/nginx.conf", "/", &|_| false);
    assert_eq!(problems, []);
    let address = |_: &str| Ok(vec!["127.0.0.1:0".parse().unwrap()]);
    let paths = Paths { prefix: "/".into(), conf_prefix: "/nowhere/".into(), ..Paths::default() };
    let (conf, problems) = weir_http::read::compile::compile(&tree, paths, &address, 1, crate::families());
    let grave = problems.into_iter().filter(|problem| matches!(problem.level, Level::Emerg));
    (conf, grave.map(|problem| problem.what).collect())
}

/// The party of each location, by its name.
fn parties(server: &str) -> Vec<(String, Option<Arc<Party>>)> {
    let (conf, problems) = compile(server);
    assert_eq!(problems, [""; 0], "{server}");
    let locations = conf.unwrap().locations.into_iter().filter(|location| location.pattern.is_some());
    locations.map(|location| (location.name.clone(), crate::values(&location).proxy_ssl.party.clone())).collect()
}

#[test]
fn statements_are_refused_in_nginx_words() {
    const PASS: &str = "proxy_pass https://[::1];";
    for (statements, wanted) in [
        ("proxy_ssl_verify on;", "no proxy_ssl_trusted_certificate for proxy_ssl_verify"),
        ("proxy_ssl_certificate a.pem;", "no \"proxy_ssl_certificate_key\" is defined for certificate \"a.pem\""),
        (
            "proxy_ssl_certificate a.pem; proxy_ssl_certificate_key b.key;",
            "cannot load certificate \"/nowhere/a.pem\": BIO_new_file() failed (2: No such file or directory)",
        ),
        ("proxy_ssl_protocols TLSv1.4;", "invalid value \"TLSv1.4\""),
        ("proxy_ssl_protocols SSLv3 TLSv1;", "weir does not support SSLv3 TLSv1, which is no longer safe"),
        ("proxy_ssl_ciphers AES128-SHA;", "SSL_CTX_set_cipher_list(\"AES128-SHA\") failed (SSL: no cipher match)"),
        ("proxy_ssl_certificate_cache inactive=1s;", "\"proxy_ssl_certificate_cache\" must have the \"max\" parameter"),
        ("proxy_ssl_certificate_cache max=0;", "invalid parameter \"max=0\""),
        (
            "proxy_ssl_conf_command Curves X25519;",
            "SSL_CONF_cmd(\"Curves\", \"X25519\") failed: weir has no such setting",
        ),
        (
            "proxy_ssl_conf_command MaxProtocol TLSv1.1;",
            "SSL_CONF_cmd(\"MaxProtocol\", \"TLSv1.1\") failed (SSL: bad value)",
        ),
        (
            "proxy_ssl_protocols TLSv1.2; proxy_ssl_conf_command MinProtocol TLSv1.3;",
            "proxy_ssl_protocols and proxy_ssl_conf_command leave no TLS version",
        ),
        ("proxy_ssl_verify_depth -1;", "invalid number"),
        ("proxy_ssl_password_file absent;", "open() \"/nowhere/absent\" failed (2: No such file or directory)"),
    ] {
        let (_, problems) = compile(&format!("location / {{ {PASS} {statements} }}"));
        assert!(problems.len() == 1 && problems[0].contains(wanted), "{statements}: {problems:?}");
    }
}

#[test]
fn plain_upstreams_need_nothing() {
    // As in nginx, unused settings are not checked.
    let parties = parties("proxy_ssl_verify on; location /a { proxy_pass http://[::1]; } location /b { return 200; }");
    assert!(parties.iter().all(|(_, party)| party.is_none()));
}

#[test]
fn who_says_the_same_is_the_same_party() {
    let parties = parties(
        "location /a { proxy_pass https://a; }
         location /b { proxy_pass https://b:8443; proxy_ssl_name ignored.test; }
         location /c { proxy_pass https://a; proxy_ssl_server_name on; }
         location /d { proxy_pass https://a:443/x; proxy_ssl_server_name on; }
         location /e { proxy_pass https://a; proxy_ssl_server_name on; proxy_ssl_name b:1; }
         location /f { proxy_pass https://[::1]:1; proxy_ssl_server_name on; proxy_ssl_protocols TLSv1.3; }
         location /g { proxy_pass https://a; proxy_ssl_server_name on; proxy_ssl_name $host; }
         location /h { proxy_pass https://$host; proxy_ssl_server_name on; }
         location /i { proxy_pass https://$host; }
         location /j { proxy_pass https://a; proxy_ssl_certificate $arg_c; proxy_ssl_certificate_key $arg_c; }",
    );
    let of = |name: &str| parties.iter().find(|(known, _)| known == name).unwrap().1.as_ref();
    let names: Vec<Option<&str>> = parties.iter().map(|(_, party)| party.as_ref().map(|party| &*party.name)).collect();
    let wanted = [Some(""), Some(""), Some("a"), Some("a"), Some("b"), Some("::1"), None, None, Some(""), None];
    assert_eq!(names, wanted);
    // No name is sent or checked, so connections may be shared whatever the name.
    assert!(Arc::ptr_eq(of("/a").unwrap(), of("/b").unwrap()));
    assert!(Arc::ptr_eq(of("/c").unwrap(), of("/d").unwrap()));
    assert!(of("/c").unwrap() != of("/e").unwrap());
    assert!(of("/a").unwrap() != of("/c").unwrap());
    assert!(Arc::ptr_eq(&of("/c").unwrap().tls, &of("/e").unwrap().tls));
    assert!(!Arc::ptr_eq(&of("/c").unwrap().tls, &of("/f").unwrap().tls));
}

#[test]
fn groups_are_told_apart_by_the_port_that_is_dialled() {
    let (conf, problems) = compile(
        "location /a { proxy_pass https://a; } location /b { proxy_pass http://a; } location /c { proxy_pass https://a:443; }
         location /d { proxy_pass https://unix:/s:/x; } location /e { proxy_pass https://[::1]; }",
    );
    assert_eq!(problems, [""; 0]);
    let conf = conf.unwrap();
    let groups = &crate::declared(&conf).upstream.groups;
    let addresses: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.addresses[0].to_string())).collect();
    let wanted =
        [("a:443", "127.0.0.1:443"), ("a", "127.0.0.1:80"), ("unix:/s", "unix:/s"), ("[::1]:443", "[::1]:443")];
    assert_eq!(addresses, wanted.map(|(name, address)| (name, address.to_owned())));
}

#[test]
fn hosts_lose_port_and_brackets() {
    for (written, wanted) in
        [("a:1", "a"), ("a", "a"), ("[::1]:2", "::1"), ("[::1]", "::1"), ("", ""), (":1", ""), ("[a", "[a")]
    {
        assert_eq!(bare(written), wanted, "{written}");
    }
}
