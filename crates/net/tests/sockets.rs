//! Real loopback sockets through a real worker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{bind, dial, pair, read, serve_echo};
use std::io::{self, IoSlice, Read, Seek, Write};
use std::net::Shutdown;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use weir_net::{
    Address, ConnectOptions, Deadline, ListenOptions, Listener, Local, Stream, TimedOut, buffer, counts, listener,
    process, worker,
};

fn block_on<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    worker::block_on(future).unwrap()
}

fn would_block<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

#[test]
fn echo_over_loopback() {
    let listening = bind();
    let inside = listening.clone();
    let remote = worker::start("echo", None, || worker::spawn(serve_echo(inside))).unwrap();
    let mut clients: Vec<_> = (0..20).map(|_| dial(&listening)).collect();
    for round in 0..50u8 {
        for client in &mut clients {
            client.write_all(&[round; 100]).unwrap();
        }
        for client in &mut clients {
            let mut back = [0; 100];
            client.read_exact(&mut back).unwrap();
            assert_eq!(back, [round; 100]);
        }
    }
    remote.stop();
    remote.join();
}

#[test]
fn a_thousand_idle_connections_hold_no_buffer() {
    process::raise_nofile().unwrap();
    let listening = bind();
    let inside = listening.clone();
    let remote = worker::start("idle", None, || worker::spawn(serve_echo(inside))).unwrap();
    let mut clients: Vec<_> = (0..1000).map(|_| dial(&listening)).collect();
    for client in &mut clients {
        client.write_all(b"x").unwrap();
        client.read_exact(&mut [0; 1]).unwrap();
    }
    let (tell, told) = mpsc::channel();
    let ask = move || tell.send((worker::live_tasks(), worker::live_sockets())).unwrap();
    remote.run(ask.clone());
    assert_eq!(told.recv().unwrap(), (1001, 1001));
    drop(clients);
    loop {
        remote.run(ask.clone());
        if told.recv().unwrap() == (1, 1) {
            break;
        }
        thread::yield_now();
    }
    remote.stop();
    remote.join();
}

#[test]
fn the_steady_path_is_one_read_and_one_write() {
    const ROUNDS: u64 = 100;
    let delta = block_on(async {
        let (stream, mut client) = pair().await;
        let deadline = Deadline::new();
        let peer = thread::spawn(move || {
            for _ in 0..ROUNDS {
                client.write_all(b"ping").unwrap();
                client.read_exact(&mut [0; 4]).unwrap();
            }
        });
        let before = counts::snapshot();
        for _ in 0..ROUNDS {
            deadline.set(Duration::from_secs(60));
            stream.readable(&deadline).await.unwrap();
            let mut bytes = buffer::lease(4096);
            assert_eq!(stream.try_read_vec(&mut bytes, 4096).unwrap(), 4);
            assert_eq!(stream.try_write(&bytes).unwrap(), 4);
        }
        let delta = counts::snapshot().since(&before);
        peer.join().unwrap();
        delta
    });
    assert_eq!((delta.read, delta.write), (ROUNDS, ROUNDS));
    assert_eq!((delta.epoll_ctl, delta.sockopt, delta.accept), (0, 0, 0));
    assert!(delta.epoll_wait <= ROUNDS + 1, "{delta:?}");
}

#[test]
fn a_half_closed_peer_is_read_to_the_end() {
    let got = block_on(async {
        let (stream, mut client) = pair().await;
        let deadline = Deadline::new();
        client.write_all(&[7; 10_000]).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        while !stream.is_hup() {
            worker::yield_now().await;
        }
        assert!(stream.is_half_closed());
        // Short reads must not lose the end: no edge follows.
        let mut total = 0;
        loop {
            stream.readable(&deadline).await.unwrap();
            match stream.try_read_vec(&mut Vec::new(), 999).unwrap() {
                0 => break,
                len => total += len,
            }
        }
        // The other direction still works.
        assert_eq!(stream.try_write(b"bye").unwrap(), 3);
        stream.shutdown_write().unwrap();
        let mut back = String::new();
        client.read_to_string(&mut back).unwrap();
        assert_eq!(back, "bye");
        total
    });
    assert_eq!(got, 10_000);
}

