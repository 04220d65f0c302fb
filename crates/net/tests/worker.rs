//! Tasks, wake-ups, deadlines and the end of a worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Duration;
use weir_net::worker::Coalesce;
use weir_net::{ConnectOptions, Deadline, Listener, Stream, clock, counts, timer, worker};

const MS: Duration = Duration::from_millis(1);

fn block_on<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    worker::block_on(future).unwrap()
}

#[test]
fn sleeps_end_in_the_order_of_their_moments() {
    let order = block_on(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        for ms in [70, 10, 130, 30, 0] {
            let order = order.clone();
            worker::spawn(async move {
                timer::sleep(MS * ms).await;
                order.borrow_mut().push(ms);
            });
        }
        while order.borrow().len() < 5 {
            timer::sleep(MS).await;
        }
        order.take()
    });
    assert_eq!(order, [0, 10, 30, 70, 130]);
}

#[test]
fn moving_a_deadline_later_wakes_nobody_early() {
    let polls = block_on(async {
        let deadline = Rc::new(Deadline::new());
        let polls = Rc::new(Cell::new(0));
        let (inside, counted) = (deadline.clone(), polls.clone());
        deadline.set(MS * 5);
        worker::spawn(poll_fn(move |_| {
            counted.set(counted.get() + 1);
            inside.poll_expired()
        }));
        worker::yield_now().await;
        for _ in 0..8 {
            deadline.set(MS * 40);
            timer::sleep(MS * 5).await;
        }
        assert_eq!(polls.get(), 1, "only the poll that registered it");
        while worker::live_tasks() > 1 {
            timer::sleep(MS).await;
        }
        polls.get()
    });
    assert_eq!(polls, 2);
}

#[test]
fn a_deadline_moved_earlier_or_set_while_awaited_fires() {
    block_on(async {
        let deadline = Rc::new(Deadline::new());
        let inside = deadline.clone();
        let fired = Rc::new(Cell::new(0));
        let count = fired.clone();
        worker::spawn(async move {
            // Not yet set when first awaited.
            inside.expired().await;
            count.set(1);
            inside.set(Duration::from_secs(3600));
            inside.expired().await;
            count.set(2);
        });
        worker::yield_now().await;
        assert!(!deadline.is_set());
        deadline.set(MS);
        while fired.get() == 0 {
            worker::yield_now().await;
        }
        worker::yield_now().await;
        deadline.set(MS);
        while fired.get() == 1 {
            worker::yield_now().await;
        }
        assert!(deadline.poll_expired().is_ready(), "until it is moved");
        deadline.clear();
        assert!(deadline.poll_expired().is_pending());
    });
}

#[test]
fn dropping_a_deadline_that_is_awaited_is_harmless() {
    block_on(async {
        for _ in 0..100 {
            let deadline = Deadline::new();
            deadline.set(MS);
            assert!(deadline.poll_expired().is_pending());
        }
        timer::sleep(MS * 3).await;
    });
}

/// Passes its waker to `give`, and ends once `flag` is set.
async fn woken_by(give: mpsc::Sender<Waker>, flag: Arc<AtomicUsize>) {
    poll_fn(|context| {
        if flag.load(Ordering::SeqCst) > 0 {
            return Poll::Ready(());
        }
        let _ = give.send(context.waker().clone());
        Poll::Pending
    })
    .await;
}

#[test]
fn a_waker_works_from_another_thread() {
    let (give, take) = mpsc::channel::<Waker>();
    let flag = Arc::new(AtomicUsize::new(0));
    let raise = flag.clone();
    let other = thread::spawn(move || {
        let waker = take.recv().unwrap();
        // A wake-up before the flag only polls the task again, with the same waker.
        waker.wake_by_ref();
        let again = take.recv().unwrap();
        assert!(again.will_wake(&waker), "one waker a task, made once");
        raise.store(1, Ordering::SeqCst);
        for _ in 0..100 {
            waker.wake_by_ref();
        }
        drop(take);
        waker
    });
    block_on(woken_by(give, flag));
    // The task is gone: waking it, from anywhere, does nothing.
    other.join().unwrap().wake();
}

