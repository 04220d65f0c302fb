//! The page of all rules equals the output of the rules.

#[test]
fn the_page_is_what_the_rules_print() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/doctor.md");
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let printed = weir_doctor::reference::page();
    assert!(kept == printed, "docs/reference/doctor.md is old: weir doctor --reference > docs/reference/doctor.md");
}
