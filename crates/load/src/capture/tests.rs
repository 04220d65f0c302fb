#![allow(clippy::unwrap_used)]
use super::*;
use crate::random;
use crate::random::Builtins;
use crate::value::parse_json;
use crate::vars::VariableNames;

const BODY: &str = r#"{"token":"abc","n":0,"f":false,"e":"","nul":null,"list":[1,2,3],"one":[7],"o":{"a":{"b":5}}}"#;
const PAGE: &str =
    "<html><a href=/one class=x id=a>1</a><a href=/two class=x>2</a><input checked type=checkbox></html>";

fn header(name: &str) -> Value {
    match name {
        "etag" => "\"v1\"".into(),
        _ => Value::Undefined,
    }
}

fn template(text: &str) -> Template {
    Template::parse(text, &mut VariableNames::default())
}

fn taken(what: &Extract, body: &str) -> Result<Value, String> {
    let vars = Vars::new(Arc::new(VariableNames::default()));
    what.value(&CapturedMessage::new(body.as_bytes(), &header), &vars, &Builtins)
}

#[test]
fn of_json() {
    let empty = || Ok(Value::from(""));
    for (path, multiple, expected) in [
        ("$.token", true, Ok("abc".into())),
        ("token", true, Ok("abc".into())),
        ("$.n", true, Ok(Value::Number(0.0))),
        ("$.nul", true, Ok(Value::Null)),
        ("$.nosuch", true, Ok(Value::Undefined)),
        ("$.one[*]", true, Ok(Value::Number(7.0))),
        ("$.list", true, Ok(parse_json(b"[1,2,3]").unwrap())),
        ("$.o.a.b", true, Ok(Value::Number(5.0))),
        ("$.token[0]", true, Ok("a".into())),
        ("$.list.length", true, Ok(Value::Number(3.0))),
        ("$.list[?(@@)]", true, empty()),
        ("$.list[?(@.nosuch.deep)]", true, empty()),
        ("$.list[?(@ > 1 && @ < 3)]", true, Ok(Value::Number(2.0))),
        // All of them; a falsy value counts as nothing.
        ("$.list[*]", false, Ok(parse_json(b"[1,2,3]").unwrap())),
        ("$.one[*]", false, Ok(parse_json(b"[7]").unwrap())),
        ("$.o.a.b", false, Ok(Value::Number(5.0))),
        ("$.nosuch", false, empty()),
        ("$.n", false, empty()),
        ("$.f", false, empty()),
    ] {
        let what = Extract::json(template(path), multiple);
        assert_eq!(taken(&what, BODY), expected, "{path} {multiple}");
    }
    let what = Extract::json(template("$.token"), true);
    for body in ["", "hello", "{\"token\":1", "{\"token\":1} x"] {
        assert!(taken(&what, body).is_err(), "{body}");
    }
    assert_eq!(taken(&what, "5"), empty());
}

#[test]
fn of_several_one_at_random() {
    random::seed(5);
    let what = Extract::json(template("$.list[*]"), true);
    let drawn: Vec<f64> = (0..60).map(|_| taken(&what, BODY).unwrap().to_number()).collect();
    assert!([1.0, 2.0, 3.0].iter().all(|number| drawn.contains(number)));
}

#[test]
fn of_text() {
    for (regexp, group, flags, expected) in [
        ("\"n\":(\\d)", None, "", "\"n\":0"),
        ("token\":\"(.)(.)", Some("2"), "", "b"),
        ("token\":\"(?<first>.)", Some("first"), "", "a"),
        ("TOKEN", None, "i", "token"),
        ("TOKEN", None, "", ""),
        ("token", Some("7"), "", "token"),
    ] {
        let what = Extract::regexp(template(regexp), group.map(str::to_owned), flags.to_owned());
        assert_eq!(taken(&what, BODY), Ok(expected.into()), "{regexp}");
    }
    let what = Extract::regexp(template("(?<x>a)(?<y>z)?"), Some("y".to_owned()), String::new());
    assert_eq!(taken(&what, "a"), Ok(Value::Undefined));
    assert_eq!(taken(&Extract::header(template("etag")), BODY), Ok("\"v1\"".into()));
    assert_eq!(taken(&Extract::header(template("ETag")), BODY), Ok("".into()));
    assert_eq!(taken(&Extract::none(), BODY), Ok("".into()));
    assert_eq!(taken(&Extract::xpath(template("//b/@c")), "<a><b c='7'/></a>"), Ok("7".into()));
}

#[test]
fn of_a_page() {
    for (selector, attr, index, expected) in [
        ("a", "href", Index::At(0), Value::from("/one")),
        ("a.x", "href", Index::At(1), "/two".into()),
        ("a", "href", Index::Last, "/two".into()),
        ("a", "href", Index::At(2), Value::Undefined),
        ("a#a", "nosuch", Index::At(0), Value::Undefined),
        ("input[type=checkbox]", "checked", Index::At(0), "checked".into()),
        ("nosuch", "href", Index::Last, Value::Undefined),
    ] {
        let what = Extract::selector(template(selector), Some(template(attr)), index);
        assert_eq!(taken(&what, PAGE), Ok(expected), "{selector}");
    }
    let all = Extract::selector(template("a#a"), None, Index::Random);
    assert_eq!(taken(&all, PAGE).unwrap().get(&value::Path::parse("class")), "x".into());
}