#[test]
fn a_pooled_connection_knows_that_it_was_closed() {
    block_on(async {
        let (stream, client) = pair().await;
        let before = counts::snapshot().peek;
        assert!(!stream.peek_closed());
        assert_eq!(counts::snapshot().peek, before, "nothing happened: no syscall");
        drop(client);
        while !stream.peek_closed() {
            worker::yield_now().await;
        }

        // Unsolicited bytes are as bad.
        let (stream, mut client) = pair().await;
        client.write_all(b"?").unwrap();
        while !stream.peek_closed() {
            worker::yield_now().await;
        }

        // After a read that emptied the socket, the connection may go to the pool.
        let (stream, mut client) = pair().await;
        client.write_all(b"answer").unwrap();
        assert_eq!(read(&stream, &Deadline::new()).await.unwrap(), b"answer");
        assert!(!stream.peek_closed());
    });
}

#[test]
fn a_closed_stream_does_not_disturb_its_successor() {
    block_on(async {
        let listening = bind();
        let listener = Listener::new(&listening).unwrap();
        for _ in 0..20 {
            let mut first = dial(&listening);
            let (old, _) = listener.accept().await.unwrap();
            let _second = dial(&listening);
            first.write_all(b"late").unwrap();
            // `old` is closed while its event is pending; `new` takes the slot at once.
            drop(old);
            let (new, _) = listener.accept().await.unwrap();
            worker::yield_now().await;
            worker::yield_now().await;
            assert!(new.poll_readable().is_pending());
            assert!(!new.is_hup());
        }
    });
}

