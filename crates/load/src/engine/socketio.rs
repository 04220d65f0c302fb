//! `engine: socketio` (artillery.md §2.5): socket.io-client 4's protocol, by long poll and by WebSocket.
//!
//! Differences from Artillery: `response_time` has one sample per response; a `response` without `data` is complete
//! with the first event; all namespaces share one connection unless `forceNew` or `multiplex: false` is set, as in
//! socket.io-client for one user. (In Artillery all virtual users share one connection cache, so that each user but
//! the first opens one connection for every namespace.) If the connection of an awaited acknowledgement is lost, the
//! virtual user fails; in Artillery it waits for ever.

mod client;
mod options;
mod packet;
mod poll;
pub mod shared;
mod transport;

use std::borrow::Cow;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use weir_meter::Step as At;
use weir_net::Instant;

use weir_net::{Deadline, buffer, clock};

use self::client::SocketioClient;
use self::options::SocketioOptions;
use self::packet::{PacketType, push_argument, push_head};
use self::shared::{ClientNamespace, Clients, Connections, SocketioSession, find};
use super::take::take_arguments;
use crate::failed::Failed;
use crate::plan::{Emit, Expected, Response, Step};
use crate::processor::wires::ConnectionActions;
use crate::template::{Template, Tree};
use crate::value::{Value, parse_json};
use crate::vuser::Vuser;

/// Connects the default namespace.
pub async fn open(vuser: &mut Vuser) -> Result<(), Failed> {
    let options = options_of(vuser)?;
    vuser.socketio =
        Some(Box::new(SocketioSession { options, clients: Clients::default(), deadline: Deadline::new() }));
    let begin = clock::precise();
    match namespace(vuser, "").await {
        Ok(_) => {
            let meant = vuser.meant(begin);
            vuser.answered(meant, begin);
            Ok(())
        }
        // Here Artillery counts the error as text; for later namespaces it counts only the message.
        Err(message) => Err(Failed(format!("Error: {message}").into())),
    }
}

/// Disconnects. The virtual user is done, whatever the server does.
pub fn close(vuser: &mut Vuser) {
    vuser.socketio = None;
}

/// The connections for a processor.
pub(crate) fn line(vuser: &Vuser) -> Option<Box<dyn ConnectionActions>> {
    let session = vuser.socketio.as_ref()?;
    Some(Box::new(Connections { options: session.options.clone(), clients: session.clients.clone() }))
}

/// Carries out an `emit`; this engine ignores requests and other kinds of steps.
pub async fn step(vuser: &mut Vuser, step: &Step) -> Result<(), Failed> {
    match step {
        Step::Emit(spec) => emit(vuser, spec).await,
        _ => Ok(()),
    }
}

async fn emit(vuser: &mut Vuser, spec: &Emit) -> Result<(), Failed> {
    let name = spec.namespace.as_ref().map_or(Cow::Borrowed(""), |name| Cow::Owned(text(vuser, name)));
    let place = namespace(vuser, &name).await.map_err(Failed::from)?;
    let (client, index) = (&place.client, place.index);
    let worker = vuser.worker.clone();
    if spec.message.is_some() {
        worker.recorder.count(worker.socketio.emits, 1);
        worker.recorder.rate(worker.socketio.emit_rate);
    }
    let sent = clock::precise();
    let meant = vuser.meant(sent);
    let id = spec.acknowledge.as_ref().map(|_| client.next_id(index));
    let channel = spec.response.as_ref().map(|response| text(vuser, &response.channel));
    if id.is_some() || channel.is_some() {
        client.want(index, id, channel);
    }
    if let Some((event, arguments)) = &spec.message {
        let mut packet = buffer::lease(1);
        client.with_name(index, |name| push_head(&mut packet, PacketType::Event, name, id));
        let head = packet.len();
        push_event(vuser, event, arguments, &mut packet);
        debug(vuser, || format!("emit {}: {}", place.name(), lossy(packet.get(head..))));
        client.emit(index, &packet);
        drop(packet);
        client.room().await;
    }
    let outcome = answers(vuser, &place, spec, (meant, sent)).await;
    if id.is_some() || spec.response.is_some() {
        client.want_nothing();
    }
    outcome
}

/// Waits for the expected response and acknowledgement, and records the time since the intended and the actual send.
async fn answers(
    vuser: &mut Vuser,
    place: &ClientNamespace,
    spec: &Emit,
    (meant, sent): (Instant, Instant),
) -> Result<(), Failed> {
    let mut took = None;
    if let Some(response) = &spec.response {
        let received = respond(vuser, place, response).await?;
        took = spec.acknowledge.is_none().then(|| vuser.answered(meant, sent));
        taken(vuser, &response.expected, received)?;
    }
    if let Some(expected) = &spec.acknowledge {
        let arguments = acknowledged(vuser, place).await?;
        took = Some(vuser.answered(meant, sent));
        acknowledge(vuser, expected, arguments)?;
    }
    // As in Artillery, a step that expects nothing gives a sample too. It gives no latency, because there is no
    // answer.
    let took = took.unwrap_or_else(|| clock::precise().saturating_duration_since(sent));
    vuser.worker.recorder.sample(vuser.worker.socketio.response_time, took.as_secs_f64() * 1e3);
    Ok(())
}

