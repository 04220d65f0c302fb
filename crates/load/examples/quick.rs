//! `cargo run --release -p weir-load --example quick -- URL [-c N] [-d SECONDS] [-R RATE] [-n REQUESTS] [-t THREADS]`:
//! quick mode as JSON, for bench/.
#![allow(clippy::expect_used)]

use std::time::Duration;

use weir_load::quick::{QuickRun, Rate, run};
use weir_load::record::Hdr;

/// The same allocator as in weir itself.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut quick = QuickRun::default();
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|text| text.parse::<f64>().ok()).expect("a number");
        match arg.as_str() {
            "-c" => quick.connections = number() as usize,
            "-d" => quick.duration = Duration::from_secs_f64(number()),
            "-t" => quick.threads = number() as usize,
            "-n" => quick.requests_max = Some(number() as u64),
            "-R" => quick.rate = Some(Rate::Constant(number())),
            "-P" => quick.rate = Some(Rate::Poisson(number())),
            _ => quick.url = arg,
        }
    }
    let report = run(&quick).expect("a run");
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let latency = |of: &Hdr| {
        let at: Vec<String> = [50.0, 90.0, 95.0, 99.0, 99.9]
            .iter()
            .map(|&p| format!("\"p{p}\":{:.3}", ms(of.quantile(p / 100.0))))
            .collect();
        format!("{{\"mean\":{:.3},{},\"max\":{:.3}}}", ms(of.mean()), at.join(","), ms(of.max()))
    };
    println!(
        "{{\"requests\":{},\"errors\":{},\"late\":{},\"dropped\":{},\"bytes\":{},\"elapsed_s\":{:.3},\"cpu_s\":{:.3},\"response\":{},\"service\":{},\"lag\":{},\"failures\":\"{:?}\"}}",
        report.requests,
        report.errors(),
        report.late,
        report.dropped,
        report.received_bytes,
        report.elapsed.as_secs_f64(),
        report.cpu.as_secs_f64(),
        latency(&report.response),
        latency(&report.service),
        latency(&report.lag),
        report.errors_at,
    );
}
