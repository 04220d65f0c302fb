//! CSS selectors on HTML, as far as `capture` needs them: reads attributes of the found elements.

use scraper::Html;

use crate::random;
use crate::value::{Map, Value};

/// The longest selector, in bytes.
const SELECTOR_MAX: usize = 4 << 10;
/// Attributes whose value is always their name, whatever the page contains (cheerio's list).
const FLAGS: [&str; 16] = [
    "autofocus",
    "autoplay",
    "async",
    "checked",
    "controls",
    "defer",
    "disabled",
    "hidden",
    "loop",
    "multiple",
    "open",
    "readonly",
    "required",
    "scoped",
    "selected",
    "itemscope",
];

/// Which of several matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// The match with this index.
    At(usize),
    /// The last match.
    Last,
    /// A random match.
    Random,
}

/// A compiled selector.
#[derive(Debug)]
pub(crate) struct Selector(scraper::Selector);

/// A parsed page.
pub(crate) struct HtmlDocument(Html);

impl Selector {
    pub(crate) fn parse(text: &str) -> Result<Selector, String> {
        if text.len() > SELECTOR_MAX {
            return Err(format!("a selector is at most {SELECTOR_MAX} bytes"));
        }
        let selector = scraper::Selector::parse(text);
        selector.map(Selector).map_err(|_| {
            format!(
                "selector {text}: this is not a CSS selector (weir does not know jQuery's own selectors, such as :eq())"
            )
        })
    }
}

impl HtmlDocument {
    pub(crate) fn parse(text: &str) -> HtmlDocument {
        HtmlDocument(Html::parse_document(text))
    }
}

/// An attribute of one of the found elements; without `attr`, all of its attributes. `undefined` if there is none.
pub(crate) fn attribute(page: &HtmlDocument, selector: &Selector, attr: Option<&str>, index: Index) -> Value {
    let mut found = page.0.select(&selector.0);
    let element = match index {
        Index::At(at) => found.nth(at),
        Index::Last => found.next_back(),
        Index::Random => {
            let all: Vec<_> = found.collect();
            random::one_of(&all).copied()
        }
    };
    let Some(element) = element else { return Value::Undefined };
    match attr {
        Some(name) => match element.value().attr(name) {
            Some(_) if FLAGS.contains(&name) => Value::from(name),
            Some(value) => Value::from(value),
            None => Value::Undefined,
        },
        None => Value::from(element.value().attrs().map(|(name, value)| (name.into(), value.into())).collect::<Map>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    mod mutate {
        use super::*;
        /// A page that is no HTML, or hardly, has a value.
        #[test]
        fn pages() {
            let seeds =
                ["<!doctype html><p id=a class='b c'>d<p>e<table><tr><td>f", "<svg><a href=x></svg><script>'</script>"];
            let words = [
                "<",
                ">",
                "/",
                "&amp",
                ";",
                "<table>",
                "<p>",
                "</",
                "'",
                "\"",
                "<!--",
                "\0",
                "é",
                "<template>",
                "<select>",
            ];
            let selectors = ["p", "#a .c", "td:first-child", "[href]"].map(Selector::parse);
            weir_mutate::mutate(&seeds, &words, |bytes| {
                let page = HtmlDocument::parse(&String::from_utf8_lossy(bytes));
                for selector in selectors.iter().flatten() {
                    let _ = attribute(&page, selector, Some("href"), Index::Last);
                    let _ = attribute(&page, selector, None, Index::Last);
                }
            });
        }
    }
}