/// Waits until the received data on the channel equals the expected data, and returns it.
async fn respond(vuser: &mut Vuser, place: &ClientNamespace, response: &Response) -> Result<Vec<Value>, Failed> {
    let expected = response.expected.data.as_ref().map(|data| value(vuser, data));
    let mut received: Vec<Value> = Vec::new();
    if let Some(session) = &vuser.socketio {
        session.deadline.set(vuser.worker.socketio.wait);
    }
    loop {
        let Some(event) = next_event(vuser, &place.client).await else { break };
        debug(vuser, || format!("receive {}: {event}", place.name()));
        received.extend(list(&event).into_iter().skip(1));
        if expected.as_ref().is_none_or(|expected| compare(vuser, &received, expected, response.concat)) {
            return Ok(received);
        }
    }
    if received.is_empty() {
        vuser.worker.recorder.failure(At::Tunnel, "response timeout");
        return Err(Failed("response timeout".into()));
    }
    match expected {
        Some(expected) if expected.is_truthy() => Err(not_valid(vuser, &received, &expected)),
        _ => Ok(received),
    }
}

/// The next event on the channel; `None` after the deadline.
async fn next_event(vuser: &Vuser, client: &SocketioClient) -> Option<String> {
    let deadline = &vuser.socketio.as_ref()?.deadline;
    poll_fn(|context| {
        if let Some(event) = client.take_event() {
            return Poll::Ready(Some(event));
        }
        client.listen(context);
        deadline.poll_expired().map(|()| None)
    })
    .await
}

/// Waits for the acknowledgement without a time limit, as Artillery does.
async fn acknowledged(vuser: &Vuser, place: &ClientNamespace) -> Result<Vec<Value>, Failed> {
    let acked = poll_fn(|context| match place.client.take_ack(place.index) {
        Some(acked) => Poll::Ready(acked),
        None => {
            place.client.listen(context);
            Poll::Pending
        }
    });
    match acked.await {
        Ok(arguments) => {
            debug(vuser, || format!("acknowledgement {}: {arguments}", place.name()));
            Ok(list(&arguments))
        }
        Err(why) => {
            vuser.worker.recorder.failure(At::Tunnel, why);
            Err(Failed(format!("Error: {why}").into()))
        }
    }
}

/// Compares an acknowledgement with the expected data, and takes its captures.
fn acknowledge(vuser: &mut Vuser, expected: &Expected, arguments: Vec<Value>) -> Result<(), Failed> {
    let data = expected.data.as_ref().map(|data| value(vuser, data));
    if let Some(data) = data.filter(Value::is_truthy)
        && !compare(vuser, &arguments, &data, false)
    {
        return Err(not_valid(vuser, &arguments, &data));
    }
    taken(vuser, expected, arguments)
}

/// Runs captures and matches. Here a capture that finds nothing is no failure; a failed match is one, even if it is
/// not strict.
fn taken(vuser: &mut Vuser, expected: &Expected, arguments: Vec<Value>) -> Result<(), Failed> {
    if expected.take.captures.is_empty() && expected.take.matches.is_empty() {
        return Ok(());
    }
    let arguments = Value::from(arguments);
    if !take_arguments(vuser, &expected.take, arguments.clone()) {
        return Err(Failed("Failed match".into()));
    }
    vuser.vars.set_by_name("$", Value::from(arguments.to_json().unwrap_or_default()));
    Ok(())
}

/// Prints a line if `DEBUG=socketio` is set.
fn debug(vuser: &Vuser, say: impl FnOnce() -> String) {
    if vuser.worker.debug.socketio {
        vuser.worker.say_debug([format!("socketio {}", say())]);
    }
}

fn lossy(bytes: Option<&[u8]>) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.unwrap_or_default())
}

/// True if the received data equals the expected data; prints the comparison if `DEBUG=socketio` is set.
fn compare(vuser: &Vuser, received: &[Value], expected: &Value, joins: bool) -> bool {
    if let Value::Text(part) = expected {
        let last = || received.last().map(|last| last.to_text().into_owned()).unwrap_or_default();
        debug(vuser, || format!("checking if string {part} is a partial match for string {}", last()));
    }
    is_valid(received, expected, joins)
}

fn not_valid(vuser: &Vuser, received: &[Value], expected: &Value) -> Failed {
    let json = |value: &Value| value.to_json().unwrap_or_default();
    debug(vuser, || format!("data is not valid: {} {}", json(&Value::from(received.to_vec())), json(expected)));
    Failed("data is not valid".into())
}

