//! Figures of recordings as text.

use weir_words::{Said, say};

use crate::texts;

/// The word for a reason.
pub fn reason_text(reason: &str) -> Said {
    match reason {
        "queue" => say!(texts::LOST_QUEUE),
        "size" => say!(texts::LOST_SIZE),
        "writing" => say!(texts::LOST_WRITING),
        _ => say!(texts::LOST_LARGE),
    }
}

/// `0.1` as `10 %`.
pub fn share_text(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// `41200` as `41,200`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
