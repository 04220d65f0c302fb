//! The rules that hold for any bytes that weir reads as a configuration; shared by `mutate.rs` and `fuzz/`.

use weir_conf::{Level, MemoryFiles};
use weir_http::hold::paths::Paths;

/// Where no file is: nothing a configuration names is found.
const NOWHERE: &str = "/nonexistent/weir-fuzz/";

/// Reads and compiles `text`: it does not panic, what is refused is refused with a reason, and every reason
/// can be shown.
pub fn configuration(text: &[u8]) {
    let main = format!("{NOWHERE}nginx.conf");
    let files = MemoryFiles::new().with(&main, text).with(&format!("{NOWHERE}a.conf"), b"default_type text/x;");
    let opaque = |name: &str| name.ends_with("_by_lua_block");
    let (tree, lexical) = weir_conf::load(&files, &main, NOWHERE, &opaque);
    let paths = Paths { prefix: NOWHERE.to_owned(), conf_prefix: NOWHERE.to_owned(), ..Paths::default() };
    let resolve = |host: &str| match host {
        "localhost" => Ok(vec![([127, 0, 0, 1], 0).into(), ([0, 0, 0, 0, 0, 0, 0, 1], 0).into()]),
        "nothing" => Ok(Vec::new()),
        _ => Err(format!("host not found in \"{host}\"")),
    };
    let (conf, found) = weir_http::read::compile::compile(&tree, paths, &resolve, 1, &weir_edge::family::ALL);
    for problem in lexical.iter().chain(&found) {
        assert!(!weir_conf::render(problem, &tree, "nginx").is_empty());
    }
    let errors = found.iter().filter(|problem| matches!(problem.level, Level::Emerg)).count();
    if lexical.is_empty() {
        assert_eq!(conf.is_none(), errors > 0, "no configuration needs a reason, and a configuration has no errors");
    }
}
