//! Properties that hold for any text: nothing panics, printing loses nothing, reading undoes quoting.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;
use weir_conf::{PieceKind, Span, Statement, Word, lay_out, parse, pieces, print, quote};

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

fn word_spans(list: &[Statement], spans: &mut Vec<Span>) {
    for statement in list {
        spans.extend(statement.words().map(|word| word.at.span));
        word_spans(statement.children(), spans);
    }
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
    fn pieces_are_the_words_and_comments_of_the_tree(text in texts()) {
        let found = pieces(&text, &|_| false);
        let is_rising = found.all.iter().is_sorted_by(|one, next| one.span.end <= next.span.start);
        prop_assert!(is_rising, "{:?}", found.all);
        let parsed = parse(&text, 0, &|_| false);
        let is_complete = parsed.problems.is_empty();
        if is_complete {
            let of_kind = |kind| found.all.iter().filter(move |piece| piece.kind == kind).map(|piece| piece.span);
            let mut words = Vec::new();
            word_spans(&parsed.statements, &mut words);
            prop_assert_eq!(of_kind(PieceKind::Word).collect::<Vec<_>>(), words);
            let comments: Vec<Span> = parsed.comments.iter().map(|comment| comment.at.span).collect();
            prop_assert_eq!(of_kind(PieceKind::Comment).collect::<Vec<_>>(), comments);
        }
        prop_assert!(found.has_problems || found.cut.is_none());
    }

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
