//! The target of the features (`fuzz/README.md`): changed configurations, asked at many offsets.

use weir_conf::{LineEnd, LineTable, MemoryFiles};
use weir_doctor::Target;
use weir_mutate::mutate;
use weir_words::Language;

use crate::complete::complete;
use crate::find::{definitions, prepare_rename, references, rename};
use crate::hover::hover;
use crate::layout::layout;
use crate::look::Look;
use crate::outline::{folds, symbols};
use crate::under::is_opaque;

const SEEDS: &[&str] = &[
    "events { }\nhttp {\n  upstream app { server a:1; keepalive 4; }\n  server {\n    location / { proxy_pass http://app/x; }\n  }\n}\n",
    "map $a $b { default \"$c\"; ~^(?<d>x)$ $d; }\nserver { set $e \"${b}\\\"\"; if ($e ~ (?<f>.)) { return 200 $f; } error_page 404 @g; location @g { } }",
    "limit_req_zone $a zone=one:1m rate=5r/s;\nlog_format l 'a\nb' # c\n  '$d';\nserver { limit_req zone=one; access_log /x l; include /part; }",
    "stream { upstream a { server b:1; } server { listen 1; proxy_pass a; } }",
    "location / { content_by_lua_block { ngx.var.x = '}' -- }\n } rewrite ^/a$ /b break; }",
];

const WORDS: &[&str] = &[
    "{",
    "}",
    ";",
    "\"",
    "'",
    "\\",
    "#",
    "$",
    "${",
    "\n",
    "\r\n",
    "\t",
    "@",
    "http://",
    "zone=",
    "~",
    "include /part;",
    "한글",
];

#[test]
fn features() {
    mutate(SEEDS, WORDS, |bytes| {
        let files = MemoryFiles::new().with("/n", bytes).with("/part", "error_page 500 @g; set $h 1;");
        let (tree, _) = weir_conf::load(&files, "/n", "/", &is_opaque);
        let language = if bytes.len() % 2 == 0 { Language::English } else { Language::Korean };
        let look = Look::new(&tree, Target::Weir, language);
        let length = u32::try_from(bytes.len()).unwrap();
        for file in 0..2 {
            for part in 0..9 {
                let offset = length / 8 * part;
                let fits = |start: u32, end: u32, file: u32| {
                    assert!(start <= end && end as usize <= look.bytes(file).len().max(bytes.len()));
                };
                if let Some(found) = hover(&look, file, offset) {
                    fits(found.span.start, found.span.end, file);
                    assert!(!found.markdown.is_empty());
                }
                for one in complete(&look, file, offset, &|_| Vec::new()) {
                    fits(one.replaces.start, one.replaces.end, file);
                    assert!(!one.label.is_empty());
                }
                for place in definitions(&look, file, offset).into_iter().chain(references(&look, file, offset, true)) {
                    fits(place.span.start, place.span.end, place.file);
                }
                let can = prepare_rename(&look, file, offset).is_ok();
                let edits = rename(&look, file, offset, "other_name");
                assert!(can || edits.is_err());
            }
            symbols(&tree, file);
        }
        folds(bytes, &LineTable::of(bytes, LineEnd::Any));
        if let Some(out) = layout(bytes, "  ") {
            assert_eq!(layout(&out, "  ").as_ref(), Some(&out));
        }
    });
}
