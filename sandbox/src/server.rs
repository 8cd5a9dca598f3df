//! The sandbox's sockets. All decisions are made elsewhere, in functions of plain values.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::routing::any;
use futures_util::stream;
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::service::service_fn;
use hyper::{Response, StatusCode};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::chains::solana::Subscriptions;
use crate::http::{Reply, Request};
use crate::lies::{Conduct, Fault, ServiceLie};
use crate::page;
use crate::service;
use crate::solver;
use crate::world::World;

/// The maximum length of a request body.
const LONGEST: usize = 4 << 20;
/// The maximum length of a subscription's frame.
const LONGEST_FRAME: usize = 64 << 10;
/// Bodies up to this length are read without a permit.
const SHORT: usize = 64 << 10;
/// The permits for longer bodies, and for bodies of unknown length. They limit how much memory is used at once.
static LONG_BODIES: Semaphore = Semaphore::const_new(16);
/// The maximum number of connections to one interface. Further ones wait.
const CONNECTIONS: usize = 512;
/// The maximum number of subscribers in one process.
static SUBSCRIBERS: Semaphore = Semaphore::const_new(256);
/// How long a client may take to send its headers and body.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a hanging service keeps a call open.
const HANGS: Duration = Duration::from_secs(120);

/// The interface that a socket serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Front {
    /// The service under `/v2` and `/relayer`, and the page.
    Service,
    /// The nodes of a chain: the root path, and three endpoints `/a`, `/b` and `/c`.
    Chain(String),
}

/// The connection ends without an answer.
#[derive(Debug, Error)]
#[error("the connection was dropped on purpose")]
struct Dropped;

/// Serves a socket until the process or the task ends.
///
/// # Errors
///
/// The socket fails.
pub async fn serve(listener: TcpListener, front: Front, world: Arc<World>) -> io::Result<Infallible> {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let permit = Arc::clone(&connections).acquire_owned().await;
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // There may be too many open files, or the client may have gone. The next connection can still be served.
            Err(_) => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                continue;
            }
        };
        let (front, world) = (front.clone(), Arc::clone(&world));
        tokio::spawn(async move {
            let service = service_fn(move |request| handle(request, front.clone(), Arc::clone(&world)));
            let mut builder = hyper::server::conn::http1::Builder::new();
            builder.timer(hyper_util::rt::TokioTimer::new()).header_read_timeout(PATIENCE);
            // An error on one connection concerns only its client.
            let _ = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            drop(permit);
        });
    }
}

async fn handle(request: hyper::Request<Incoming>, front: Front, world: Arc<World>) -> Result<Response<Body>, Dropped> {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.iter();
    let headers: Vec<(String, String)> =
        headers.map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())).collect();
    let mut request = Request {
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers,
        body: Vec::new(),
    };
    if request.method == "OPTIONS" {
        return Ok(response(preflight(&request)));
    }
    let length =
        if body.is_end_stream() { Some(0) } else { request.header("content-length").and_then(|length| length.parse::<usize>().ok()) };
    let read = async {
        // Held until the call has been answered.
        let long = if length.is_some_and(|length| length <= SHORT) { None } else { LONG_BODIES.acquire().await.ok() };
        (long, Limited::new(body, LONGEST).collect().await)
    };
    let (_long, body) = match tokio::time::timeout(PATIENCE, read).await {
        Ok((long, Ok(body))) => (long, body.to_bytes()),
        Ok((_, Err(_))) => return Ok(response(Reply::text(413, "the body is longer than 4 MiB, or has not come whole"))),
        Err(_) => return Ok(response(Reply::text(408, "the body did not come"))),
    };
    request.body = body.into();
    // Faults do not apply to the page and its switches, because they are not under test.
    let is_tried = front != Front::Service || service::serves(&request.path);
    let (late, fault) = if is_tried { world.lies.fault() } else { (0, None) };
    tokio::time::sleep(Duration::from_millis(late)).await;
    match fault {
        Some(Fault::Error) => return Ok(response(Reply::text(500, "internal server error"))),
        Some(Fault::TooMany) => return Ok(response(Reply::text(429, "too many requests"))),
        Some(Fault::DropBefore) => return Err(Dropped),
        Some(Fault::Redirect) => {
            let mut reply = Reply::text(302, "moved");
            reply.headers.push(("location".to_owned(), "http://127.0.0.2:9/".to_owned()));
            return Ok(response(reply));
        }
        _ => {}
    }
    let lie = if front == Front::Service { service_lie(&world, &request) } else { None };
    if lie == Some(ServiceLie::Hangs) {
        tokio::time::sleep(HANGS).await;
    }
    if let Some(delay) =
        world.lies.endpoint_delay().filter(|_| front != Front::Service && endpoint(&request.path) == world.lies.lying_endpoint())
    {
        tokio::time::sleep(delay).await;
    }
    let answered = tokio::task::spawn_blocking(move || answer(&world, &front, &mut request)).await;
    let reply = answered.unwrap_or_else(|_| Reply::text(500, "internal error"));
    let reply = lie.map_or(Ok(reply.clone()), |lie| lie.change(reply).ok_or(Dropped))?;
    match fault {
        Some(Fault::DropAfter) => Err(Dropped),
        Some(Fault::Html) => Ok(response(Reply::new(200, "text/html", "<html><body>Please log in to this network.</body></html>"))),
        Some(Fault::Truncate) => {
            let mut reply = reply;
            reply.body.truncate(reply.body.len() / 2);
            Ok(response(reply))
        }
        Some(Fault::Endless) => {
            let blanks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b' '; 1_024])));
            let mut endless = response(Reply::new(reply.status, "application/json", Vec::new()));
            *endless.body_mut() = Body::from_stream(blanks);
            Ok(endless)
        }
        _ => Ok(response(reply)),
    }
}