#[test]
fn mistakes_are_known_beforehand() {
    for what in [
        Extract::regexp(template("("), None, String::new()),
        Extract::json(template("$.a[?(@@)]"), true),
        Extract::selector(template("a:eq(1)"), None, Index::Last),
        Extract::xpath(template("//[")),
    ] {
        assert!(what.problem().is_some(), "{what:?}");
    }
    assert_eq!(Extract::json(template("$.{{ name }}["), true).problem(), None);
}

/// The captured value, if the virtual user goes on.
fn captured(path: &str, strict: Option<bool>, default: Option<bool>) -> Option<Value> {
    let mut names = VariableNames::default();
    let slot = names.slot("x");
    let what = Extract::json(Template::parse(path, &mut names), true);
    let capture = Capture { what, slot, path: Vec::new(), strict };
    let mut vars = Vars::new(Arc::new(names));
    let message = CapturedMessage::new(BODY.as_bytes(), &header);
    take((&[capture], &[]), &message, &mut vars, &Builtins, default).then(|| vars.get(slot).clone())
}

#[test]
fn nothing_found_fails_unless_tolerated() {
    for (path, strict, default, passes) in [
        ("$.token", None, None, true),
        ("$.n", None, None, true),
        ("$.nul", None, None, true),
        ("$.f", None, None, true),
        ("$.e", None, None, false),
        ("$.nosuch", None, None, false),
        ("$.nosuch", Some(true), None, false),
        ("$.nosuch", Some(false), None, true),
        ("$.nosuch", Some(false), Some(true), true),
        ("$.nosuch", None, Some(true), false),
        ("$.nosuch", None, Some(false), true),
        ("$.nosuch", Some(true), Some(false), false),
    ] {
        assert_eq!(captured(path, strict, default).is_some(), passes, "{path} {strict:?} {default:?}");
    }
    assert_eq!(captured("$.e", Some(false), None), Some("".into()));
}

#[test]
fn all_or_nothing() {
    let mut names = VariableNames::default();
    let (a, b) = (names.slot("a"), names.slot("b"));
    let mut capture = |path: &str, slot: VariableSlot, to: &str| {
        let path_to = if to.is_empty() { Vec::new() } else { value::Path::parse(to).keys };
        Capture { what: Extract::json(Template::parse(path, &mut names), true), slot, path: path_to, strict: None }
    };
    let good = [capture("$.token", a, ""), capture("$.o", b, "c[0]")];
    let bad = [capture("$.token", a, ""), capture("$.nosuch", b, "")];
    let second_counts = [capture("$.nosuch", a, ""), capture("$.n", a, "")];
    let same = |value: f64, strict| CaptureMatch {
        what: Extract::json(template("$.n"), true),
        value: Tree::parse(&Value::Number(value), &mut VariableNames::default()),
        strict,
    };
    let fresh = Vars::new(Arc::new(names));
    let message = CapturedMessage::new(BODY.as_bytes(), &header);
    for (captures, matches, result) in [
        (&good, vec![], Some(r#"["abc",{"c":[{"a":{"b":5}}]}]"#)),
        (&bad, vec![], None),
        (&second_counts, vec![], Some("[0,null]")),
        (&good, vec![same(1.0, None)], None),
        (&second_counts, vec![same(0.0, None), same(1.0, Some(false))], Some("[0,null]")),
    ] {
        let mut vars = fresh.clone();
        let goes_on = take((captures, &matches), &message, &mut vars, &Builtins, None);
        let found = Value::from(vec![vars.get(a).clone(), vars.get(b).clone()]).to_json().unwrap();
        assert_eq!((goes_on, found.as_str()), (result.is_some(), result.unwrap_or("[null,null]")));
    }
}

#[test]
fn messages_of_sockets() {
    let vars = Vars::new(Arc::new(VariableNames::default()));
    let message = CapturedMessage::of_value(parse_json(b"[{\"id\":3},\"x\"]").unwrap());
    let value = |what: Extract| what.value(&message, &vars, &Builtins);
    assert_eq!(value(Extract::json(template("$.0.id"), true)), Ok(Value::Number(3.0)));
    assert_eq!(value(Extract::regexp(template("x\"]$"), None, String::new())), Ok("x\"]".into()));
    let text = CapturedMessage::of_value("{\"id\":4}".into());
    assert_eq!(Extract::json(template("id"), true).value(&text, &vars, &Builtins), Ok(Value::Number(4.0)));
}

#[test]
fn a_plan_may_be_shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Capture>();
    shared::<CaptureMatch>();
    shared::<crate::expression::Expression>();
}
