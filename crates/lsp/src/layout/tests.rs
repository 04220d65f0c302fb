#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use crate::under::is_opaque;
use proptest::prelude::*;
use weir_conf::{Statement, parse};

fn laid_out(text: &str) -> String {
    String::from_utf8(layout(text.as_bytes(), "    ").expect(text)).unwrap()
}

/// The words with their quotes, blocks and comments of a text, without its layout.
fn content(bytes: &[u8]) -> (String, Vec<Vec<u8>>) {
    fn words(statements: &[Statement], bytes: &[u8], out: &mut String) {
        for statement in statements {
            for word in statement.words() {
                out.push_str(&format!("{:?} ", word.at.span.of(bytes)));
            }
            match &statement.block {
                Some(block) => {
                    out.push('{');
                    words(block, bytes, out);
                    out.push('}');
                }
                None => out.push(';'),
            }
        }
    }
    let parsed = parse(bytes, 0, &is_opaque);
    assert_eq!(parsed.problems, []);
    let mut out = String::new();
    words(&parsed.statements, bytes, &mut out);
    (out, parsed.comments.into_iter().map(|comment| comment.text).collect())
}

/// The layout of a text, if it has one: its content is the same, and its layout is itself.
fn checked(bytes: &[u8], indent: &str) -> Option<Vec<u8>> {
    let out = layout(bytes, indent)?;
    assert_eq!(content(bytes), content(&out), "{}", String::from_utf8_lossy(bytes));
    let again = layout(&out, indent).expect("a layout has a layout");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(text(&out), text(&again), "{:?}", text(bytes));
    Some(out)
}

#[test]
fn statements_stand_on_lines_of_their_own() {
    let text = "http{server{listen 80;server_name   a.b\tc.d;location /{return 404;}location = /x { } }}";
    let expected = "http {\n    server {\n        listen 80;\n        server_name a.b c.d;\n        location / {\n            return 404;\n        }\n        location = /x {}\n    }\n}\n";
    assert_eq!(laid_out(text), expected);
    assert_eq!(laid_out("if ($a = \"b\") { }"), "if ($a = \"b\") {}\n");
    assert_eq!(String::from_utf8(layout(b"a { b; }", "\t").unwrap()).unwrap(), "a {\n\tb;\n}\n");
}

#[test]
fn comments_stay_at_their_place() {
    let text = "# a\nhttp { # b\n# c\n  gzip on; # d\n  # e\n}   # f\n#g";
    let expected = "# a\nhttp { # b\n    # c\n    gzip on; # d\n    # e\n} # f\n#g\n";
    assert_eq!(laid_out(text), expected);
    let text = "set $a # why\n b;\nif ( # c\n $a ) # d\n{ e; }";
    let expected = "set $a # why\n    b;\nif ( # c\n    $a ) # d\n    {\n    e;\n}\n";
    assert_eq!(laid_out(text), expected);
}

#[test]
fn one_empty_line_stays() {
    let text = "\n\na;\n\n\n\nb {\n\n  c;\n\n  d;\n\n}\n\ne;\n\n\n";
    assert_eq!(laid_out(text), "a;\n\nb {\n    c;\n\n    d;\n}\n\ne;\n");
    assert_eq!(laid_out("a;\r\n\r\n\r\nb;"), "a;\r\n\r\nb;\r\n");
    assert_eq!(laid_out("# a\r\nb;\r\n"), "# a\r\nb;\r\n");
    assert_eq!(laid_out("a;\r\n"), "a;\r\n");
    assert_eq!(laid_out(" \n "), "");
}

#[test]
fn aligned_columns_stay_and_other_spaces_go() {
    let types = "types {\n  text/html                             html htm;\n  text/css                              css;\n  application/very-long-name-of-a-type\n                                        long;\n}";
    let expected = "types {\n    text/html                             html htm;\n    text/css                              css;\n    application/very-long-name-of-a-type\n                                          long;\n}\n";
    assert_eq!(laid_out(types), expected);
    assert_eq!(laid_out("sendfile        on;\nkeepalive_timeout  65;"), "sendfile on;\nkeepalive_timeout 65;\n");
    let headers = "proxy_set_header   Host      $host;\nproxy_set_header   X-Real-IP $remote_addr;";
    assert_eq!(laid_out(headers), format!("{headers}\n"));
    let comments = "listen 80;        # a\nserver_name a.b;  # b";
    assert_eq!(laid_out(comments), format!("{comments}\n"));
}