/// Answers a call of an interface.
fn answer(world: &World, front: &Front, request: &mut Request) -> Reply {
    match front {
        Front::Service if service::serves(&request.path) => service::answer(world, request),
        Front::Service => page::answer(world, request),
        Front::Chain(name) => {
            let Ok(chain) = world.chain(name) else { return Reply::text(404, "no such chain") };
            let endpoint = endpoint(&request.path);
            if endpoint.is_some() {
                let rest = request.path.get(2..).filter(|rest| !rest.is_empty()).unwrap_or("/").to_owned();
                request.path = rest;
            }
            let conduct = world.lies.conduct();
            let listens = matches!(conduct, Some(Conduct::FrontRuns | Conduct::DustMatured)) && request.method == "POST";
            let heard = if listens { solver::overhear(world, name, &request.body) } else { None };
            if let Some(heard) = heard.as_ref().filter(|_| conduct == Some(Conduct::FrontRuns)) {
                solver::front_run(world, heard);
            }
            let reply = if endpoint.is_some() && endpoint == world.lies.lying_endpoint() {
                world.lies.endpoint(name, world.clock.millis(), request, |request| chain.answer(request))
            } else {
                chain.answer(request)
            };
            if let Some(heard) = heard.as_ref().filter(|_| conduct == Some(Conduct::DustMatured)) {
                solver::take_dust_back(world, heard);
            }
            reply
        }
    }
}

/// Returns the number of the endpoint in a path of a chain's nodes, if it names one.
fn endpoint(path: &str) -> Option<usize> {
    ["/a", "/b", "/c"].iter().position(|endpoint| path.strip_prefix(endpoint).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// Returns the lie that applies to how a call is served.
fn service_lie(world: &World, request: &Request) -> Option<ServiceLie> {
    let is_paid = || {
        let last = world.ledger.count();
        world.ledger.by_number(last).map(|order| order.source.initiated.is_some())
    };
    world.lies.service(request, is_paid().unwrap_or(false))
}

/// Answers a browser's preflight request.
fn preflight(request: &Request) -> Reply {
    let mut reply = Reply::new(204, "text/plain", Vec::new());
    let asked = request.header("access-control-request-headers").unwrap_or("content-type, service-app-id");
    reply.headers.push(("access-control-allow-headers".to_owned(), asked.to_owned()));
    reply.headers.push(("access-control-allow-methods".to_owned(), "GET, POST, PATCH, OPTIONS".to_owned()));
    reply.headers.push(("access-control-max-age".to_owned(), "600".to_owned()));
    reply
}

fn response(reply: Reply) -> Response<Body> {
    let mut response = Response::new(Body::from(reply.body));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = reply.headers.into_iter().chain([
        ("access-control-allow-origin".to_owned(), "*".to_owned()),
        // gRPC-web clients have to be able to read these headers.
        ("access-control-expose-headers".to_owned(), "grpc-status, grpc-message, x-sandbox".to_owned()),
    ]);
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (hyper::header::HeaderName::try_from(name), hyper::header::HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// Serves the subscriptions of a chain's clients. Only Solana has them, on the port after that of its nodes.
///
/// # Errors
///
/// The socket fails.
pub async fn serve_subscriptions(listener: TcpListener, chain: String, world: Arc<World>) -> io::Result<()> {
    let upgrade = move |upgrade: WebSocketUpgrade| async move {
        upgrade.max_message_size(LONGEST_FRAME).on_upgrade(move |socket| subscribed(socket, chain, world))
    };
    axum::serve(listener, Router::new().fallback(any(upgrade))).await
}

async fn subscribed(mut socket: WebSocket, chain: String, world: Arc<World>) {
    let Ok(_permit) = SUBSCRIBERS.try_acquire() else { return };
    let mut subscriptions = Subscriptions::default();
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    loop {
        let frames = tokio::select! {
            received = socket.recv() => match received {
                Some(Ok(Message::Text(frame))) => subscriptions.receive(frame.as_str()).into_iter().collect(),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => Vec::new(),
            },
            _ = tick.tick() => world.chain(&chain).map_or_else(|_| Vec::new(), |chain| subscriptions.poll(&mut **chain.engine())),
        };
        for frame in frames {
            if socket.send(Message::Text(frame.into())).await.is_err() {
                return;
            }
        }
    }
}
