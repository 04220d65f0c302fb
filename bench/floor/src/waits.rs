//! Compares ways to serve several events with one wake-up. No network takes part.
//!
//! A thread rings one of many eventfds at a fixed rate, as clients of a proxy send requests, and another takes the events.
//! The second thread waits in five ways:
//!
//! - `epoll`: in `epoll_wait`, so each event wakes it.
//! - `sleep`: it sleeps before each `epoll_wait`, as a worker does with `worker_coalesce`.
//! - `spin`: before it sleeps in `epoll_wait`, it asks `epoll_wait` again and again without a wait, for so many microseconds.
//! - `ring`: in io_uring's minimum wait (Linux 6.12), with a poll request for each eventfd. Events do not end this wait.
//! - `ring-epoll`: the same with one poll request, for an epoll instance.

use crate::flags::Flags;
use crate::sys;
use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::{EventfdFlags, PollFlags, epoll, eventfd};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::wakes::{heard, pin, ring as ring_bell, used};

const BELLS: usize = 64;
/// A wait that nothing ends returns after this, to see whether the run is over.
const LOOK: Duration = Duration::from_millis(50);
const COMPLETIONS: u32 = 1024;

struct Bell {
    fd: OwnedFd,
    /// When it was rung, in nanoseconds since the beginning.
    rung_ns: AtomicU64,
}

struct Run {
    bells: Vec<Bell>,
    begun: Instant,
    is_over: AtomicBool,
}

#[derive(Default)]
struct Taken {
    events: u64,
    wakes: u64,
    waited_ns: u64,
}

/// Prints a JSON line for each way: CPU microseconds of an event, for the taker and for the ringer's call.
pub fn run(flags: &Flags) -> io::Result<()> {
    let rate: u64 = flags.need("rate")?;
    let (between, every) =
        (Duration::from_micros(flags.need("micros")?), Duration::from_nanos(1_000_000_000 / rate.max(1)));
    let seconds = Duration::from_secs(flags.need("seconds")?);
    pin(1)?;
    pin(0)?;
    for (name, take) in WAYS {
        let bells: io::Result<Vec<Bell>> = (0..BELLS).map(|_| bell()).collect();
        let run = Run { bells: bells?, begun: Instant::now(), is_over: AtomicBool::new(false) };
        let (rung, taken) = std::thread::scope(|scope| {
            let taker = scope.spawn(|| {
                pin(0)?;
                sys::precise_waits()?;
                let before = used();
                let taken = take(&run, between)?;
                io::Result::Ok((taken, used() - before))
            });
            let rung = ring_all(&run, every, seconds);
            run.is_over.store(true, Ordering::Release);
            (rung, taker.join())
        });
        let (calls, (taken, cpu)) = (rung?, taken.map_err(|_| io::Error::other("the taker ended"))??);
        let each = |total: f64| total / taken.events.max(1) as f64;
        println!(
            r#"{{"way": "{name}", "taker_us": {:.2}, "ringer_us": {:.2}, "wakes": {:.2}, "waited_us": {:.0}}}"#,
            each(cpu.as_secs_f64() * 1e6),
            each(calls.as_secs_f64() * 1e6),
            each(taken.wakes as f64),
            each(taken.waited_ns as f64 / 1e3),
        );
    }
    Ok(())
}

type Take = fn(&Run, Duration) -> io::Result<Taken>;
const WAYS: [(&str, Take); 5] = [
    ("epoll", |run, _| by_epoll(run, None)),
    ("sleep", |run, us| by_epoll(run, Some(us))),
    ("spin", by_spin),
    ("ring", by_ring),
    ("ring-epoll", by_ring_epoll),
];

fn bell() -> io::Result<Bell> {
    Ok(Bell { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, rung_ns: AtomicU64::new(0) })
}

/// Rings one bell after the other, each at its time, and returns how long the calls took. Works in between, so that this
/// CPU never halts: only the taker's does.
fn ring_all(run: &Run, every: Duration, seconds: Duration) -> io::Result<Duration> {
    pin(1)?;
    let (begun, mut due, mut calls) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    for bell in run.bells.iter().cycle() {
        due += every;
        if due > seconds {
            break;
        }
        while begun.elapsed() < due {
            std::hint::spin_loop();
        }
        bell.rung_ns.store(run.begun.elapsed().as_nanos() as u64, Ordering::Release);
        let before = used();
        ring_bell(&bell.fd)?;
        calls += used() - before;
    }
    Ok(calls)
}

