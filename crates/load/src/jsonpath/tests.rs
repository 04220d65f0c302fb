#![allow(clippy::unwrap_used)]
use super::*;
use crate::npm::{Nothing, QueriedBody};
use crate::random;
use crate::value::{extract, parse_json};
use proptest::prelude::*;
use std::time::Duration;

const SHOP: &str = r#"{"shop":{"wares":[
    {"kind":"tool","maker":"Ada","label":"Saw","cost":8.5},
    {"kind":"toy","maker":"Bo","label":"Kite","cost":12},
    {"kind":"toy","maker":"Cy","label":"Top","code":"0-5","cost":9},
    {"kind":"toy","maker":"Dee","label":"Sled","code":"0-3","cost":23,"tags":["a","b"]}],
    "van":{"colour":"red","cost":20},"a.b":1,"x-y":[0,false,null,""]},
    "n":0,"nul":null,"e":"","list":[1,2,3,4,5],"deep":{"a":{"a":{"a":1}}},"$ref":"r"}"#;

/// All matches, by jsonpath-plus.
fn find(path: &str) -> Result<String, Nothing> {
    let ask = |all| npm::query(QueriedBody::Text(SHOP.as_bytes()), path, all);
    let one = ask(false)?;
    let list = match ask(true) {
        _ if one == Value::Undefined => vec![],
        Ok(Value::List(list)) if one != Value::List(list.clone()) => list.to_vec(),
        _ => vec![one],
    };
    Ok(Value::from(list).to_json().unwrap())
}

