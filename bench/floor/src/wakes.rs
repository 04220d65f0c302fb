//! Measures the CPU time of a sleep, of a wake-up and of entering the kernel on this machine. No network takes part.
//!
//! At part load, a proxy pays for these more than for its work. They cost 2 to 5 µs where the kernel runs on the
//! hardware, and ten times as much in some virtual machines: a CPU that halts, or wakes another that has, leaves to the host.

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::time::{Duration, Instant};

use crate::sys;

const ROUNDS: u32 = 2_000;
const CALLS: u32 = 100_000;
/// A CPU that has nothing to do has halted by then.
const HALTED: Duration = Duration::from_micros(300);
const SLEEP: Duration = Duration::from_micros(100);

/// Prints one JSON line: CPU microseconds of this thread for each.
pub fn run() -> io::Result<()> {
    sys::precise_waits()?;
    // A machine without a second CPU is refused here: later, one thread would wait for the other.
    pin(1)?;
    pin(0)?;
    let (there, back) = (eventfd(0, EventfdFlags::CLOEXEC)?, eventfd(0, EventfdFlags::CLOEXEC)?);
    std::thread::scope(|scope| {
        let echo = scope.spawn(|| echo(&there, &back));
        let measured = measure(&there, &back);
        echo.join().map_err(|_| io::Error::other("the other thread ended"))??;
        let (sleep, wake, woken) = measured?;
        let call = call_us();
        println!(
            r#"{{"sleep_us": {sleep:.1}, "wake_halted_us": {wake:.1}, "woken_us": {woken:.1}, "call_us": {call:.2}}}"#
        );
        Ok(())
    })
}

/// A system call that does next to nothing.
fn call_us() -> f64 {
    let begun = used();
    for _ in 0..CALLS {
        std::hint::black_box(rustix::process::getppid());
    }
    (used() - begun).as_secs_f64() * 1e6 / f64::from(CALLS)
}

/// A sleep of 100 µs; waking a thread whose CPU has halted; being woken: medians, because a host stops its guests at times.
fn measure(there: &OwnedFd, back: &OwnedFd) -> io::Result<(f64, f64, f64)> {
    let (mut sleeps, mut rings, mut wakes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let begun = used();
        std::thread::sleep(SLEEP);
        sleeps.push(used() - begun);
    }
    for _ in 0..ROUNDS {
        let begun = used();
        ring(there)?;
        let rung = used();
        heard(back)?;
        rings.push(rung - begun);
        wakes.push(used() - rung);
    }
    Ok((median_us(sleeps), median_us(rings), median_us(wakes)))
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

pub fn ring(bell: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::write(bell, &1u64.to_ne_bytes()).map(drop)?)
}

pub fn heard(bell: &OwnedFd) -> io::Result<()> {
    Ok(rustix::io::read(bell, &mut [0u8; 8]).map(drop)?)
}

pub fn pin(cpu: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu);
    Ok(sched_setaffinity(None, &set)?)
}

/// CPU time of this thread so far.
pub fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}
