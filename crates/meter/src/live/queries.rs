//! Lines about requests, without the queries of their URLs: a query may hold a secret.

/// Removes the text after a question mark from each word: from the request, the referrer and the upstream's URL
/// alike.
pub fn without_queries(line: &str) -> String {
    let ends = |c: char| c == '"' || c == ',' || c.is_whitespace();
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, query)) = rest.split_once('?') {
        shown.push_str(before);
        rest = query.find(ends).and_then(|end| query.get(end..)).unwrap_or_default();
        shown.push_str(if rest.len() < query.len() { "?…" } else { "?" });
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_query_is_shown() {
        for (line, shown) in [
            (
                "failed, request: \"GET /a?token=x&y=1 HTTP/1.1\", referrer: \"http://b/?s=2\"",
                "failed, request: \"GET /a?… HTTP/1.1\", referrer: \"http://b/?…\"",
            ),
            ("cut off: \"GET /a?tok", "cut off: \"GET /a?…"),
            ("what? nothing", "what? nothing"),
        ] {
            assert_eq!(without_queries(line), shown);
        }
    }
}
