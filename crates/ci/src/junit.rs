//! JUnit's XML, as GitHub's and GitLab's readers take it: suites, cases, failures, skipped cases.

use std::fmt::Write;

use crate::escape::xml;

/// Most cases of a document.
pub const CASES_MAX: usize = 5_000;

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JunitEnd {
    /// It passed.
    Passed,
    /// It failed: the sentence, and its details.
    Failed(String, String),
    /// It says nothing.
    Skipped(String),
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JunitCase {
    /// Its group.
    pub class: String,
    /// Its name.
    pub name: String,
    /// The file that it is about, relative to the repository. GitLab shows it.
    pub file: Option<String>,
    /// How it ended.
    pub end: JunitEnd,
}

/// The document of one suite. `seconds` is the time of all cases together.
pub fn document(suite: &str, cases: &[JunitCase], seconds: f64) -> String {
    let cases = cases.get(..CASES_MAX).unwrap_or(cases);
    let count = |is: fn(&JunitEnd) -> bool| cases.iter().filter(|case| is(&case.end)).count();
    let failed = count(|end| matches!(end, JunitEnd::Failed(..)));
    let skipped = count(|end| matches!(end, JunitEnd::Skipped(_)));
    let totals = format!(
        "name=\"{}\" tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\" time=\"{seconds:.3}\"",
        xml(suite),
        cases.len()
    );
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n  <testsuite {totals}>\n",
        totals.replace(&format!(" skipped=\"{skipped}\""), "")
    );
    let each = seconds / cases.len().max(1) as f64;
    for case in cases {
        let file = case.file.as_ref().map_or(String::new(), |file| format!(" file=\"{}\"", xml(file)));
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\"{file} time=\"{each:.3}\"",
            xml(&case.class),
            xml(&case.name)
        );
        let _ = match &case.end {
            JunitEnd::Passed => writeln!(out, "/>"),
            JunitEnd::Failed(what, more) => writeln!(
                out,
                ">\n      <failure message=\"{}\" type=\"weir\">{}</failure>\n    </testcase>",
                xml(what),
                xml(more)
            ),
            JunitEnd::Skipped(why) => {
                writeln!(out, ">\n      <skipped message=\"{}\"/>\n    </testcase>", xml(why))
            }
        };
    }
    out + "  </testsuite>\n</testsuites>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_counts_its_cases() {
        let case = |name: &str, end| JunitCase { class: "weir".into(), name: name.into(), file: None, end };
        let cases = [
            case("a", JunitEnd::Passed),
            case("<b>", JunitEnd::Failed("x < y".into(), "more & more".into())),
            JunitCase { file: Some("n.conf".into()), ..case("c", JunitEnd::Skipped("why".into())) },
        ];
        let text = document("weir ci", &cases, 3.0);
        assert!(
            text.contains(
                "<testsuite name=\"weir ci\" tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"3.000\">"
            ),
            "{text}"
        );
        assert!(text.contains("<testsuites name=\"weir ci\" tests=\"3\" failures=\"1\" errors=\"0\" time=\"3.000\">"));
        assert!(text.contains("<failure message=\"x &lt; y\" type=\"weir\">more &amp; more</failure>"));
        assert!(text.contains("name=\"c\" file=\"n.conf\" time=\"1.000\">\n      <skipped message=\"why\"/>"));
        assert_eq!(document("e", &[], 0.0).matches("testcase").count(), 0);
    }
}
