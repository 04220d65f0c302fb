//! filtrex 2 expressions: `ifTrue` and `ensure` (artillery.md §2.6). filtrex computes them (see [`npm`]).

use crate::npm;
use crate::value::Value;

/// The longest expression, in bytes.
const TEXT_MAX: usize = 16 << 10;
/// Signs that filtrex does not have, and its words for them.
const STRANGE: [(&str, &str); 4] = [("&&", "and"), ("||", "or"), ("===", "=="), ("!", "not")];

/// An expression without mistakes.
#[derive(Clone, Debug)]
pub struct Expression {
    text: String,
}

impl Expression {
    /// Checks an expression; the error is filtrex's, and a remedy for a common mistake.
    pub fn parse(text: &str) -> Result<Expression, String> {
        if text.len() > TEXT_MAX {
            return Err(format!("too long: an expression is at most {TEXT_MAX} bytes"));
        }
        npm::compile(text).map_err(|error| format!("{error}{}", remedy(text)))?;
        Ok(Expression { text: text.to_owned() })
    }

    /// Computes the value; `lookup` returns the value of a name. The error: an invalid regular expression, an unknown
    /// function, or too much work.
    pub fn value(&self, lookup: &dyn Fn(&str) -> Value) -> Result<Value, String> {
        npm::value(&self.text, lookup)
    }
}

/// A remedy for signs of other languages outside quotes.
fn remedy(text: &str) -> String {
    let mut bare = String::new();
    let mut quote = None;
    for char in text.chars() {
        match quote {
            Some(open) if open == char => quote = None,
            Some(_) => {}
            None if matches!(char, '"' | '\'') => quote = Some(char),
            None => bare.push(char),
        }
    }
    let bare = bare.replace("!=", "");
    let strange = STRANGE.iter().find(|(sign, _)| bare.contains(sign));
    strange.map(|(sign, word)| format!("; instead of \"{sign}\" write \"{word}\"")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::value::parse_json;

    fn value(text: &str) -> Result<Value, String> {
        let vars = br#"{"a":1,"b":2,"name":"bob","role":"admin","yes":true,"user.id":7,"x y":9,"nul":null,
            "list":[1,2],"obj":{"len":3,"in":{"deep":4}},"empty":"","order":5,"android":6}"#;
        let vars = parse_json(vars).unwrap();
        Expression::parse(text)?.value(&|name| match &vars {
            Value::Map(map) => map.get(name).cloned().unwrap_or_default(),
            _ => Value::Undefined,
        })
    }

    /// Each result agrees with filtrex 2.2.3 under Node 20.
    #[test]
    fn as_filtrex() {
        for (text, expected) in [
            ("1 + 2 * 3", "7"),
            ("(1 + 2) * 3", "9"),
            ("2 ^ 3 ^ 2", "64"),
            ("-2 ^ 2", "4"),
            ("10 - 4 - 3", "3"),
            ("7 % 4", "3"),
            ("a < b and b < 3", "1"),
            ("a > b or yes", "1"),
            ("not a == b", "0"),
            ("not empty", "1"),
            ("not nosuch and a", "1"),
            ("name == \"bob\"", "1"),
            ("'name' == \"bob\"", "1"),
            ("role in (\"user\", \"admin\")", "1"),
            ("role not in (\"user\", \"guest\")", "1"),
            ("list in (1, 2, 3)", "1"),
            ("(1, 9) in list", "0"),
            ("a == 1 in (1, 2)", "1"),
            ("a + b not in (2, 3)", "1"),
            ("name ~= \"^b.b$\"", "1"),
            ("a ? \"x\" : \"y\"", "\"x\""),
            ("0 ? 1 : 0 ? 2 : 3", "3"),
            ("1 ? 0 ? 1 : 2 : 3", "2"),
            ("user.id", "7"),
            ("'x y' + 1", "10"),
            ("len of obj", "3"),
            ("deep of in of obj + 1", "error"),
            ("deep of 'in' of obj + 1", "5"),
            ("nosuch of nosuch", "undefined"),
            ("name + 1", "\"bob1\""),
            ("nul == nosuch", "1"),
            ("\"2\" == 2", "1"),
            ("name and yes", "1"),
            ("order + android", "11"),
            ("max(1, b, 1.5)", "2"),
            ("min(3, a)", "1"),
            ("round(2.5) + floor(-1.5) + ceil(0.2) + abs(-3) + sqrt(16)", "9"),
            ("log(1)", "0"),
            ("a in 1", "1"),
            ("\"a\\\"b\\\\\"", "\"a\\\"b\\\\\""),
            ("nosuch < 1", "0"),
        ] {
            let expected = match expected {
                "undefined" => Ok(Value::Undefined),
                "error" => Err(()),
                json => Ok(parse_json(json.as_bytes()).unwrap()),
            };
            assert_eq!(value(text).map_err(drop), expected, "{text}");
        }
    }

    #[test]
    fn mistakes_say_where() {
        for (text, why) in [
            ("a === 1", "a === 1 ----^; instead of \"===\" write \"==\""),
            ("a && b", "write \"and\""),
            ("a || b", "write \"or\""),
            ("!a", "write \"not\""),
            ("", "got 'EOF'"),
            ("(a", "got 'EOF'"),
            ("a b", "got 'SYMBOL'"),
            ("\"open", "Unrecognized text"),
            ("not(a)", "got ')'"),
            ("5a", "Unrecognized text"),
            ("a ? b", "got 'EOF'"),
            ("1,2", "got ','"),
            ("name == \"&&\" b", "got 'SYMBOL'"),
        ] {
            let error = Expression::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(Expression::parse(&" ".repeat(TEXT_MAX + 1)).is_err_and(|error| error.contains("long")));
    }

    /// The error of a value; Artillery then runs the request.
    #[test]
    fn errors_of_values() {
        for (text, why) in [
            ("name ~= \"(\"", "expecting ')'"),
            ("name ~= name + \"(\"", "expecting ')'"),
            ("nosuch(1)", "Unknown function: nosuch()"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        npm::limit(std::time::Duration::from_millis(200));
        let slow = value("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\" ~= \"^(a+)+$\"");
        assert!(slow.is_err(), "{slow:?}");
        let deep = value(&"(".repeat(10_000));
        assert!(deep.is_err(), "{deep:?}");
        // No limit that a busy machine could reach.
        npm::limit(std::time::Duration::from_secs(600));
        assert_eq!(value(&format!("{}1", "1 + ".repeat(100))), Ok(Value::Number(101.0)));
    }
}
