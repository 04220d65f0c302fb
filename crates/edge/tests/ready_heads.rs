//! Which configurations may keep heads of stored answers ready: none that mention a variable that reads the answer.
#![allow(clippy::unwrap_used)]

use weir_edge::family::ALL;
use weir_http::exchange::variable::Variable;
use weir_http::read::compile::of_text;

fn has_ready_heads(log: &str) -> bool {
    let (conf, problems) = of_text(
        &format!(
            "events {{}} http {{ proxy_cache_path /tmp/weir-none keys_zone=one:1m; log_format own '{log}'; access_log off;
             server {{ listen 127.0.0.1:1; location / {{ proxy_pass http://127.0.0.1:2; proxy_cache one; }} }} }}"
        ),
        &ALL,
    );
    assert_eq!(problems.join("; "), "");
    conf.unwrap().locations.iter().any(|location| location.has_ready_heads)
}

#[test]
fn a_variable_reads_the_answer_unless_its_row_says_otherwise() {
    assert!(Variable::new("any", |_, _, _| true).reads_answer);
    assert!(has_ready_heads("none"));
    for variable in ALL.known.variables() {
        let name = if variable.name.ends_with('_') { format!("{}x", variable.name) } else { variable.name.to_owned() };
        assert_eq!(has_ready_heads(&format!("${name}")), !variable.reads_answer, "${name}");
    }
}

#[test]
fn a_variable_that_shows_fields_of_the_answer_reads_it() {
    for name in ["sent_http_etag", "sent_trailer_x", "upstream_http_etag", "upstream_trailer_x", "upstream_cookie_a"] {
        assert!(ALL.known.variable(name).unwrap().reads_answer, "${name}");
    }
}