/// Each result agrees with jsonpath-plus 10.4.0 under Node 20.
#[test]
fn as_jsonpath_plus() {
    for (path, found) in [
        ("$.shop.wares[0].label", r#"["Saw"]"#),
        ("shop.wares[1].label", r#"["Kite"]"#),
        ("$.shop.wares[*].maker", r#"["Ada","Bo","Cy","Dee"]"#),
        ("$..maker", r#"["Ada","Bo","Cy","Dee"]"#),
        ("$.shop..cost", "[8.5,12,9,23,20]"),
        ("$..wares[(@.length-1)].label", r#"["Sled"]"#),
        ("$..wares[-1:].label", r#"["Sled"]"#),
        ("$..wares[0,1].label", r#"["Saw","Kite"]"#),
        ("$..wares[:2].label", r#"["Saw","Kite"]"#),
        ("$..wares[?(@.code)].label", r#"["Top","Sled"]"#),
        ("$..wares[?(@.cost<10 && @.kind==\"toy\")].label", r#"["Top"]"#),
        ("$..wares[?(@.label.match(/^S/))].label", r#"["Saw","Sled"]"#),
        ("$..wares[?(/kite/i.test(@.label))].label", r#"["Kite"]"#),
        ("$..*[?(@property===\"cost\" && @ > 10)]", "[20,12,23]"),
        ("$..wares[?(@property === 1)].label", r#"["Kite"]"#),
        ("$.shop.wares[0].label~", r#"["label"]"#),
        ("$.shop.*~", r#"["wares","van","a.b","x-y"]"#),
        ("$.shop.van.cost^.colour", r#"["red"]"#),
        ("$.shop.van.cost^^.n", "[]"),
        ("$.shop.van.cost^^^.n", "[0]"),
        ("$['shop']['a.b']", "[1]"),
        ("$.shop[\"x-y\"][1]", "[false]"),
        ("$.shop.x-y[*]", r#"[0,false,null,""]"#),
        ("$.list.length", "[5]"),
        ("$.shop.van.colour[0]", r#"["r"]"#),
        ("$.shop.van.colour.length", "[3]"),
        ("$.list[-1]", "[]"),
        ("$.list[1:3]", "[2,3]"),
        ("$.list[::2]", "[1,3,5]"),
        ("$.list[0:0]", "[1,2,3,4,5]"),
        ("$.list[-2:]", "[4,5]"),
        ("$.list[1,3]", "[2,4]"),
        ("$.list.0", "[1]"),
        ("$.n", "[0]"),
        ("$.nul", "[null]"),
        ("$.nosuch", "[]"),
        ("$..a", r#"[{"a":{"a":1}},{"a":1},1]"#),
        ("$.shop.wares[?(@.tags && @.tags.includes(\"a\"))].label", r#"["Sled"]"#),
        ("$..cost@number()", "[8.5,12,9,23,20]"),
        ("$.shop.van.*@string()", r#"["red"]"#),
        ("$.shop.van[colour,cost]", r#"["red",20]"#),
        ("$.$ref", r#"["r"]"#),
        ("$.shop.wares[?(@.maker.indexOf(\"De\")===0)].cost", "[23]"),
        ("$.shop.wares[?(@.cost*2>40 ? true : false)].label", r#"["Sled"]"#),
        ("$.shop.wares[?(!@.code)].label", r#"["Saw","Kite"]"#),
        ("$.shop.wares[?(@.code===undefined)].label", r#"["Saw","Kite"]"#),
        ("$.shop.wares[?(typeof @.cost===\"number\")].cost", "[8.5,12,9,23]"),
        ("$.shop.wares[?(@.kind=='toy')].label", r#"["Kite","Top","Sled"]"#),
        ("$.shop.wares[?(@root.n===0)].cost", "[8.5,12,9,23]"),
        ("$.shop.wares[?(@parent.length===4)].cost", "[]"),
        ("$.list[(@.length-1)]", "[5]"),
        ("$.list[?(@path === \"$['list'][2]\")]", "[3]"),
        ("$.shop.wares[?(x = @.cost, x > 20)].label", r#"["Sled"]"#),
        ("$.shop.wares[?(@.maker.length === 3 && @.maker.charCodeAt(0) === 65)].label", r#"["Saw"]"#),
        ("$.shop.wares[?(@.kind===\"toy\")][?(@property===\"label\")]", r#"["Kite","Top","Sled"]"#),
    ] {
        assert_eq!(find(path).as_deref(), Ok(found), "{path}");
    }
}

/// jsonpath-plus throws in these cases; Artillery then takes the empty text.
#[test]
fn an_exception_ends_the_query() {
    for path in [
        "$.shop.wares[?(@.tags.length>1)]",
        "$..[?(@.cost>20)].label",
        "$.list[?(@.x.y==1)]",
        "$.list[?(foo==1)]",
        "$.list[?(@>3)]",
        "$.list[?(@.constructor.constructor('1')())]",
        "constructor",
    ] {
        assert_eq!(find(path), Err(Nothing::Failed), "{path}");
    }
}

#[test]
fn mistakes_are_named() {
    for (path, why) in [
        ("$.a[?(@.b ==)]", "Expected expression"),
        ("$.a[?(@.b]", "Unexpected"),
        ("$.a[?(process.exit())]", "process is not defined"),
        ("$.a[?(@>3)]", "Unexpected \"@\""),
        ("$.a[?(@@)]", "Unexpected \"@\""),
    ] {
        let mistake = JsonPath::new(path).mistake();
        assert!(mistake.as_ref().is_some_and(|mistake| mistake.contains(why)), "{path}: {mistake:?}");
    }
    for path in ["$.a", "$.a[?(@.b.c > 1)]", "$..a[(@.length-1)]", "$.a[?(@.tags.includes('x'))]"] {
        assert_eq!(JsonPath::new(path).mistake(), None, "{path}");
    }
}

#[test]
fn work_without_end_is_stopped() {
    npm::limit(Duration::from_millis(200));
    let body = format!("{}1{}", "[1,1,".repeat(60), "]".repeat(60));
    let found = npm::query(QueriedBody::Text(body.as_bytes()), "$..*..*..*..*..*", true);
    assert_eq!(found, Err(Nothing::Failed));
    let path = format!("$[?({}1)]", "(".repeat(5000));
    assert!(JsonPath::new(&path).mistake().is_some());
    assert_eq!(npm::query(QueriedBody::Text(b"[1]"), &path, true), Err(Nothing::Failed));
    // The engine goes on.
    assert_eq!(find("$.n"), Ok("[0]".to_owned()));
}

#[test]
fn plain_paths_need_no_tree() {
    for (path, is_plain, has_keys) in [
        ("$.a.b[0]", true, true),
        ("$.a['b c']", true, true),
        ("a.b", true, true),
        ("$[\"a\"][0].x-y", true, true),
        ("$.a[*].b", true, false),
        ("$.a.length", true, false),
        ("$.a.*", false, false),
        ("$", false, false),
        ("$..a", true, false),
        ("$..a..b", false, false),
        ("$..", false, false),
        ("$..*", false, false),
        ("toString", false, false),
        ("$.a['b.c']", false, false),
        ("$.a[-1]", false, false),
    ] {
        let path = JsonPath::new(path);
        assert_eq!((path.is_plain(), path.keys().is_some()), (is_plain, has_keys), "{path:?}");
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value as Json;
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-2_i32..3).prop_map(Json::from),
        "[ab0]{0,2}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((member(), inner), 0..4).prop_map(|pairs| object(pairs)),
        ]
    })
}

fn object(pairs: Vec<(&str, serde_json::Value)>) -> serde_json::Value {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<serde_json::Map<_, _>>().into()
}

/// Names that members and steps share, so that paths find something.
fn member() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a",
        "b",
        "0",
        "1",
        "00",
        "x-y",
        "x y",
        "length",
        "*",
        "$ref",
        "__proto__",
        "toString",
        "..",
    ])
}

fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        member().prop_map(|name| format!(".{name}")),
        member().prop_map(|name| format!("..{name}")),
        member().prop_map(|name| format!("['{name}']")),
        member().prop_map(|name| format!("[\"{name}\"]")),
        (0..3).prop_map(|index| format!("[{index}]")),
        Just("[*]".to_owned()),
        Just("[00]".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// weir's own answer for a plain path is jsonpath-plus' answer.
    #[test]
    fn plain_paths_find_the_same(
        start in prop_oneof![Just("$".to_owned()), Just("$".to_owned()), member().prop_map(str::to_owned)],
        steps in prop::collection::vec(step(), 0..5),
        body in value(),
        all: bool,
    ) {
        let text = format!("{start}{}", steps.concat());
        let body = body.to_string();
        let path = JsonPath::new(&text);
        let root = parse_json(body.as_bytes()).unwrap();
        if let Some(found) = path.find(&root).filter(|_| root.is_object()) {
            random::seed(1);
            let own = found.taken(all);
            random::seed(1);
            let theirs = npm::query(QueriedBody::Text(body.as_bytes()), &text, all);
            prop_assert_eq!(own, theirs.unwrap_or_else(|_| "".into()), "{} {}", text, body);
        }
        if let Some(keys) = path.keys()
            && let Ok(Some(value)) = extract(body.as_bytes(), keys)
        {
            prop_assert_eq!(Ok(value), npm::query(QueriedBody::Text(body.as_bytes()), &text, false), "{} {}", text, body);
        }
    }
}

mod mutate {
    use super::*;

    /// A path of a script on a body of a server: values of the body, or nothing.
    #[test]
    fn paths_and_bodies() {
        let seeds = [
            "$.a[0].b\0{\"a\":[{\"b\":1},{\"b\":[2]}],\"length\":3}",
            "$..b\0{\"b\":{\"b\":\"x\"}}",
            "$.a[*]\0{\"a\":[1,null,{}]}",
            "a['b']\0[]",
        ];
        let words = [
            "$", ".", "..", "[", "]", "*", "'", "\"", "0", "-1", "length", "\0", "{", "}", ":", ",", "1e999",
            "\\u0000", "\\ud800", "é",
        ];
        weir_mutate::mutate(&seeds, &words, |bytes| {
            let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
            let path = JsonPath::new(&String::from_utf8_lossy(&bytes[..at]));
            let Ok(body) = crate::value::parse_json(bytes.get(at + 1..).unwrap_or_default()) else { return };
            if let Some(found) = path.find(&body) {
                let _ = (found.taken(true), found.taken(false));
            }
        });
    }
}
