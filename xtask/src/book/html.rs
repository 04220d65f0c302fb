//! The HTML that mdBook writes, as tags and the text between them.
//!
//! It is no parser for the HTML of others: mdBook quotes each attribute and escapes each text.

/// A part of a page.
#[derive(Debug, PartialEq)]
pub enum PagePiece<'h> {
    /// A tag from `<` to `>`, or a comment.
    Tag(&'h str),
    /// Text between tags, and scripts, as they stand.
    Text(&'h str),
}

/// The pieces of a page; together they are the page.
pub fn pieces(html: &str) -> impl Iterator<Item = PagePiece<'_>> {
    let (mut rest, mut is_script) = (html, false);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let begin = if is_script { rest.find("</script") } else { rest.find('<') }.unwrap_or(rest.len());
        if begin > 0 {
            let (text, after) = rest.split_at(begin);
            rest = after;
            return Some(PagePiece::Text(text));
        }
        let close = if rest.starts_with("<!--") { "-->" } else { ">" };
        let end = rest.find(close).map_or(rest.len(), |at| at + close.len());
        let (tag, after) = rest.split_at(end);
        rest = after;
        is_script = tag.starts_with("<script");
        Some(PagePiece::Tag(tag))
    })
}

/// The name of a tag; that of a closing tag begins with a slash.
pub fn name(tag: &str) -> &str {
    tag.trim_start_matches('<').split([' ', '>', '\n']).next().unwrap_or_default()
}

/// The value of an attribute, as it stands.
pub fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let begin = tag.find(&format!(" {name}=\""))? + name.len() + 3;
    tag.get(begin..)?.split('"').next()
}

/// A tag with another value of an attribute.
pub fn with_attribute(tag: &str, name: &str, value: &str) -> String {
    let old = attribute(tag, name).unwrap_or_default();
    tag.replacen(&format!(" {name}=\"{old}\""), &format!(" {name}=\"{value}\""), 1)
}

/// A text without the escapes of HTML.
pub fn plain(text: &str) -> String {
    let escapes = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " ")];
    let text = escapes.iter().fold(text.to_owned(), |text, (escape, letter)| text.replace(escape, letter));
    text.replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_page() {
        let html = "a<b c=\"d\">e</b><!-- <i> --><script>if (1 <2) {}</script>&lt;";
        let all: Vec<PagePiece> = pieces(html).collect();
        let joined: String = all
            .iter()
            .map(|piece| match piece {
                PagePiece::Tag(part) | PagePiece::Text(part) => *part,
            })
            .collect();
        assert_eq!(joined, html);
        assert_eq!(all[1], PagePiece::Tag("<b c=\"d\">"));
        assert_eq!(all[4], PagePiece::Tag("<!-- <i> -->"));
        assert_eq!(all[6], PagePiece::Text("if (1 <2) {}"));
    }

    #[test]
    fn tags_have_names_and_attributes() {
        let tag = "<a class=\"x\" href=\"y&amp;z\">";
        assert_eq!((name(tag), name("</a>"), name("<br>")), ("a", "/a", "br"));
        assert_eq!((attribute(tag, "href"), attribute(tag, "id")), (Some("y&amp;z"), None));
        assert_eq!(with_attribute(tag, "href", "w"), "<a class=\"x\" href=\"w\">");
        assert_eq!(plain("&lt;a&gt; &amp;lt;"), "<a> &lt;");
    }
}
