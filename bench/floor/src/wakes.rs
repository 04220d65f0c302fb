//! What sleeping and waking cost on this machine, without any network.
//!
//! At part load, a proxy pays for these more than for its work. They cost 2 to 5 µs where the kernel runs on the
//! hardware, and ten times as much in some virtual machines: a CPU that halts, or wakes another that has, leaves to the host.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::time::{Duration, Instant};

use crate::sys;

const ROUNDS: u32 = 2_000;
/// A CPU that has nothing to do has halted by then.
const HALTED: Duration = Duration::from_micros(300);
const SLEEP: Duration = Duration::from_micros(100);

/// Prints one JSON line: CPU microseconds of this thread for each.
pub fn run() -> io::Result<()> {
    sys::precise_waits()?;
    let (there, back) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(&there, &back));
        let measured = measure(&there, &back);
        echo.join().map_err(|_| io::Error::other("the other thread ended"))??;
        let (sleep, wake, woken) = measured?;
        println!(r#"{{"sleep_us": {sleep:.1}, "wake_halted_us": {wake:.1}, "woken_us": {woken:.1}}}"#);
        Ok(())
    })
}

/// A sleep of 100 µs; waking a thread whose CPU has halted; being woken.
fn measure(there: &OwnedFd, back: &OwnedFd) -> io::Result<(f64, f64, f64)> {
    pin(0)?;
    let before = used_ns()?;
    for _ in 0..ROUNDS {
        std::thread::sleep(SLEEP);
    }
    let sleep = each_us(used_ns()? - before);
    let (before, mut waking) = (used_ns()?, Duration::ZERO);
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        ring(there)?;
        waking += begun.elapsed();
        heard(back)?;
    }
    let (both, wake) = (each_us(used_ns()? - before), each_us(u64::try_from(waking.as_nanos()).unwrap_or(u64::MAX)));
    Ok((sleep, wake, (both - wake).max(0.0)))
}

/// Answers each ring when the first CPU has halted: works until then, so that this CPU has not.
fn echo(there: &OwnedFd, back: &OwnedFd) -> io::Result<()> {
    pin(1)?;
    for _ in 0..ROUNDS {
        heard(there)?;
        let begun = Instant::now();
        while begun.elapsed() < HALTED {
            std::hint::spin_loop();
        }
        ring(back)?;
    }
    Ok(())
}

fn ring(bell: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::write(bell, &1u64.to_ne_bytes()).map(drop)?)
}

fn heard(bell: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::read(bell, &mut [0u8; 8]).map(drop)?)
}

fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// Nanoseconds that this thread has run, by the scheduler's own count.
fn used_ns() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    text.split(' ').next().and_then(|ns| ns.parse().ok()).ok_or_else(|| io::Error::other("no schedstat here"))
}

fn each_us(ns: u64) -> f64 {
    ns as f64 / 1000.0 / f64::from(ROUNDS)
}
