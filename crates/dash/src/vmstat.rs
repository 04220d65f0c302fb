//! Ten minutes of the machine, a row a second, with the columns of vmstat(8).

use std::collections::VecDeque;

use serde_json::{Value, json};
use weir_meter::live::{Snapshot, VmRow};

/// Rows that are kept: ten minutes.
pub const ROWS_MAX: usize = 600;

/// The columns after the time: sizes in bytes, rates per second, shares of all CPUs from 0 to 1.
pub const COLUMNS: [&str; 17] =
    ["r", "b", "swpd", "free", "buff", "cache", "si", "so", "bi", "bo", "in", "cs", "us", "sy", "id", "wa", "st"];

/// The rows, oldest first.
#[derive(Default)]
pub struct Rows(VecDeque<(u64, [f64; COLUMNS.len()])>);

impl Rows {
    /// Takes the row of a snapshot, if it has one.
    pub fn push(&mut self, snapshot: &Snapshot) {
        let host = &snapshot.weir.host;
        let Some(vm) = host.vm else { return };
        if self.0.len() >= ROWS_MAX {
            self.0.pop_front();
        }
        let VmRow { r, b, swpd, free, buff, cache, si, so, bi, bo, interrupts, cs } = vm;
        let [r, b, swpd, free, buff, cache] = [r, b, swpd, free, buff, cache].map(|figure| figure as f64);
        let cpu = &host.cpu;
        // vmstat counts the time of interrupts in `sy`.
        let sy = cpu.system + cpu.interrupts;
        let row = [
            r, b, swpd, free, buff, cache, si, so, bi, bo, interrupts, cs, cpu.user, sy, cpu.idle, cpu.wait, cpu.steal,
        ];
        self.0.push_back((snapshot.nginx.timestamp.0, row));
    }

    /// `{"columns": […], "rows": [[milliseconds since 1970, figures …], …]}`.
    pub fn json(&self) -> Value {
        let rows = self.0.iter().map(|(at, row)| {
            let figures = row.iter().map(|figure| json!((figure * 1e4).round() / 1e4));
            Value::Array(std::iter::once(json!(at)).chain(figures).collect())
        });
        json!({"columns": COLUMNS, "rows": rows.collect::<Vec<_>>()})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_are_kept() {
        let mut rows = Rows::default();
        let mut snapshot = Snapshot::example();
        for second in 0..ROWS_MAX as u64 + 5 {
            snapshot.nginx.timestamp.0 = second * 1000;
            snapshot.weir.host.vm = Some(VmRow { r: second, cs: 2.00004, ..VmRow::default() });
            rows.push(&snapshot);
        }
        snapshot.weir.host.vm = None;
        rows.push(&snapshot);
        let json = rows.json();
        let kept = json["rows"].as_array().map_or(0, Vec::len);
        assert_eq!((kept, &json["rows"][0][0], &json["rows"][0][1]), (ROWS_MAX, &json!(5000), &json!(5.0)));
        assert_eq!((&json["columns"][11], &json["rows"][0][12]), (&json!("cs"), &json!(2.0)));
    }
}
