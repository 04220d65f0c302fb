#![allow(clippy::unwrap_used)]
use super::*;
use crate::value::parse_json;

/// `$five()` is 5, `$echo(n)` its argument, `$tricky()` a template, `$undefined()` nothing.
struct Some5;

impl TemplateFunctions for Some5 {
    fn call(&self, name: &str, arguments: &[Value]) -> Option<Value> {
        match name {
            "$five" => Some(Value::Number(5.0)),
            "$echo" => Some(Value::from(arguments.to_vec())),
            "$tricky" => Some("{{ name }}".into()),
            "$undefined" => Some(Value::Undefined),
            _ => None,
        }
    }
}

const VARS: &str = r#"{"name":"Hassy","n":3,"nul":null,"yes":true,"list":[1,"b"],"obj":{"a":{"b":[{"c-d":7}]}},
    "self":"<{{ self }}>","hop":"x{{ name }}y","dollar":"$& $1","open":"{","p.q":"whole","p":{"q":"deep"},
    "empty":"","my var":"spaced","five 5":"odd"}"#;

fn json(text: &str) -> Value {
    parse_json(text.as_bytes()).unwrap()
}

fn vars(mut names: VariableNames) -> Vars {
    let Value::Map(map) = json(VARS) else { panic!("an object") };
    for key in map.keys() {
        names.slot(key);
    }
    let mut vars = Vars::new(Arc::new(names));
    map.iter().for_each(|(key, value)| vars.set_by_name(key, value.clone()));
    vars
}

/// The value of a text. Checks that all ways to render it agree, unless an unknown function or the word `undefined`
/// is involved.
fn rendered(text: &str) -> Value {
    let mut names = VariableNames::default();
    let template = Template::parse(text, &mut names);
    assert_eq!(template.source(), text);
    let vars = vars(names);
    let value = template.value(&vars, &Some5);
    assert_eq!(render(text, &vars, &Some5), value, "at run time: {text}");
    let mut out = b"#".to_vec();
    assert_eq!(template.write(&vars, &Some5, &mut out), value != Value::Undefined, "{text}");
    let expected = if value.is_object() { value.to_json().unwrap() } else { value.to_string() };
    assert_eq!(String::from_utf8(out).unwrap(), format!("#{expected}"), "{text}");
    value
}

#[test]
fn texts() {
    for (text, expected) in [
        ("string {}", "\"string {}\""),
        ("hello {{name}}", "\"hello Hassy\""),
        ("hello {{ nosuch }}", "\"hello undefined\""),
        ("{{ n }}", "3"),
        ("{{{ n }}}", "3"),
        (" {{ n }}", "\" 3\""),
        ("{{ nul }}", "null"),
        ("a{{ nul }}{{ yes }}", "\"anulltrue\""),
        ("{{ list }}", "[1,\"b\"]"),
        ("l={{ list }}", "\"l=[1,\\\"b\\\"]\""),
        ("{{ obj.a.b[0][\"c-d\"] }}", "7"),
        ("{{ obj['a'].b.length }}", "1"),
        ("{{ obj.nosuch.deep }}!", "\"undefined!\""),
        ("{{ p.q }}", "\"whole\""),
        ("{{ my var }}", "\"spaced\""),
        ("{{ empty }}", "\"\""),
        ("{{ hop }}", "\"x{{ name }}y\""),
        ("-{{ hop }}", "\"-xHassyy\""),
        ("v={{ dollar }}", "\"v=$& $1\""),
        ("{{ open }}{ name }}", "\"Hassy\""),
        ("{{ open }}{{ name }}", "\"Hassy\""),
        ("o={{ obj }}", "\"o={\\\"a\\\":{\\\"b\\\":[{\\\"c-d\\\":7}]}}\""),
        // The third closing brace belongs to the template, even if the author meant it for JSON.
        ("{\"a\":{{ n }}}", "\"{\\\"a\\\":3\""),
        ("{{{{ n }}}}", "\"{3}\""),
        ("{{ a:b }}", "\"{{ a:b }}\""),
        ("{{ a:b }} {{ n }}", "\"{{ a:b }} 3\""),
        ("{{}}", "\"{{}}\""),
    ] {
        assert_eq!(rendered(text), json(expected), "{text}");
    }
}

#[test]
fn calls() {
    for (text, expected) in [
        ("{{ $five() }}", "\"5\""),
        ("{{$five( )}} {{ name }} {{ $five() }}", "\"5 Hassy 5\""),
        ("{{{ $five() }}}", "\"{5}\""),
        ("{{ $echo(1, 2e1, name) }}", "\"1,20,\""),
        ("{{ $undefined() }}", "\"undefined\""),
        ("{{ $tricky() }}", "\"Hassy\""),
        ("-{{ $tricky() }}", "\"-Hassy\""),
        ("{{ five {{ $five() }} }}", "\"odd\""),
        ("{{ $echo('x') }}", "\"{{ $echo('x') }}\""),
        ("{{ $echo(-1) }}", "\"{{ $echo(-1) }}\""),
    ] {
        assert_eq!(rendered(text), json(expected), "{text}");
    }
    assert_eq!(rendered("before {{ $nosuch(1) }} after {{ n }}"), Value::Undefined);
    let template = Template::parse("{{ $a() }} {{ $b(1) }}", &mut VariableNames::default());
    assert_eq!(template.functions().collect::<Vec<_>>(), ["$a", "$b"]);
}

#[test]
fn what_holds_itself_ends() {
    let text = rendered("-{{ self }}").to_string();
    assert_eq!(text, format!("-{}{{{{ self }}}}{}", "<".repeat(EXPANSIONS_MAX), ">".repeat(EXPANSIONS_MAX)));
}

#[test]
fn what_is_no_template_costs_nothing() {
    let mut names = VariableNames::default();
    for text in ["", "abc", "{ x }", "{{ a:b }}", "}}"] {
        assert_eq!(Template::parse(text, &mut names).literal(), Some(text));
    }
    for text in [r#"{"a":[1,{"b":"c"}]}"#, "1", "null", "\"{ x }\"", r#""{{ a:b }}""#] {
        assert_eq!(Tree::parse(&json(text), &mut names).literal(), Some(&json(text)));
    }
    assert!(names.is_empty());
}

#[test]
fn trees() {
    for (tree, expected) in [
        (r#"[1,{"{{k}}":"{{n}}"},null,{"foo":null}]"#, r#"[1,{"undefined":3},null,{"foo":null}]"#),
        (r#"{"{{ name }}":"{{ n }}","z":1}"#, r#"{"z":1,"Hassy":3}"#),
        (r#"{"a":"{{ nosuch }}","b":["{{ nosuch }}"]}"#, r#"{"b":[null]}"#),
        (r#"{"hello.world":{"x":"{{ yes }}"}}"#, r#"{"hello.world":{"x":true}}"#),
        (r#"["hello {{name}}","{{ obj }}"]"#, r#"["hello Hassy",{"a":{"b":[{"c-d":7}]}}]"#),
        (r#"{"a":"{{ nosuch }}"}"#, "{}"),
        (r#""{{ list }}""#, r#"[1,"b"]"#),
    ] {
        let value = json(tree);
        let mut names = VariableNames::default();
        let tree = Tree::parse(&value, &mut names);
        let vars = vars(names);
        let rendered = tree.value(&vars, &Some5);
        assert_eq!(rendered.to_json().unwrap(), expected);
        assert_eq!(render_value(&value, &vars, &Some5), rendered);
        let mut out = Vec::new();
        assert!(tree.write_json(&vars, &Some5, &mut out));
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
