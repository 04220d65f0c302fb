//! Words, sentences, jargon.

use fake::locales::{Data, EN};

use super::draw::{capital, pick};
use super::options::{FakeOptions, Make};
use crate::random;

pub(super) const FUNCTIONS: &[(&str, Make)] = &[
    ("loremWord", |_| latin().into()),
    ("loremWords", |options| latins(options.length("wordCount", 3)).join(" ").into()),
    ("loremSlug", |options| latins(options.length("wordCount", 3)).join("-").into()),
    ("loremSentence", |options| sentence(options.length("wordCount", 3 + random::below(8))).into()),
    ("loremSentences", |options| sentences(options.length("sentenceCount", 2 + random::below(5))).into()),
    ("loremParagraph", |options| sentences(options.length("sentenceCount", 3)).into()),
    ("loremParagraphs", |options| paragraphs(options).into()),
    ("loremText", |_| sentences(2 + random::below(5)).into()),
    ("loremLines", |options| {
        let lines: Vec<String> =
            (0..count(options.length("lineCount", 1 + random::below(5)))).map(|_| sentence(5)).collect();
        lines.join("\n").into()
    }),
    ("wordNoun", |_| pick(EN::COMPANY_BS_NOUNS).into()),
    ("wordVerb", |_| pick(EN::COMPANY_BS_VERBS).into()),
    ("wordAdjective", |_| pick(EN::COMPANY_BS_ADJ).into()),
    ("wordAdverb", |_| pick(&["quickly", "slowly", "gladly", "rarely", "boldly", "calmly", "nearly", "soon"]).into()),
    ("wordConjunction", |_| pick(&["and", "but", "or", "because", "although", "while", "since", "unless"]).into()),
    ("wordPreposition", |_| pick(&["behind", "under", "over", "near", "with", "without", "across", "beyond"]).into()),
    ("wordInterjection", |_| pick(&["yowza", "oh", "hey", "wow", "ouch", "hurrah", "phew", "oops"]).into()),
    ("wordSample", |_| pick(EN::PATH_SEGMENTS).into()),
    ("wordWords", |options| {
        let words: Vec<&str> =
            (0..count(options.length("count", 1 + random::below(3)))).map(|_| pick(EN::PATH_SEGMENTS)).collect();
        words.join(" ").into()
    }),
    ("hackerAbbreviation", |_| pick(&ABBREVIATIONS).into()),
    ("hackerAdjective", |_| pick(&ADJECTIVES).into()),
    ("hackerNoun", |_| pick(&NOUNS).into()),
    ("hackerVerb", |_| pick(&VERBS).into()),
    ("hackerIngverb", |_| pick(&["backing up", "bypassing", "hacking", "copying", "indexing", "parsing"]).into()),
    ("hackerPhrase", |_| {
        let [verb, adjective, noun] = [pick(&VERBS), pick(&ADJECTIVES), pick(&NOUNS)];
        format!(
            "{} the {} {noun}, so that we can {} the {adjective} {}!",
            capital(verb),
            pick(&ABBREVIATIONS),
            pick(&VERBS),
            pick(&NOUNS)
        )
        .into()
    }),
];

const ABBREVIATIONS: [&str; 12] = ["TCP", "HTTP", "SDD", "RAM", "GB", "CSS", "SSL", "AGP", "SQL", "FTP", "PCI", "DRAM"];
const ADJECTIVES: [&str; 8] =
    ["auxiliary", "primary", "back-end", "digital", "open-source", "virtual", "redundant", "haptic"];
const NOUNS: [&str; 10] =
    ["driver", "protocol", "bandwidth", "panel", "microchip", "program", "port", "card", "array", "interface"];
const VERBS: [&str; 8] = ["back up", "bypass", "hack", "override", "compress", "copy", "index", "parse"];
/// The most words, sentences or lines that one call makes.
const COUNT_MAX: usize = 10_000;

pub(super) fn latin() -> &'static str {
    pick(EN::LOREM_WORD)
}

fn count(wanted: usize) -> usize {
    wanted.clamp(1, COUNT_MAX)
}

fn latins(wanted: usize) -> Vec<&'static str> {
    (0..count(wanted)).map(|_| latin()).collect()
}

fn sentence(words: usize) -> String {
    format!("{}.", capital(&latins(words).join(" ")))
}

fn sentences(wanted: usize) -> String {
    let sentences: Vec<String> = (0..count(wanted)).map(|_| sentence(3 + random::below(8))).collect();
    sentences.join(" ")
}

fn paragraphs(options: &FakeOptions<'_>) -> String {
    let paragraphs: Vec<String> = (0..count(options.length("paragraphCount", 3))).map(|_| sentences(3)).collect();
    paragraphs.join("\n")
}
