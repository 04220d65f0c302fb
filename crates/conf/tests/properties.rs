//! Properties that hold for any text: nothing panics, printing loses nothing, reading undoes quoting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use weir_conf::{Statement, Word, lay_out, parse, print, quote};

/// Texts with many special bytes, in pieces that form words, comments and blocks.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        8 => proptest::sample::select(b" \t\r\n;;{}}\"'\\#$()abn\xff".to_vec()).prop_map(|b| vec![b]),
        2 => proptest::sample::select(vec!["server {", "listen 80;\n", "${x}", "# c\n", "\"q\" ", "}\n"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// The content of a statement: its words and its block.
#[derive(Debug, Clone, PartialEq)]
struct Said(Vec<Vec<u8>>, Option<Vec<Said>>);

fn said() -> impl Strategy<Value = Vec<Said>> {
    let word = || proptest::collection::vec(any::<u8>(), 0..8);
    let words = move || proptest::collection::vec(word(), 1..4);
    let leaf = words().prop_map(|words| Said(words, None));
    let statement = leaf.prop_recursive(3, 24, 4, move |inner| {
        (words(), proptest::option::of(proptest::collection::vec(inner, 0..4)))
            .prop_map(|(words, block)| Said(words, block))
    });
    proptest::collection::vec(statement, 0..5)
}

fn written(list: &[Said]) -> Vec<Statement> {
    let word = |bytes: &Vec<u8>| Word::new(bytes.clone(), Default::default(), None);
    let statement = |Said(words, block): &Said| Statement {
        name: word(&words[0]),
        args: words[1..].iter().map(word).collect(),
        block: block.as_ref().map(|block| written(block)),
        ..Statement::default()
    };
    list.iter().map(statement).collect()
}

fn read(list: &[Statement]) -> Vec<Said> {
    let words = |statement: &Statement| statement.words().map(|w| w.bytes().to_vec()).collect();
    list.iter().map(|s| Said(words(s), s.block.as_ref().map(|block| read(block)))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn print_undoes_parse(text in texts()) {
        let parsed = parse(&text, 0, &|_| false);
        prop_assert_eq!(print(&parsed.statements, &text), text);
    }

    #[test]
    fn print_undoes_parse_with_opaque_blocks(text in texts()) {
        let parsed = parse(&text, 0, &|name| name.starts_with('s'));
        prop_assert_eq!(print(&parsed.statements, &text), text);
    }

    #[test]
    fn any_bytes_are_read_without_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let parsed = parse(&text, 0, &|_| true);
        prop_assert_eq!(print(&parsed.statements, &text), text);
    }

    #[test]
    fn what_is_laid_out_reads_back(list in said()) {
        let text = lay_out(&written(&list));
        let parsed = parse(&text, 0, &|_| false);
        prop_assert_eq!(parsed.problems, vec![]);
        prop_assert_eq!(read(&parsed.statements), list);
    }

    #[test]
    fn a_changed_word_is_the_only_change(list in said(), new in "[ -~]{0,6}") {
        prop_assume!(!list.is_empty());
        let text = lay_out(&written(&list));
        let mut parsed = parse(&text, 0, &|_| false);
        parsed.statements[0].name.set(&new);
        let printed = print(&parsed.statements, &text);
        let again = parse(&printed, 0, &|_| false);
        prop_assert_eq!(again.problems, vec![]);
        prop_assert_eq!(read(&again.statements), read(&parsed.statements));
    }

    #[test]
    fn quoting_is_one_word(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
        let text = [b"x ".as_slice(), &quote(&bytes), b";"].concat();
        let parsed = parse(&text, 0, &|_| false);
        prop_assert_eq!(read(&parsed.statements), vec![Said(vec![b"x".to_vec(), bytes], None)]);
    }
}