#[test]
fn a_waker_works_on_its_own_worker_without_mail() {
    let notified = block_on(async {
        let (give, take) = mpsc::channel();
        let flag = Arc::new(AtomicUsize::new(0));
        let before = counts::snapshot().notify;
        worker::spawn(woken_by(give, flag.clone()));
        worker::yield_now().await;
        let waker = take.try_recv().unwrap();
        flag.store(1, Ordering::SeqCst);
        waker.wake();
        worker::yield_now().await;
        assert_eq!(worker::live_tasks(), 1);
        counts::snapshot().notify - before
    });
    assert_eq!(notified, 0);
}

#[test]
fn errands_run_in_order_on_the_worker() {
    let remote = worker::start("errands", None, || ()).unwrap();
    let (tell, told) = mpsc::channel();
    for n in 0..1000 {
        let tell = tell.clone();
        assert!(remote.run(move || {
            let name = thread::current().name().map(str::to_owned);
            tell.send((n, name)).unwrap();
        }));
    }
    for n in 0..1000 {
        assert_eq!(told.recv().unwrap(), (n, Some("errands".into())));
    }
    remote.stop();
    remote.join();
    assert!(!remote.run(|| ()), "it has ended");
}

#[test]
fn a_worker_can_be_pinned_and_says_if_not() {
    let cpu = weir_host::allowed_cpus("/".as_ref())[0];
    let remote = worker::start("pinned", Some(cpu), || ()).unwrap();
    let (tell, told) = mpsc::channel();
    remote.run(move || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:\t"));
        tell.send(line.unwrap().to_owned()).unwrap();
    });
    assert_eq!(told.recv().unwrap(), cpu.to_string());
    remote.stop();
    remote.join();
    assert!(worker::start("nowhere", Some(100_000), || ()).is_err());
}

/// Counts when it is dropped.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
        // Tasks that a dropped task spawns must not keep the worker alive.
        worker::spawn(pending());
    }
}

#[test]
fn stop_drops_tasks_and_closes_sockets() {
    let listening = common::bind();
    let inside = listening.clone();
    let drops = Arc::new(AtomicUsize::new(0));
    let dropped = drops.clone();
    let (tell, told) = mpsc::channel();
    let remote = worker::start("stop", None, move || {
        for _ in 0..10 {
            let guard = Guard(dropped.clone());
            worker::spawn(async move {
                let _guard = guard;
                pending::<()>().await;
            });
        }
        worker::spawn(async move {
            let listener = Listener::new(&inside).unwrap();
            let _held = listener.accept().await.unwrap();
            tell.send(()).unwrap();
            pending::<()>().await;
        });
    })
    .unwrap();
    let mut client = common::dial(&listening);
    told.recv().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    remote.stop();
    remote.join();
    assert_eq!(drops.load(Ordering::SeqCst), 10);
    assert_eq!(client.read(&mut [0; 1]).unwrap(), 0, "closed");
}

#[test]
fn a_panic_ends_its_task_only() {
    block_on(async {
        let before = counts::snapshot().panics;
        let messages = Rc::new(RefCell::new(Vec::new()));
        let log = messages.clone();
        worker::on_panic(Rc::new(move |what| log.borrow_mut().push(what.to_owned())));
        let drops = Arc::new(AtomicUsize::new(0));
        let guard = Guard(drops.clone());
        worker::spawn(async move {
            let _guard = guard;
            timer::sleep(MS).await;
            panic!("boom {}", 1);
        });
        while worker::live_tasks() > 1 && drops.load(Ordering::SeqCst) == 0 {
            timer::sleep(MS).await;
        }
        assert_eq!(*messages.borrow(), ["boom 1"]);
        assert_eq!(counts::snapshot().panics - before, 1);
    });
}

