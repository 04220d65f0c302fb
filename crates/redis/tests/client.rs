//! The client against a server of its own, whose answers the tests choose.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::future::Future;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use weir_net::worker;
use weir_redis::{Commands, Message, NoReply, QUEUE_MAX, RedisServer, Value};

/// Time enough on a busy machine.
const LONG: Duration = Duration::from_secs(20);

/// A time limit that passes.
const SHORT: Duration = Duration::from_millis(150);

/// The answer to the two commands of a login without a password.
const HELLO: &str = "+OK\r\n-ERR unknown subcommand\r\n";

/// A connection that the fake has accepted.
struct Side(TcpStream);

impl Side {
    /// Answers when the client has sent these words; returns all that it sent until then.
    fn answer(&mut self, words: &str, answer: &str) -> String {
        let mut heard = Vec::new();
        while !String::from_utf8_lossy(&heard).contains(words) {
            let mut part = [0; 1024];
            let count = self.0.read(&mut part).unwrap();
            assert!(count > 0, "closed before {words}: {}", String::from_utf8_lossy(&heard));
            heard.extend_from_slice(&part[..count]);
        }
        self.0.write_all(answer.as_bytes()).unwrap();
        String::from_utf8(heard).unwrap()
    }
}

/// A server whose connections arrive over a channel, each with its login answered.
fn fake(login: &str) -> (RedisServer, Receiver<Side>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = RedisServer::parse(&format!("redis://{login}{}", listener.local_addr().unwrap())).unwrap();
    let (sender, sides): (Sender<Side>, _) = channel();
    let has_login = !login.is_empty();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(LONG)).unwrap();
            let mut side = Side(stream);
            if !has_login {
                side.answer("LIB-VER", HELLO);
            }
            if sender.send(side).is_err() {
                return;
            }
        }
    });
    (server, sides)
}

fn run<T: 'static>(future: impl Future<Output = T> + 'static) -> T {
    worker::block_on(future).unwrap()
}

fn ask(server: &RedisServer, word: &'static str, timeout: Duration) -> Result<Vec<Value>, NoReply> {
    let server = server.clone();
    run(async move { server.ask(Commands::one(&[word]), timeout).await })
}

fn text(text: &str) -> Value {
    Value::Text(text.as_bytes().to_vec())
}

#[test]
fn all_requests_to_a_server_share_one_connection() {
    let (server, sides) = fake("");
    let same = RedisServer::parse(&format!("redis://{server}/0")).unwrap();
    let fakes = thread::spawn(move || {
        let mut side = sides.recv().unwrap();
        side.answer("FIRST", "+one\r\n");
        side.answer("SECOND", "-ERR no\r\n");
        side.answer("THIRD", "+three\r\n");
        sides.try_recv().is_ok()
    });
    assert_eq!(ask(&server, "FIRST", LONG), Ok(vec![text("one")]));
    // A command that the server refuses does not end the connection.
    assert_eq!(ask(&same, "SECOND", LONG), Err(NoReply::Refused("ERR no".to_owned())));
    assert_eq!(server.ask_and_block(Commands::one(&["THIRD"]), LONG), Ok(vec![text("three")]));
    assert!(!fakes.join().unwrap());
}

#[test]
fn a_connection_that_ended_or_hangs_is_replaced() {
    let (server, sides) = fake("");
    let fakes = thread::spawn(move || {
        sides.recv().unwrap().answer("FIRST", "+one\r\n");
        let mut hangs = sides.recv().unwrap();
        hangs.answer("SECOND", "");
        let mut third = sides.recv().unwrap();
        third.answer("THIRD", "+three\r\n");
        third.answer("FOURTH", "+fo");
        drop(third);
        sides.recv().unwrap().answer("FIFTH", "%1\r\n");
        drop(hangs);
    });
    assert_eq!(ask(&server, "FIRST", LONG), Ok(vec![text("one")]));
    // Until the client's kernel knows of the close, a command is lost with its connection.
    let second =
        (0..100).map(|_| ask(&server, "SECOND", SHORT)).find(|answer| !matches!(answer, Err(NoReply::Lost(_))));
    assert_eq!(second, Some(Err(NoReply::Late)));
    assert_eq!(ask(&server, "THIRD", LONG), Ok(vec![text("three")]));
    let lost = |answer: Result<_, NoReply>| answer.unwrap_err().to_string();
    assert!(lost(ask(&server, "FOURTH", LONG)).contains("closed the connection"));
    assert!(lost(ask(&server, "FIFTH", LONG)).contains("not in its protocol"));
    fakes.join().unwrap();
}

