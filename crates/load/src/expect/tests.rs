#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use super::*;
use crate::capture::CapturedMessage;
use crate::value::{Value, parse_json};
use crate::vars::{VariableNames, Vars};

const BODY: &str = r#"{"token":"abc","user":{"roles":["a"],"none":null},"list":[]}"#;

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap()
}

/// The result of a check on a 200 with [`BODY`] (or another body) and some headers.
fn checked(kind: &str, expected: &str, content_type: &str, body: &str) -> CheckResult {
    let header = |name: &str| match name {
        "content-type" if !content_type.is_empty() => content_type.into(),
        "x-cache" => "Hit from cloudfront".into(),
        "etag" => "v1".into(),
        _ => Value::Undefined,
    };
    let message = CapturedMessage::new(body.as_bytes(), &header);
    check(kind, &json(expected), &CheckedAnswer::new(200, &message)).unwrap()
}

#[test]
fn every_check() {
    let json_type = "application/json; charset=utf-8";
    for (kind, expected, ok, got) in [
        ("statusCode", "200", true, "200"),
        ("statusCode", "\"200\"", true, "200"),
        ("statusCode", "[404,200]", true, "200"),
        ("statusCode", "404", false, "200"),
        ("notStatusCode", "404", true, "200"),
        ("notStatusCode", "[200,201]", false, "200"),
        ("contentType", "\"json\"", true, "json"),
        ("contentType", "\"application/JSON; charset=utf-8\"", true, json_type),
        ("contentType", "\"application/json\"", false, json_type),
        ("hasProperty", "\"user.roles[0]\"", true, "user.roles[0]"),
        ("hasProperty", "\"user.none\"", true, "user.none"),
        ("hasProperty", "\"nosuch\"", false, "response body has no nosuch property"),
        ("notHasProperty", "\"nosuch\"", true, "nosuch"),
        ("notHasProperty", "\"token\"", false, "response body has token property"),
        ("hasHeader", "\"etag\"", true, "etag"),
        ("hasHeader", "\"nosuch\"", false, "response has no nosuch header"),
        ("headerEquals", "[\"etag\",\"v1\"]", true, "v1"),
        ("headerEquals", "[\"etag\",\"v2\"]", false, "v1"),
        ("headerEquals", "[\"nosuch\",\"v2\"]", false, "response has no nosuch header"),
        ("equals", "[\"a\",\"a\"]", true, "a, a"),
        ("equals", "[1,\"1\",true]", false, "1, 1, true"),
        ("equals", "[]", false, ""),
        ("matchesRegexp", "\"object O\"", true, "true"),
        ("matchesRegexp", "\"abc\"", false, "false"),
        ("jmespath", "\"user.roles[?@=='a']\"", true, "user.roles[?@=='a']"),
        ("jmespath", "\"user.nosuch\"", false, "user.nosuch"),
        ("jmespath", "\"list\"", true, "list"),
        ("jpath", "\"token == 'abc'\"", true, "token == 'abc'"),
        ("cdnHit", "true", true, "x-cache is Hit from cloudfront"),
        ("cdnHit", "false", false, "cache status header not found"),
    ] {
        let outcome = checked(kind, expected, json_type, BODY);
        assert_eq!((outcome.ok, &*outcome.got.to_text()), (ok, got), "{kind} {expected}");
        assert!(is_known(kind));
        assert!(kind == "headerEquals" || outcome.kind == kind);
    }
    assert_eq!(checked("headerEquals", "[\"etag\",1]", "", BODY).kind, "header etag values equals");
    assert_eq!(
        check("nosuch", &Value::Null, &CheckedAnswer::new(200, &CapturedMessage::new(b"", &|_| Value::Undefined))),
        None
    );
}

#[test]
fn bodies_that_are_no_json() {
    for (content_type, body, kind, expected, ok, got) in [
        ("application/json", "{oops", "contentType", "\"json\"", false, "could not parse response body as JSON"),
        ("application/json", "null", "contentType", "\"json\"", false, "could not parse response body as JSON"),
        ("application/json", "5", "contentType", "\"json\"", false, "content-type is application/json"),
        ("text/html", "{}", "contentType", "\"json\"", false, "content-type is text/html"),
        ("", "{}", "contentType", "\"text/html\"", false, "content-type header not set"),
        ("application/problem+json", "{\"a\":1}", "hasProperty", "\"a\"", true, "a"),
        ("text/html", "{\"a\":1}", "hasProperty", "\"a\"", false, "response body is not an object"),
        ("text/html", "<b>abc</b>", "matchesRegexp", "\"a.c\"", true, "true"),
        ("text/html", "{}", "jmespath", "\"a\"", false, "response body is not an object"),
    ] {
        let outcome = checked(kind, expected, content_type, body);
        assert_eq!((outcome.ok, &*outcome.got.to_text()), (ok, got), "{kind} {content_type} {body}");
    }
    for (kind, expected) in [("matchesRegexp", "\"(\""), ("jmespath", "\"a[\"")] {
        let outcome = checked(kind, expected, "application/json", BODY);
        assert!(!outcome.ok && outcome.got.as_str().is_some_and(|got| got.len() > 10), "{outcome:?}");
    }
}

#[test]
fn lines() {
    let mut names = VariableNames::default();
    let slot = names.slot("role");
    let mut vars = Vars::new(Arc::new(names));
    vars.set(slot, json("[1,2]"));
    let sent = json(r#"{"a":1}"#);
    let mut exchange = Exchange {
        method: "GET",
        url: "http://127.0.0.1:8080/item?t=1#x",
        name: None,
        json: None,
        headers: &[("etag", "v1")],
        body: &"é".repeat(600),
        vars: &vars,
        is_coloured: false,
    };
    let good = checked("statusCode", "200", "", BODY);
    let bad = checked("statusCode", "[201,404]", "", BODY);
    assert_eq!(pretty(&[], &exchange), "");
    assert_eq!(pretty(std::slice::from_ref(&good), &exchange), "* GET /item?t=1 \n\n  ok statusCode 200 \n");
    exchange.name = Some("the item");
    exchange.json = Some(&sent);
    let expected = format!(
        "* GET /item?t=1 - the item\n\n  not ok statusCode 200 \n  expected: 201,404\n       got: 200\n  Request params:\n    \
         http://127.0.0.1:8080/item?t=1#x\n    {{\n      \"a\": 1\n    }}\n  Headers:\n  etag: v1\n  Body:\n{}\n  \
         User variables:\n    role: 1,2\n",
        "é".repeat(512)
    );
    assert_eq!(pretty(std::slice::from_ref(&bad), &exchange), expected);
    let line = json_line(&[good, bad], None, "http://a");
    let results = r#"[{"ok":true,"expected":200,"type":"statusCode","got":200},{"ok":false,"expected":[201,404],"type":"statusCode","got":200}]"#;
    assert_eq!(line, format!(r#"{{"url":"/","results":{results}}}"#));
    exchange.is_coloured = true;
    assert!(
        pretty(&[checked("statusCode", "200", "", BODY)], &exchange).starts_with("\u{1b}[34m* GET /item?t=1\u{1b}[39m")
    );
}
