#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
use super::*;

/// Path, arguments and extension of a normalised target.
fn check_with(merge_slashes: bool, raw: &str, path: &str, args: Option<&str>, exten: &str) {
    let mut out = b"left over".to_vec();
    let got = normalise(raw.as_bytes(), merge_slashes, &mut out).unwrap_or_else(|v| panic!("{raw}: {v}"));
    let got_path = got.path(raw.as_bytes(), &out);
    assert_eq!(String::from_utf8_lossy(got_path), path, "{raw}");
    assert_eq!(got.args.as_ref().map(|r| &raw[r.clone()]), args, "{raw}");
    assert_eq!(got.args(raw.as_bytes()), args.unwrap_or_default().as_bytes(), "{raw}");
    let got_exten = got.exten.clone().map(|r| &got_path[r]).unwrap_or_default();
    assert_eq!(got_exten, exten.as_bytes(), "{raw}");
}

fn check(raw: &str, path: &str, args: Option<&str>, exten: &str) {
    check_with(true, raw, path, args, exten);
}

#[test]
fn clean_targets_are_not_copied() {
    for raw in ["/", "/a", "/a/b.c/d.tar.gz", "/a?b=/../%41", "/a+b/", "/a..b/c./d"] {
        let mut out = Vec::new();
        let got = normalise(raw.as_bytes(), true, &mut out).unwrap();
        assert!(!got.complex && !got.quoted && out.is_empty(), "{raw}");
    }
    check("/a/b.c/d.tar.gz", "/a/b.c/d.tar.gz", None, "gz");
    check("/a.b/c", "/a.b/c", None, "");
    check("/a.", "/a.", None, "");
    check("/a.html?b?c", "/a.html", Some("b?c"), "html");
    check("/a?", "/a", Some(""), "");
}

#[test]
fn dots_slashes_and_escapes() {
    check("/a/./b/../c", "/a/c", None, "");
    check("/a/.", "/a/", None, "");
    check("/a/..", "/", None, "");
    check("/a/../", "/", None, "");
    check("/a/b/../../c.d", "/c.d", None, "d");
    check("/.a/..b/...", "/.a/..b/...", None, "");
    check("/a/.?x", "/a/", Some("x"), "");
    check("/a/b/..?x", "/a/", Some("x"), "");
    check("/a/b/..#x", "/a/", None, "");
    check("//a///b", "/a/b", None, "");
    check("/a%2fb%2F%2fc", "/a/b/c", None, "");
    check("/%61%2e%2E/b", "/a../b", None, "");
    check("/a/%2e%2e/b", "/b", None, "");
    check("/a/.%2e/b", "/b", None, "");
    check("/a%2f..%2fb", "/b", None, "");
    check("/a%20%C3%A9", "/a é", None, "");
    check("/a%3Fb%23c%25d?e", "/a?b#c%d", Some("e"), "");
    check("/a/.%25", "/a/.%", None, "");
    check("/%2541", "/%41", None, "");
    check("/a%2Ehtml", "/a.html", None, "html");
    check("/a.b%2fc", "/a.b/c", None, "");
    check("/a%0d%0ab", "/a\r\nb", None, "");
}

#[test]
fn fragments_are_cut() {
    check("/a#b", "/a", None, "");
    check("/a#b?c", "/a", None, "");
    check("/a?b#c", "/a", Some("b"), "");
    check("/a.x#", "/a.x", None, "x");
    check("/a?b#c?d#e", "/a", Some("b"), "");
}

#[test]
fn an_empty_path_is_the_root() {
    check("", "/", None, "");
    check("?x", "/", Some("x"), "");
    check("?x#y", "/", Some("x"), "");
}

#[test]
fn slashes_stay_when_asked_to() {
    check_with(false, "//a///b", "//a///b", None, "");
    check_with(false, "/a//../b", "/a/b", None, "");
    check_with(false, "//../a", "/a", None, "");
    check_with(false, "/a%2f%2fb", "/a//b", None, "");
}

#[test]
fn refused_targets() {
    for raw in [
        "/..",
        "/../",
        "/../a",
        "/a/../..",
        "/a/../../b",
        "/%2e%2e/a",
        "/..?x",
        "/..#x",
        "//..",
        "/./..",
        "/%00",
        "/a%00b",
        "/%",
        "/%4",
        "/%4g",
        "/%g4",
        "/a%",
        "/a%2",
        "/a%?b",
        "/a%4#",
    ] {
        let got = normalise(raw.as_bytes(), true, &mut Vec::new());
        assert_eq!(got, Err(Violation::InvalidTarget), "{raw}");
    }
}

#[test]
fn flags() {
    let flags = |raw: &str| {
        let got = normalise(raw.as_bytes(), true, &mut Vec::new()).unwrap();
        (got.complex, got.quoted, got.plus)
    };
    assert_eq!(flags("/a+b"), (false, false, true));
    assert_eq!(flags("/%2b"), (true, true, true));
    assert_eq!(flags("//a"), (true, false, false));
    assert_eq!(flags("/a?%41+"), (false, false, false));
}
