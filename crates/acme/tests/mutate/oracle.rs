//! The rules that weir keeps, whatever bytes an authority sends.

use weir_acme::answer::{self, is_token};
use weir_acme::fields::{is_nonce, links, retry_after};
use weir_acme::{Identifier, Problem};

/// A body never panics, and nothing of it can break out of a path or of a line of the log.
pub fn body(bytes: &[u8]) {
    answer::read_as_anything(bytes);
    if let Ok(problem) = answer::read::<Problem>(bytes) {
        assert!(!problem.to_string().chars().any(char::is_control));
    }
    if let Ok(authorization) = answer::read::<answer::Authorization>(bytes) {
        for challenge in authorization.challenges.iter().filter(|challenge| is_token(&challenge.token)) {
            assert!(!challenge.token.contains(['/', '.', '%', '\\']));
        }
    }
    if let Ok(info) = answer::read::<answer::RenewalInfo>(bytes) {
        let mut plan = weir_acme::plan::Plan::kept(answer::Window { start: 0, end: 90 * 24 * 3600 });
        if plan.informed(info.suggested_window, None, 0, u64::MAX) {
            assert!(plan.next <= 90 * 24 * 3600);
        }
    }
}

/// A field never panics; each link is a part of it.
pub fn field(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for link in links(&text, "alternate") {
        assert!(text.contains(link) && !link.contains('>'));
    }
    let _ = retry_after(&text, 0);
    if is_nonce(&text) {
        assert!(text.bytes().all(|byte| byte.is_ascii_graphic()));
    }
    if let Ok(identifiers) = Identifier::read(&text) {
        // The first name is part of a file's name.
        assert!(identifiers.iter().all(|identifier| !identifier.value().contains('/')));
    }
}