/// True if the received data equals the expected data: a list must equal all of it, a text must be part of the last
/// element, any other value must equal the last element.
fn is_valid(received: &[Value], expected: &Value, joins: bool) -> bool {
    let last = received.last();
    match expected {
        Value::List(all) => {
            all.len() == received.len() && all.iter().zip(received).all(|(one, other)| one.is_deeply(other))
        }
        Value::Text(part) if joins => {
            let mut joined = Vec::new();
            received.iter().for_each(|value| value.write_text(&mut joined));
            String::from_utf8_lossy(&joined).contains(&**part)
        }
        Value::Text(part) => match last {
            Some(Value::Text(text)) => text.contains(&**part),
            Some(Value::List(list)) => list.iter().any(|item| item.is_same(expected)),
            _ => false,
        },
        expected => last.is_some_and(|last| last.is_deeply(expected)),
    }
}

/// The namespace of a step: a known one, or one connected here. The error is the message.
async fn namespace(vuser: &mut Vuser, name: &str) -> Result<ClientNamespace, String> {
    let Some(session) = &mut vuser.socketio else { return Err("invalid arguments".to_owned()) };
    let full = session.options.full_name(name);
    let place = match find(&session.clients, &full) {
        Some(place) => place,
        None => session.add(&full),
    };
    if place.client.is_new(place.index) {
        // The step's intended start is this moment; weir sends the event once the namespace is connected.
        vuser.due.get_or_insert_with(clock::precise);
        let outcome = place.client.connected(place.index).await;
        outcome.inspect_err(|message| vuser.worker.recorder.failure(At::Connect, message))?;
    }
    Ok(place)
}

/// True if the options are equal for all virtual users of this user's scenario.
fn are_fixed(vuser: &Vuser) -> bool {
    let own = vuser.scenario().and_then(|scenario| scenario.socketio.as_ref());
    vuser.worker.plan.socketio.literal().is_some() && own.is_none_or(|tree| tree.literal().is_some())
}

/// The options of a virtual user.
fn rendered_options(vuser: &Vuser) -> Result<SocketioOptions, Failed> {
    let plan = &vuser.worker.plan;
    let mut all = crate::value::Map::default();
    let own = vuser.scenario().and_then(|scenario| scenario.socketio.as_ref());
    for tree in std::iter::once(&plan.socketio).chain(own) {
        if let Value::Map(map) = tree.value(&vuser.vars, &*vuser.worker.functions) {
            all.extend(map.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }
    let mut options = options::read(&plan.target, &all)?;
    options.tls = vuser.worker.tls.with(&all)?;
    options.resolver = vuser.worker.http.resolver().clone();
    Ok(options)
}

fn options_of(vuser: &Vuser) -> Result<Rc<SocketioOptions>, Failed> {
    if !are_fixed(vuser) {
        return Ok(Rc::new(rendered_options(vuser)?));
    }
    let known = &vuser.worker.socketio.options;
    if let Some(options) = known.borrow().get(&vuser.scenario) {
        return Ok(options.clone());
    }
    let options = Rc::new(rendered_options(vuser)?);
    known.borrow_mut().insert(vuser.scenario, options.clone());
    Ok(options)
}

fn push_event(vuser: &Vuser, event: &Template, arguments: &[Tree], out: &mut Vec<u8>) {
    out.push(b'[');
    push_argument(out, &event.value(&vuser.vars, &*vuser.worker.functions));
    for argument in arguments {
        out.push(b',');
        match argument.literal() {
            Some(value) => push_argument(out, value),
            None => push_argument(out, &value(vuser, argument)),
        }
    }
    out.push(b']');
}

fn text(vuser: &Vuser, template: &Template) -> String {
    template.value(&vuser.vars, &*vuser.worker.functions).to_text().into_owned()
}

fn value(vuser: &Vuser, tree: &Tree) -> Value {
    tree.value(&vuser.vars, &*vuser.worker.functions)
}

/// The elements of a JSON list.
fn list(json: &str) -> Vec<Value> {
    match parse_json(json.as_bytes()) {
        Ok(Value::List(list)) => std::sync::Arc::unwrap_or_clone(list),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_expected() {
        for (received, expected, joins, expect) in [
            (r#"["hello"]"#, r#""hell""#, false, true),
            (r#"["a","hello"]"#, r#""a""#, false, false),
            (r#"["a","b",1]"#, r#""ab1""#, true, true),
            (r#"["a","b"]"#, r#"["a","b"]"#, false, true),
            (r#"["a","b"]"#, r#"["a"]"#, false, false),
            (r#"[1,{"x":[1,2]}]"#, r#"{"x":[1,2]}"#, false, true),
            (r#"[{"x":1,"y":2}]"#, r#"{"x":1}"#, false, false),
            (r#"[{"x":1}]"#, r#""x""#, false, false),
            (r#"[["x","y"]]"#, r#""x""#, false, true),
            (r#"[7]"#, r#"7"#, false, true),
            (r#"[]"#, r#""""#, false, false),
        ] {
            let expected = parse_json(expected.as_bytes()).unwrap();
            assert_eq!(is_valid(&list(received), &expected, joins), expect, "{received} {expected:?}");
        }
    }
}