impl Run {
    fn take(&self, bell: usize, taken: &mut Taken) {
        if let Some(bell) = self.bells.get(bell)
            && heard(&bell.fd).is_ok()
        {
            let now_ns = self.begun.elapsed().as_nanos() as u64;
            taken.events += 1;
            taken.waited_ns += now_ns.saturating_sub(bell.rung_ns.load(Ordering::Acquire));
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

fn by_epoll(run: &Run, between: Option<Duration>) -> io::Result<Taken> {
    let (epoll, mut events, mut taken) = (watched(run)?, Vec::with_capacity(BELLS), Taken::default());
    let mut woken = Instant::now();
    while !run.is_over() {
        if let Some(left) = between.and_then(|between| between.checked_sub(woken.elapsed())) {
            std::thread::sleep(left);
        }
        wait(&epoll, &mut events, LOOK)?;
        woken = Instant::now();
        take_all(run, &events, &mut taken);
    }
    Ok(taken)
}

fn by_spin(run: &Run, longest: Duration) -> io::Result<Taken> {
    let (epoll, mut events, mut taken) = (watched(run)?, Vec::with_capacity(BELLS), Taken::default());
    while !run.is_over() {
        let begun = Instant::now();
        wait(&epoll, &mut events, Duration::ZERO)?;
        while events.is_empty() && begun.elapsed() < longest {
            wait(&epoll, &mut events, Duration::ZERO)?;
        }
        if events.is_empty() {
            wait(&epoll, &mut events, LOOK)?;
        }
        take_all(run, &events, &mut taken);
    }
    Ok(taken)
}

fn by_ring_epoll(run: &Run, between: Duration) -> io::Result<Taken> {
    let (epoll, mut events, mut taken) = (watched(run)?, Vec::with_capacity(BELLS), Taken::default());
    let mut ring = make_ring()?;
    push(&mut ring, poll(&epoll, 0))?;
    while !run.is_over() {
        enter(&ring, between)?;
        let ended = ring.completion().filter(|entry| !io_uring::cqueue::more(entry.flags())).count();
        if ended > 0 {
            push(&mut ring, poll(&epoll, 0))?;
        }
        wait(&epoll, &mut events, Duration::ZERO)?;
        take_all(run, &events, &mut taken);
    }
    Ok(taken)
}

fn by_ring(run: &Run, between: Duration) -> io::Result<Taken> {
    let (mut ring, mut taken, mut ended) = (make_ring()?, Taken::default(), Vec::new());
    for (number, bell) in run.bells.iter().enumerate() {
        push(&mut ring, poll(&bell.fd, number as u64))?;
    }
    while !run.is_over() {
        enter(&ring, between)?;
        let before = taken.events;
        for entry in ring.completion() {
            run.take(entry.user_data() as usize, &mut taken);
            if !io_uring::cqueue::more(entry.flags()) {
                ended.push(entry.user_data());
            }
        }
        taken.wakes += u64::from(taken.events > before);
        for number in ended.drain(..) {
            if let Some(bell) = run.bells.get(number as usize) {
                push(&mut ring, poll(&bell.fd, number))?;
            }
        }
    }
    Ok(taken)
}

fn take_all(run: &Run, events: &[epoll::Event], taken: &mut Taken) {
    taken.wakes += u64::from(!events.is_empty());
    for event in events {
        run.take(event.data.u64() as usize, taken);
    }
}

/// An epoll instance with every bell, edge-triggered.
fn watched(run: &Run) -> io::Result<OwnedFd> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    for (number, bell) in run.bells.iter().enumerate() {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        epoll::add(&epoll, &bell.fd, epoll::EventData::new_u64(number as u64), flags)?;
    }
    Ok(epoll)
}

fn wait(epoll: &OwnedFd, events: &mut Vec<epoll::Event>, timeout: Duration) -> io::Result<()> {
    events.clear();
    let timeout = rustix::event::Timespec { tv_sec: 0, tv_nsec: timeout.subsec_nanos().into() };
    match epoll::wait(epoll, rustix::buffer::spare_capacity(events), Some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A ring that wakes its thread for completions only when enough have come: their work waits for the thread.
fn make_ring() -> io::Result<IoUring> {
    let ring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().setup_cqsize(COMPLETIONS).build(BELLS as u32)?;
    match ring.params().is_feature_min_timeout() {
        true => Ok(ring),
        false => Err(io::Error::other("this kernel's io_uring has no minimum wait: Linux 6.12 has it")),
    }
}

/// Waits for as many completions as there are bells; from `between` on, for a single one.
fn enter(ring: &IoUring, between: Duration) -> io::Result<()> {
    let look = Timespec::new().nsec(LOOK.subsec_nanos());
    let args = SubmitArgs::new().min_wait_usec(between.as_micros() as u32).timespec(&look);
    match ring.submitter().submit_with_args(BELLS, &args) {
        Ok(_) => Ok(()),
        Err(error)
            if [Errno::TIME, Errno::INTR].map(|one| Some(one.raw_os_error())).contains(&error.raw_os_error()) =>
        {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A request to report each time that there is something to read.
fn poll(fd: &OwnedFd, data: u64) -> squeue::Entry {
    opcode::PollAdd::new(Fd(fd.as_raw_fd()), PollFlags::IN.bits().into()).multi(true).build().user_data(data)
}

/// The entry names a descriptor and no memory, so the kernel touches none after this call.
#[expect(unsafe_code, reason = "the queue takes any entry; this one is sound, as said above")]
fn push(ring: &mut IoUring, entry: squeue::Entry) -> io::Result<()> {
    // SAFETY: a poll request has no buffer that it would outlive; a descriptor that is closed makes it fail.
    let pushed = unsafe { ring.submission().push(&entry) };
    pushed.map_err(|_| io::Error::other("the submission queue is full"))?;
    ring.submit().map(drop)
}
