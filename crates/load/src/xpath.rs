//! XPath 1.0 on XML, for `capture`.

use sxd_xpath::{Context, Factory};

use crate::random;
use crate::value::Value;

/// The longest path, in bytes.
const PATH_MAX: usize = 4 << 10;
/// Deepest nesting of elements: the library recurses.
const DEPTH_MAX: usize = 500;
/// Deepest nesting of a path's brackets.
const BRACKETS_MAX: usize = 50;

/// A path that has been checked.
///
/// The library's own compiled form cannot be shared between threads. Compiling is cheap compared with parsing the
/// body.
#[derive(Debug)]
pub(crate) struct XPath {
    text: String,
}

impl XPath {
    pub(crate) fn parse(text: &str) -> Result<XPath, String> {
        if text.len() > PATH_MAX
            || text.bytes().filter(|byte| matches!(byte, b'(' | b'[' | b'-')).count() > BRACKETS_MAX
        {
            return Err(format!("an XPath is at most {PATH_MAX} bytes, with at most {BRACKETS_MAX} brackets"));
        }
        match Factory::new().build(text) {
            Ok(Some(_)) => Ok(XPath { text: text.to_owned() }),
            Ok(None) => Err(format!("xpath {text}: the path is empty")),
            Err(error) => Err(format!("xpath {text}: {error}")),
        }
    }

    /// The text of a match, a random one if there are several; the empty text if there is none. The error: not XML.
    pub(crate) fn value(&self, body: &str) -> Result<Value, String> {
        if depth(body) > DEPTH_MAX {
            return Err(format!("the XML nests more than {DEPTH_MAX} deep"));
        }
        let package = sxd_document::parser::parse(body).map_err(|error| error.to_string())?;
        let document = package.as_document();
        let path = Factory::new().build(&self.text).map_err(|error| error.to_string())?;
        let path = path.ok_or_else(|| "there is no path".to_owned())?;
        let found = path.evaluate(&Context::new(), document.root()).map_err(|error| error.to_string())?;
        Ok(match found {
            sxd_xpath::Value::Boolean(bool) => Value::Bool(bool),
            sxd_xpath::Value::Number(number) => Value::Number(number),
            sxd_xpath::Value::String(text) => Value::from(text),
            sxd_xpath::Value::Nodeset(nodes) => {
                let nodes = nodes.document_order();
                random::one_of(&nodes).map_or_else(|| Value::from(""), |node| Value::from(node.string_value()))
            }
        })
    }
}

/// The approximate nesting depth of the elements: tags inside comments count too.
fn depth(xml: &str) -> usize {
    let bytes = xml.as_bytes();
    let (mut depth, mut deepest) = (0_usize, 0);
    for at in memchr::memchr2_iter(b'<', b'/', bytes) {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'<'), Some(b'/')) => depth = depth.saturating_sub(1),
            (Some(b'<'), Some(b'!' | b'?')) => {}
            (Some(b'<'), _) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (Some(b'/'), Some(b'>')) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn paths() {
        let xml = "<?xml version=\"1.0\"?><shop n=\"7\"><!-- c --><item id=\"a\">One</item><item id=\"b\">Two<b/></item></shop>";
        for (path, found) in [
            ("//item[1]", Value::from("One")),
            ("/shop/item[@id='b']", "Two".into()),
            ("//item[@id='b']/@id", "b".into()),
            ("/shop/@n", "7".into()),
            ("count(//item)", Value::Number(2.0)),
            ("//item[2]/text()", "Two".into()),
            ("string(//item[last()])", "Two".into()),
            ("//nosuch", "".into()),
        ] {
            assert_eq!(XPath::parse(path).unwrap().value(xml).unwrap(), found, "{path}");
        }
        random::seed(3);
        let path = XPath::parse("//item").unwrap();
        let drawn: Vec<String> = (0..50).map(|_| path.value(xml).unwrap().to_string()).collect();
        assert!(drawn.iter().any(|text| text == "One") && drawn.iter().any(|text| text == "Two"));
    }

    #[test]
    fn what_is_none() {
        for path in ["", "//[", "item[", &"(".repeat(100)] {
            assert!(XPath::parse(path).is_err(), "{path}");
        }
        let path = XPath::parse("//a").unwrap();
        for xml in ["", "{}", "<a>", "<a></b>", &"<a>".repeat(100_000)] {
            assert!(path.value(xml).is_err());
        }
        let deep = format!("{}{}", "<a>".repeat(400), "</a>".repeat(400));
        assert_eq!(path.value(&deep).unwrap(), Value::from(""));
    }

    mod mutate {
        use super::*;
        /// A body that is no XML, or hardly: a text, or an error.
        #[test]
        fn bodies() {
            let seeds = [
                "<a><b c='d'>e</b><b>f</b></a>",
                "<?xml version=\"1.0\"?><!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;&#65;</a>",
                "<a xmlns:p='u'><p:b/></a>",
            ];
            let words = [
                "<",
                ">",
                "/",
                "&",
                ";",
                "<![CDATA[",
                "]]>",
                "<!--",
                "-->",
                "'",
                "\"",
                "&#0;",
                "&#x110000;",
                "\0",
                "é",
                "xmlns=",
            ];
            let paths = ["//b", "/a/b[2]/text()", "count(//*)", "string(//@c)"].map(|path| XPath::parse(path).unwrap());
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let body = String::from_utf8_lossy(bytes);
                for path in &paths {
                    let _ = path.value(&body);
                }
            });
        }
    }
}
