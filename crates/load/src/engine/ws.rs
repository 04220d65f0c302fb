//! `engine: ws` (artillery.md §2.4): one WebSocket per virtual user, from before its first step to its end.
//!
//! A separate task reads the socket, so that pings are answered while the virtual user thinks. As in Artillery, a
//! message counts only if the last step that ran takes data from messages. Artillery ends with exit code 11 at a
//! second message; weir keeps the message for a later `wait`.

mod options;
pub mod shared;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_meter::Step as At;
use weir_net::Instant;

use weir_net::{Deadline, clock, worker};

use self::options::WsTarget;
use self::shared::{SharedSocket, WsMessage, WsSession};
use super::bell::Bell;
use super::dial::ConnectRefused;
use super::take::take;
use super::websocket::{self, ReadyState};
use crate::failed::Failed;
use crate::plan::{Step, Take};
use crate::processor::wires::{ConnectionActions, HeardKind};
use crate::template::Tree;
use crate::value::Value;
use crate::vuser::Vuser;

/// Connects, with the options of the flow's first step if that is a `connect`.
pub async fn open(vuser: &mut Vuser, flow: &[Step]) -> Result<(), Failed> {
    let WsTarget { place, options } = options::target(vuser, flow).await?;
    let begin = clock::precise();
    let socket = match websocket::open(&place, &options).await {
        Ok(socket) => socket,
        Err(refused) => return Err(refuse(vuser, refused)),
    };
    let meant = vuser.meant(begin);
    vuser.answered(meant, begin);
    let link = Rc::new(SharedSocket {
        socket,
        listens: Cell::new(false),
        kept: RefCell::default(),
        bell: Bell::default(),
        wires: RefCell::default(),
    });
    vuser.ws = Some(Box::new(WsSession { link: link.clone(), deadline: Deadline::new() }));
    let worker = vuser.worker.clone();
    worker::spawn(async move {
        link.socket
            .read(&mut |message| {
                if link.listens.get() {
                    worker.recorder.count(worker.ws.received, 1);
                    worker.recorder.rate(worker.ws.receive_rate);
                    link.keep(message);
                }
                link.tell(message);
            })
            .await;
        link.bell.ring();
        if let Some(wires) = link.wires() {
            wires.tell(HeardKind::Lost, "", "", 0);
        }
    });
    Ok(())
}

/// Closes the connection. The virtual user is done, whatever the server does.
pub fn close(vuser: &mut Vuser) {
    vuser.ws = None;
}

/// Carries out `send` and `wait`; `connect` was handled when the connection was opened.
pub async fn step(vuser: &mut Vuser, step: &Step) -> Result<(), Failed> {
    match step {
        Step::Send { payload, then } => send(vuser, payload, then.as_deref()).await,
        Step::Wait(then) => {
            let Some(link) = link(vuser) else { return Ok(()) };
            // A message that no step has taken yet satisfies the `wait`, whenever the server sent it.
            link.listens.set(true);
            vuser.due = None;
            receive(vuser, &link, then, None).await
        }
        _ => Ok(()),
    }
}

fn link(vuser: &Vuser) -> Option<Rc<SharedSocket>> {
    vuser.ws.as_ref().map(|session| session.link.clone())
}