#[test]
fn a_server_that_is_away_is_an_error_and_full_queues_are_too() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = RedisServer::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    drop(listener);
    assert!(matches!(ask(&server, "PING", LONG), Err(NoReply::Lost(_))));

    // Accepts, and never answers: one batch is under way, and the queue fills behind it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = RedisServer::parse(&format!("redis://{}", listener.local_addr().unwrap())).unwrap();
    let full = run(async move {
        let (sender, receiver) = channel();
        for _ in 0..QUEUE_MAX * 4 {
            let (server, sender) = (server.clone(), sender.clone());
            worker::spawn(async move { drop(sender.send(server.ask(Commands::one(&["PING"]), SHORT).await)) });
        }
        weir_net::timer::sleep(SHORT * 4).await;
        receiver.try_iter().filter(|answer| *answer == Err(NoReply::Full)).count()
    });
    assert!(full > 0);
    drop(listener);
}

#[test]
fn a_login_is_sent_and_its_refusal_has_no_password() {
    for (login, answers, expected, result) in [
        (
            "u:s3cret@",
            vec!["-WRONGPASS invalid\r\n+OK\r\n+OK\r\n"],
            "AUTH\r\n$1\r\nu\r\n$6\r\ns3cret",
            "WRONGPASS invalid",
        ),
        (":s3cret@", vec!["+OK\r\n+OK\r\n+OK\r\n"], "*2\r\n$4\r\nAUTH\r\n$6\r\ns3cret", ""),
        // Redis before version 6 has a password and no users.
        (
            "u:s3cret@",
            vec![
                "-ERR wrong number of arguments for 'auth' command\r\n-NOAUTH\r\n-NOAUTH\r\n",
                "+OK\r\n-ERR\r\n-ERR\r\n",
            ],
            "*2\r\n$4\r\nAUTH\r\n$6\r\ns3cret",
            "",
        ),
    ] {
        let (server, sides) = fake(login);
        let fakes = thread::spawn(move || {
            let mut side = sides.recv().unwrap();
            answers.iter().map(|answer| side.answer("LIB-VER", answer)).collect::<String>()
        });
        let said = {
            let server = server.clone();
            run(async move { server.link(LONG).await.err().map_or(String::new(), |failed| failed.to_string()) })
        };
        assert_eq!(said, result);
        assert!(fakes.join().unwrap().contains(expected), "{login}");
        assert!(!format!("{server} {server:?}").contains("s3cret"));
    }
}

#[test]
fn messages_of_channels_arrive_and_a_silent_server_is_asked() {
    let (server, sides) = fake("");
    let fakes = thread::spawn(move || {
        let mut side = sides.recv().unwrap();
        let heard = side
            .answer("p*", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n*3\r\n$10\r\npsubscribe\r\n$2\r\np*\r\n:2\r\n");
        assert!(heard.contains("PSUBSCRIBE"));
        side.0.write_all(b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nx\r\n").unwrap();
        side.0.write_all(b"*4\r\n$8\r\npmessage\r\n$2\r\np*\r\n$2\r\npq\r\n$1\r\ny\r\n").unwrap();
        side.answer("PING", "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
        side.answer("PING", "");
    });
    let message = |channel: &str, content: &str| {
        Ok(Some(Message { channel: channel.as_bytes().to_vec(), content: content.as_bytes().to_vec() }))
    };
    let heard = run(async move {
        let mut link = server.link(LONG).await.unwrap();
        link.subscribe(&["c"], &["p*"], LONG).await.unwrap();
        let first = [link.message(LONG, LONG).await, link.message(LONG, LONG).await];
        (first, link.message(SHORT, LONG).await, link.message(SHORT, LONG).await)
    });
    assert_eq!(heard.0, [message("c", "x"), message("pq", "y")]);
    assert_eq!(heard.1, Ok(None));
    assert!(heard.2.is_err());
    fakes.join().unwrap();
}