#[test]
fn hooks_run_every_turn_and_are_bounded() {
    let turns = Rc::new(Cell::new(0));
    let counted = turns.clone();
    block_on(async move {
        let inside = counted.clone();
        assert!(worker::at_turn_end(Rc::new(move || inside.set(inside.get() + 1))));
        worker::yield_now().await;
        worker::yield_now().await;
        assert_eq!(counted.get(), 2);
        let accepted = (0..1000).filter(|_| worker::at_turn_end(Rc::new(|| ()))).count();
        assert!(accepted < 1000);
    });
    assert!(turns.get() >= 3, "and once more at the end");
}

#[test]
fn yielding_lets_the_others_run() {
    let order = block_on(async {
        let order = Rc::new(RefCell::new(Vec::new()));
        for name in ["a", "b"] {
            let order = order.clone();
            worker::spawn(async move {
                for _ in 0..3 {
                    order.borrow_mut().push(name);
                    worker::yield_now().await;
                }
            });
        }
        while worker::live_tasks() > 1 {
            worker::yield_now().await;
        }
        order.take()
    });
    assert_eq!(order, ["a", "b", "a", "b", "a", "b"]);
}

#[test]
fn off_a_worker_nothing_hangs() {
    worker::spawn(pending());
    assert_eq!(worker::live_tasks(), 0);
    assert!(Listener::new(&common::bind()).is_err());
    assert!(!worker::at_turn_end(Rc::new(|| ())) || worker::live_sockets() == 0);
    // A worker within a worker is refused, not a deadlock.
    let inner = block_on(async { worker::block_on(async {}).is_err() });
    assert!(inner);
    assert!(worker::block_on(async { panic!("lost") }).is_err());
}

/// Reads what clients send in turn, a byte each, and opens a connection three times a millisecond if it is told an address;
/// returns how often the worker slept.
fn sleeps_while_serving(clients: usize, how: Coalesce, opens: Option<SocketAddr>) -> u64 {
    block_on(async move {
        worker::coalesce(how);
        let mut sockets = Vec::new();
        for _ in 0..clients {
            let (stream, client) = common::pair().await;
            sockets.push(client);
            worker::spawn(async move {
                let deadline = Deadline::new();
                while stream.readable(&deadline).await.is_ok() {
                    match stream.try_read_vec(&mut Vec::new(), 64) {
                        Ok(0) => return,
                        Err(error) if error.kind() != io::ErrorKind::WouldBlock => return,
                        _ => {}
                    }
                }
            });
        }
        let before = counts::snapshot();
        let (tell, told) = mpsc::channel();
        let sending = thread::spawn(move || {
            for number in 0..4000 {
                sockets[number % clients].write_all(b"x").unwrap();
                thread::sleep(Duration::from_micros(10));
            }
            tell.send(()).unwrap();
        });
        while told.try_recv().is_err() {
            if let Some(address) = opens {
                let stream = Stream::connect(&address.into(), &ConnectOptions::default()).unwrap();
                stream.connected(&Deadline::new()).await.unwrap();
                timer::until(clock::precise() + MS / 3).await;
            } else {
                timer::sleep(MS).await;
            }
        }
        sending.join().unwrap();
        counts::snapshot().since(&before).sleep
    })
}

/// Other work of the machine can make the clients so slow that the worker expects too few events: then another try.
const TRIES_MAX: usize = 100;

fn sleeps_in_some_try(how: Coalesce, opens: Option<SocketAddr>) -> bool {
    (0..TRIES_MAX).any(|_| sleeps_while_serving(8, how, opens) > 0)
}

#[test]
fn a_busy_worker_sleeps_between_its_clients_if_it_may() {
    let short = Coalesce::Time(Duration::from_micros(200));
    assert_eq!(sleeps_while_serving(8, Coalesce::Off, None), 0);
    assert_eq!(sleeps_while_serving(8, Coalesce::Auto, None), 0, "no request took long");
    assert!(sleeps_in_some_try(short, None));
    assert_eq!(sleeps_while_serving(1, short, None), 0, "nobody else comes");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().for_each(drop));
    assert!(sleeps_in_some_try(short, Some(address)), "a connection is made soon");
}
