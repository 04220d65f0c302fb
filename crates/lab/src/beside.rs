//! Files that a configuration names from its own directory on, other than by `include`.
//!
//! A copy of the configuration in another directory would look for them there.

use weir_conf::edit::Edit;
use weir_conf::{Statement, Tree, Word};

/// The ends of the names of directives whose file is relative to the directory of the main configuration file
/// (`ngx_conf_full_name` with `conf_prefix` in the sources of nginx).
const BESIDE: &[&str] = &[
    "auth_basic_user_file",
    "geoip_city",
    "geoip_country",
    "geoip_org",
    "quic_host_key",
    "ssl_certificate",
    "ssl_certificate_key",
    "ssl_client_certificate",
    "ssl_crl",
    "ssl_dhparam",
    "ssl_password_file",
    "ssl_session_ticket_key",
    "ssl_stapling_file",
    "ssl_trusted_certificate",
    "xslt_stylesheet",
];
/// Beginnings of values that are no relative path: absolute, known only at run time, or a key from elsewhere.
const ELSEWHERE: &[&str] = &["/", "$", "data:", "engine:", "store:"];

/// The relative path that a statement names. `None`: it names none.
pub fn relative(statement: &Statement) -> Option<&Word> {
    let name = statement.name.text.as_str();
    let is_beside = BESIDE.iter().any(|end| name.ends_with(end));
    let path = statement.arg(0).filter(|_| is_beside)?;
    let is_relative = !path.text.is_empty() && !ELSEWHERE.iter().any(|start| path.text.starts_with(start));
    is_relative.then_some(path)
}

/// The edits that make these paths absolute. `conf_prefix` ends in `/`. A statement of a file that is included twice has one edit
/// for each time.
pub fn made_absolute(tree: &Tree, conf_prefix: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let mut open: Vec<&Statement> = tree.root.iter().collect();
    while let Some(statement) = open.pop() {
        open.extend(statement.children());
        if let Some(path) = relative(statement) {
            let with = weir_conf::quote(&[conf_prefix.as_bytes(), path.bytes()].concat());
            found.push(Edit { file: path.at.file, span: path.at.span, with });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use weir_conf::{MemoryFiles, edit};

    #[test]
    fn only_relative_paths_from_the_directory_of_the_file_become_absolute() {
        let text = "http { auth_basic_user_file ../users; server { proxy_ssl_certificate 'a b.pem'; root html; \
                    ssl_certificate /c.pem; ssl_certificate_key $key; ssl_dhparam \"\"; ssl_crl data:x; } }";
        let (tree, _) = weir_conf::load(&MemoryFiles::new().with("/e/f", text), "/e/f", "/e/", &|_| false);
        let mut edits = made_absolute(&tree, "/e/");
        edits.sort_by_key(|edit| edit.span.start);
        let bytes = edit::apply(text.as_bytes(), &edits.iter().collect::<Vec<_>>()).unwrap();
        let expect = text.replace("../users", "/e/../users").replace("'a b.pem'", "\"/e/a b.pem\"");
        assert_eq!(String::from_utf8(bytes).unwrap(), expect);
    }
}