#[test]
fn a_statement_of_several_lines_keeps_them() {
    let text = "log_format  main  '$a'\n                  '$b'\n  '$c';\nroot\n/x;";
    let expected = "log_format main '$a'\n                '$b'\n    '$c';\nroot\n    /x;\n";
    assert_eq!(laid_out(text), expected);
    let json = "log_format j '{\n  \"a\": \"$b\"\n}'   x;";
    assert_eq!(laid_out(json), "log_format j '{\n  \"a\": \"$b\"\n}' x;\n");
}

#[test]
fn other_languages_stay_as_they_are() {
    let text = "location / {\ncontent_by_lua_block {\n  local a = {1}\n    ngx.say('}')\n }\n}";
    assert_eq!(laid_out(text), "location / {\n    content_by_lua_block {\n  local a = {1}\n    ngx.say('}')\n }\n}\n");
}

#[test]
fn an_incomplete_file_is_left_alone() {
    for text in ["a", "a {", "a; }", "a \"b;", "a; ; b;", "{ }", "x_by_lua_block { if", "a \"b\"c;"] {
        assert_eq!(layout(text.as_bytes(), "    "), None, "{text}");
    }
    let deep = format!("{}{}", "a {".repeat(300), "}".repeat(300));
    assert_eq!(layout(deep.as_bytes(), "    "), None);
    let wide = format!("{}{}{}", "a {".repeat(256), "b;".repeat(80_000), "}".repeat(256));
    assert_eq!(layout(wide.as_bytes(), "                "), None);
}

/// Statements of random words, with random white space and comments between all of their parts.
fn text() -> impl Strategy<Value = String> {
    let gap = || {
        prop::sample::select(vec![
            " ",
            "  ",
            "   ",
            "\t",
            "\n",
            "\n\n",
            " # x\n",
            "\n  # y \n",
            "\r\n",
            "\n\n\n    ",
            "\n        ",
        ])
    };
    let free = || prop::sample::select(vec!["", " ", "  ", "\n", "\n\n\n", " # z\n", "\n # t\r\n"]);
    let word = || {
        prop::sample::select(vec![
            "a",
            "bb",
            "location",
            "~",
            "\"q r\"",
            "'s;{'",
            "$x",
            "${y}z",
            "\\;",
            "\"m\n n\"",
            "한",
            "'u'",
        ])
    };
    let statement = (word(), prop::collection::vec((gap(), word()), 0..4), free()).prop_map(|(name, rest, end)| {
        let rest: String = rest.iter().map(|(gap, word)| format!("{gap}{word}")).collect();
        // A comment needs a space before it, because `a#` is a word.
        let end = if end.starts_with(' ') || end.starts_with('\n') || end.is_empty() { end } else { " " };
        format!("{name}{rest}{end}")
    });
    let leaf = (statement.clone(), free()).prop_map(|(statement, after)| format!("{statement};{after}"));
    let block = leaf.prop_recursive(4, 40, 5, move |inner| {
        (statement.clone(), free(), prop::collection::vec(inner, 0..5), free())
            .prop_map(|(head, before, all, after)| format!("{head}{{{before}{}}}{after}", all.concat()))
    });
    (free(), prop::collection::vec(block, 0..6)).prop_map(|(before, all)| format!("{before}{}", all.concat()))
}

proptest! {
    #[test]
    fn only_the_layout_changes(text in text(), indent in prop::sample::select(vec!["    ", "  ", "\t", ""])) {
        let is_complete = parse(text.as_bytes(), 0, &is_opaque).problems.is_empty();
        prop_assert_eq!(checked(text.as_bytes(), indent).is_some(), is_complete, "{:?}", text);
    }

    #[test]
    fn any_bytes_are_laid_out_or_left_alone(bytes in prop::collection::vec(prop::sample::select(b"ab \t\r\n;{}\"'#\\$)".to_vec()), 0..60)) {
        checked(&bytes, "    ");
    }
}
