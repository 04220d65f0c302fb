#![allow(clippy::unwrap_used)]
use super::*;
use crate::value::parse_json;

const SHOP: &str = r#"{"shop":{"wares":[
    {"kind":"tool","maker":"Ada","label":"Saw","cost":8.5},
    {"kind":"toy","maker":"Bo","label":"Kite","cost":12},
    {"kind":"toy","maker":"Cy","label":"Top","code":"0-5","cost":9},
    {"kind":"toy","maker":"Dee","label":"Sled","code":"0-3","cost":23,"tags":["a","b"]}],
    "van":{"colour":"red","cost":20},"a.b":1,"x-y":[0,false,null,""]},
    "n":0,"nul":null,"e":"","list":[1,2,3,4,5],"deep":{"a":{"a":{"a":1}}},"$ref":"r"}"#;

fn find(path: &str) -> Result<String, String> {
    let root = parse_json(SHOP.as_bytes()).unwrap();
    let found = JsonPath::parse(path)?.find(&root)?.0;
    Ok(Value::from(found).to_json().unwrap())
}

/// Each result agrees with jsonpath-plus 10 under Node 20.
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
        ("$.shop.wares[?(@.kind===\"toy\")][?(@property===\"label\")]", r#"["Kite","Top","Sled"]"#),
    ] {
        assert_eq!(find(path).unwrap(), found, "{path}");
    }
}

/// jsonpath-plus throws in these cases too; a query then finds nothing.
#[test]
fn an_exception_ends_the_query() {
    for path in
        ["$.shop.wares[?(@.tags.length>1)]", "$..[?(@.cost>20)].label", "$.list[?(@.x.y==1)]", "$.list[?(foo==1)]"]
    {
        assert!(find(path).is_err(), "{path}");
    }
}

#[test]
fn more_than_jsonpath_plus() {
    assert_eq!(find("$.list[?(@>3)]").unwrap(), "[4,5]");
    assert_eq!(find("$.shop.van['colour', 'cost']").unwrap(), r#"["red",20]"#);
}

#[test]
fn mistakes_are_named() {
    for path in
        ["$.a[", "$.a[?(@.b]", "$.a[?(@.b ==)]", "$['a", "$.a[?(process.exit())]", "$.a[?(@.eval(1))]", "$.a[?(@@)]"]
    {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    assert!(JsonPath::parse(&"[0]".repeat(5000)).is_err());
    assert!(JsonPath::parse(&format!("$[?({}1)]", "(".repeat(5000))).is_err());
    assert!(JsonPath::parse(&format!("$[?({}1)]", "!".repeat(5000))).is_err());
}

#[test]
fn what_grows_without_end_is_stopped() {
    let root = parse_json("[".repeat(100).as_bytes())
        .err()
        .map(|_| parse_json(format!("{}{}", "[1,1,".repeat(60), "1".to_owned() + &"]".repeat(60)).as_bytes()));
    let root = root.unwrap().unwrap();
    assert!(JsonPath::parse("$..*..*..*..*..*").unwrap().find(&root).is_err());
}

#[test]
fn plain_paths_need_no_tree() {
    for (path, is_plain) in
        [("$.a.b[0]", true), ("a['b c']", true), ("$", false), ("$.a.*", false), ("$.a.length", false), ("$..a", false)]
    {
        assert_eq!(JsonPath::parse(path).unwrap().keys().is_some(), is_plain, "{path}");
    }
}
