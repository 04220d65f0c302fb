//! The texts that the search of the book reads: one for each section.

use super::html::{PagePiece, attribute, name, pieces, plain};
use serde_json::json;

/// Tags within a line: the text around them is one word.
const INLINE: [&str; 9] = ["a", "code", "em", "strong", "span", "sup", "sub", "del", "kbd"];

/// A part of a page, from a heading to the next one.
#[derive(Debug, Default, PartialEq)]
struct Section {
    id: String,
    title: String,
    text: String,
}

/// The script that gives the texts of all pages to `search.js`. A page is its path in the book, its title, its content.
pub fn script(pages: &[(String, String, String)]) -> String {
    let sections = pages.iter().flat_map(|(path, title, main)| {
        let section = move |section: Section| {
            let id = if section.id.is_empty() { String::new() } else { format!("#{}", section.id) };
            json!([format!("{path}{id}"), title, section.title, section.text])
        };
        sections(main).into_iter().map(section)
    });
    format!("globalThis.weirBook = {};\n", serde_json::Value::from_iter(sections))
}

/// The sections of a page; headings of the fourth level and below are text.
fn sections(main: &str) -> Vec<Section> {
    let mut sections = vec![Section::default()];
    let mut is_title = false;
    for piece in pieces(main) {
        match piece {
            PagePiece::Tag(tag) if matches!(name(tag), "h1" | "h2" | "h3") => {
                let id = attribute(tag, "id").map(plain).unwrap_or_default();
                sections.push(Section { id, ..Section::default() });
                is_title = true;
            }
            PagePiece::Tag(tag) if matches!(name(tag), "/h1" | "/h2" | "/h3") => is_title = false,
            PagePiece::Tag(tag) if INLINE.contains(&name(tag).trim_start_matches('/')) => {}
            piece => {
                let text = if let PagePiece::Text(text) = piece { plain(text) } else { " ".to_owned() };
                let Some(section) = sections.last_mut() else { continue };
                if is_title { section.title.push_str(&text) } else { section.text.push_str(&text) }
            }
        }
    }
    for section in &mut sections {
        section.text = section.text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    sections.retain(|section| !section.title.is_empty() || !section.text.is_empty());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_begins_a_section() {
        let main = "<h1 id=\"t\"><a class=\"header\" href=\"#t\">T &amp; <code>u</code></a></h1>\n<p>one<code>weir</code>가\n two</p><p>three</p><h2 id=\"가\">나</h2><table><tr><td>a</td><td>b</td></tr></table>";
        let section =
            |id: &str, title: &str, text: &str| Section { id: id.into(), title: title.into(), text: text.into() };
        assert_eq!(sections(main), [section("t", "T & u", "oneweir가 two three"), section("가", "나", "a b")]);
        let script = script(&[("p.html".to_owned(), "T".to_owned(), main.to_owned())]);
        assert!(script.starts_with("globalThis.weirBook = [[\"p.html#t\",\"T\",\"T & u\",\"one"), "{script}");
    }
}