#[test]
fn connecting_tells_its_outcome() {
    block_on(async {
        let deadline = Deadline::new();
        let listening = bind();
        let options = ConnectOptions {
            bind: Some(Local { address: "127.0.0.1:0".parse().unwrap(), transparent: false }),
            receive_buffer_bytes: 65_536,
            send_buffer_bytes: 65_536,
            keepalive: true,
        };
        let stream = Stream::connect(listening.local_addr(), &options).unwrap();
        let before = counts::snapshot().sockopt;
        stream.connected(&deadline).await.unwrap();
        assert_eq!(counts::snapshot().sockopt, before, "success costs no syscall");
        assert_eq!(stream.peer_addr().unwrap(), *listening.local_addr());
        assert!(stream.tcp_info().unwrap().snd_cwnd > 0);

        let address = listening.local_addr().clone();
        drop(listening);
        let refused = match Stream::connect(&address, &ConnectOptions::default()) {
            Ok(stream) => stream.connected(&deadline).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn waiting_ends_at_the_deadline() {
    block_on(async {
        let (stream, mut client) = pair().await;
        let deadline = Deadline::new();
        deadline.set(Duration::from_millis(3));
        assert_eq!(stream.readable(&deadline).await, Err(TimedOut));
        // Readiness wins over a deadline that has passed.
        client.write_all(b"late").unwrap();
        deadline.set(Duration::from_secs(60));
        stream.readable(&deadline).await.unwrap();
        deadline.set(Duration::ZERO);
        assert_eq!(stream.readable(&deadline).await, Ok(()));
        let error = io::Error::from(TimedOut);
        assert_eq!(error.raw_os_error(), Some(110));
    });
}

#[test]
fn a_full_send_buffer_waits_for_room() {
    const TOTAL: usize = 8 << 20;
    let read = block_on(async {
        let (stream, mut client) = pair().await;
        let chunk = vec![1u8; 256 * 1024];
        let mut sent = 0;
        while sent < TOTAL {
            match stream.try_write_vectored(&[IoSlice::new(&chunk), IoSlice::new(&chunk)]) {
                Ok(len) => sent += len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(sent < TOTAL, "the peer reads nothing, so it must fill up");
        assert!(stream.poll_writable().is_pending());
        let peer = thread::spawn(move || {
            let mut bytes = Vec::new();
            client.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        while sent < TOTAL {
            stream.writable(&Deadline::new()).await.unwrap();
            match stream.try_write(&chunk[..chunk.len().min(TOTAL - sent)]) {
                Ok(len) => sent += len,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
        drop(stream);
        peer.join().unwrap()
    });
    assert_eq!(read, TOTAL);
}

#[test]
fn files_are_sent_from_an_offset() {
    block_on(async {
        let path = std::env::temp_dir().join(format!("weir-net-send-{}", std::process::id()));
        let mut file = std::fs::File::options();
        let mut file = file.read(true).write(true).create(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file.write_all(b"0123456789").unwrap();
        file.rewind().unwrap();
        let (stream, mut client) = pair().await;
        let mut offset = 4;
        assert_eq!(stream.try_sendfile(&file, &mut offset, 3).unwrap(), 3);
        assert_eq!(offset, 7);
        assert_eq!(stream.try_sendfile(&file, &mut offset, 100).unwrap(), 3);
        assert_eq!(stream.try_sendfile(&file, &mut offset, 100).unwrap(), 0);
        drop(stream);
        let mut got = String::new();
        client.read_to_string(&mut got).unwrap();
        assert_eq!(got, "456789");
    });
}

#[test]
fn closing_with_linger_zero_resets() {
    block_on(async {
        let (stream, mut client) = pair().await;
        stream.set_linger_zero().unwrap();
        drop(stream);
        let error = client.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_vector_is_filled_to_the_limit_and_no_further() {
    block_on(async {
        let (stream, mut client) = pair().await;
        client.write_all(&[9; 100]).unwrap();
        stream.readable(&Deadline::new()).await.unwrap();
        let mut bytes = Vec::with_capacity(64);
        bytes.push(1);
        assert_eq!(stream.try_read_vec(&mut bytes, 10).unwrap(), 10);
        assert_eq!(stream.try_read_vec(&mut bytes, 1000).unwrap(), 53);
        assert_eq!(bytes.len(), bytes.capacity());
        assert_eq!(stream.try_read_vec(&mut bytes, 200).unwrap(), 37);
        assert_eq!((bytes[0], bytes[1], bytes.len()), (1, 9, 101));
        assert!(would_block(stream.try_read_vec(&mut bytes, 10)));
        assert!(stream.poll_readable().is_pending());
    });
}

#[test]
fn a_stream_can_leave_the_runtime_and_come_back() {
    block_on(async {
        let (stream, mut client) = pair().await;
        let sockets = worker::live_sockets();
        let fd = stream.into_fd();
        assert_eq!(worker::live_sockets(), sockets - 1);
        let stream = Stream::from_fd(fd).unwrap();
        client.write_all(b"again").unwrap();
        assert_eq!(read(&stream, &Deadline::new()).await.unwrap(), b"again");
    });
}

#[test]
fn workers_share_one_socket_or_have_their_own() {
    for reuseport in [false, true] {
        let options = ListenOptions { reuseport, ..ListenOptions::default() };
        let first = listener::bind(&common::loopback(), &options).unwrap();
        let second = match reuseport {
            true => listener::bind(first.local_addr(), &options).unwrap(),
            false => first.clone(),
        };
        let serve =
            |listening: listener::Listening| worker::start("w", None, || worker::spawn(serve_echo(listening))).unwrap();
        let (one, two) = (serve(first.clone()), serve(second));
        for _ in 0..50 {
            let mut client = dial(&first);
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0; 1]).unwrap();
        }
        // One worker leaves: the other accepts all connections (a shared socket loses none).
        if !reuseport {
            one.stop();
            one.join();
            let mut client = dial(&first);
            client.write_all(b"x").unwrap();
            client.read_exact(&mut [0; 1]).unwrap();
        }
        for remote in [one, two] {
            remote.stop();
            remote.join();
        }
    }
}

#[test]
fn unix_sockets_work_and_an_abandoned_one_is_replaced() {
    let path = std::env::temp_dir().join(format!("weir-net-{}.sock", std::process::id()));
    let address = Address::Unix(path.clone());
    let inside = address.clone();
    block_on(async move {
        let listening = listener::bind(&inside, &ListenOptions::default()).unwrap();
        assert!(listener::bind(&inside, &ListenOptions::default()).is_err(), "in use");
        let listener = Listener::new(&listening).unwrap();
        // The attempt to take the address made a connection and closed it again.
        let (probe, _) = listener.accept().await.unwrap();
        assert_eq!(read(&probe, &Deadline::new()).await.unwrap(), b"");
        let client = Stream::connect(&inside, &ConnectOptions::default()).unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        assert_eq!(peer.to_string(), "unix:");
        assert_eq!(client.try_write(b"hi").unwrap(), 2);
        assert_eq!(read(&stream, &Deadline::new()).await.unwrap(), b"hi");
    });
    // The file is still there, but no process listens.
    let again = listener::bind(&address, &ListenOptions::default());
    std::fs::remove_file(&path).unwrap();
    again.unwrap();
    // A file that is not a socket is never removed.
    std::fs::write(&path, "precious").unwrap();
    assert!(listener::bind(&address, &ListenOptions::default()).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
}