async fn send(vuser: &mut Vuser, payload: &Tree, then: Option<&Take>) -> Result<(), Failed> {
    let Some(link) = link(vuser) else { return Ok(()) };
    let rendered;
    let value = match payload.literal() {
        Some(value) => value,
        None => {
            rendered = payload.value(&vuser.vars, &*vuser.worker.functions);
            &rendered
        }
    };
    link.listens.set(then.is_some());
    let due = vuser.due.take();
    if *value == Value::Undefined && payload.literal().is_some() {
        let Some(then) = then else {
            // Artillery's wording, and its second count of the same failure.
            vuser.worker.count_error("invalid_step");
            return Err(Failed("undefined".into()));
        };
        return receive(vuser, &link, then, None).await;
    }
    link.kept.borrow_mut().clear();
    let shared = &vuser.worker.ws;
    vuser.worker.recorder.count(shared.sent, 1);
    vuser.worker.recorder.rate(shared.send_rate);
    if link.socket.state() != ReadyState::Open {
        return Err(not_open(vuser, link.socket.state()));
    }
    let begin = then.map(|_| clock::precise()).map(|begin| (due.map_or(begin, |due| due.min(begin)), begin));
    match value {
        Value::Text(text) => {
            debug(vuser, "send", text.as_bytes());
            link.socket.send_text(text.as_bytes());
        }
        value => {
            let mut text = weir_net::buffer::lease(1);
            match value {
                Value::Null | Value::List(_) | Value::Map(_) => {
                    value.write_json(&mut text);
                }
                Value::Undefined => {}
                value => value.write_text(&mut text),
            }
            debug(vuser, "send", &text);
            link.socket.send_text(&text);
        }
    }
    match then {
        Some(then) => receive(vuser, &link, then, begin).await,
        None => {
            link.socket.sent().await;
            Ok(())
        }
    }
}

/// Prints a line if `DEBUG=ws` is set.
fn debug(vuser: &Vuser, what: &str, message: &[u8]) {
    if vuser.worker.debug.ws {
        let message = String::from_utf8_lossy(message);
        vuser.worker.say_debug([format!("ws WS {what}: {message}")]);
    }
}

/// Waits for the next message and takes the step's captures from it.
///
/// `begin`: the intended and the actual time of the message that asked for this one, if there was one.
async fn receive(
    vuser: &mut Vuser,
    link: &SharedSocket,
    then: &Take,
    begin: Option<(Instant, Instant)>,
) -> Result<(), Failed> {
    let Some(message) = next(vuser, link).await else {
        // Artillery's error here is a text, so its code and message are lost.
        vuser.worker.count_error("response timeout");
        vuser.worker.recorder.failure(At::Tunnel, "response timeout");
        return Err(Failed("undefined".into()));
    };
    if let Some((meant, sent)) = begin {
        vuser.answered(meant, sent);
    }
    debug(vuser, "receive", &message.payload);
    if message.is_text && message.payload.is_empty() {
        return Err(Failed("Empty response from WS server".into()));
    }
    match take(vuser, then, &message.payload) {
        true => Ok(()),
        false => Err(Failed("Failed capture or match".into())),
    }
}

/// The next message; `None` after the deadline. On a closed connection this also waits for the deadline.
async fn next(vuser: &Vuser, link: &SharedSocket) -> Option<WsMessage> {
    let kept = link.kept.borrow_mut().pop_front();
    if kept.is_some() {
        return kept;
    }
    let deadline = &vuser.ws.as_ref()?.deadline;
    deadline.set(vuser.worker.ws.wait);
    let message = poll_fn(|context| {
        if let Some(message) = link.kept.borrow_mut().pop_front() {
            return Poll::Ready(Some(message));
        }
        link.bell.listen(context);
        deadline.poll_expired().map(|()| None)
    })
    .await;
    deadline.clear();
    message
}

/// The connection for a processor.
pub(crate) fn line(vuser: &Vuser) -> Option<Box<dyn ConnectionActions>> {
    Some(Box::new(link(vuser)?))
}

/// Counts the message of a failed connection. Artillery also counts the error's code, or the message again.
fn refuse(vuser: &Vuser, refused: ConnectRefused) -> Failed {
    let name = refused.code.map_or_else(|| refused.message.clone(), str::to_owned);
    vuser.worker.recorder.failure(refused.step, &name);
    vuser.worker.count_error(&refused.message);
    Failed(name.into())
}

/// Makes the two counts of a `send` on a connection that is no longer open.
fn not_open(vuser: &Vuser, state: ReadyState) -> Failed {
    let state = if state == ReadyState::Closed { "3 (CLOSED)" } else { "2 (CLOSING)" };
    let message = format!("WebSocket is not open: readyState {state}");
    vuser.worker.recorder.failure(At::Tunnel, &message);
    vuser.worker.count_error(&format!("Error: {message}"));
    Failed(message.into())
}
