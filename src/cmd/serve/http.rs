//! The HTTP side of `marusa serve`: one thread that answers from the node's state and reads nothing of any JVM. A client that is
//! slow or silent costs a connection for a bounded time, and there is a bounded number of them.

use super::answers::{self, Answer, Asked, Fixed};
use super::guard::{Door, Guard};
use super::slow::{Held, Patient, Room};
use super::tls;
use crate::serve::node::Node;
use bytes::Bytes;
use http_body_util::Either;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// The connections among them that follow events.
const FOLLOWERS_MAX: usize = 64;
/// Until the TLS handshake is done, and until a request's head is whole.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// A connection without events, whatever it does: kept alive by scrapes, it is opened anew now and then.
const CONNECTION_TIME: Duration = Duration::from_secs(300);
const FOLLOWED_TIME: Duration = Duration::from_secs(3600);
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How often followers learn that something changed.
const EVENTS_EVERY: Duration = Duration::from_secs(2);

/// A whole answer, or a stream of events.
type Reply = Response<Either<Held, Events>>;

struct Events(mpsc::Receiver<Bytes>);

impl Body for Events {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|event| event.map(|bytes| Ok(Frame::data(bytes))))
    }
}

struct Service {
    node: Arc<Node>,
    guard: Arc<Guard>,
    fixed: Fixed,
    room: Room,
    followers: Arc<Semaphore>,
}

/// Answers until the process ends.
pub fn start(listener: TcpListener, node: Arc<Node>, guard: Guard) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let service = Arc::new(Service {
        room: Room::new(node.limits().part_bytes() / 2),
        guard: Arc::new(guard),
        fixed: Fixed::new(),
        followers: Arc::new(Semaphore::new(FOLLOWERS_MAX)),
        node,
    });
    let work = move || {
        runtime.block_on(async {
            // The socket is open and does not block, so this does not fail.
            if let Ok(listener) = tokio::net::TcpListener::from_std(listener) {
                accept(listener, service).await;
            }
        });
    };
    std::thread::Builder::new().name("http".to_string()).spawn(work).map(drop)
}

async fn accept(listener: tokio::net::TcpListener, service: Arc<Service>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            // No more files, or the client is gone: the next one may come.
            Err(_) => {
                sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let service = service.clone();
        tokio::spawn(async move {
            let _place = place;
            match service.guard.door() {
                Door::Plain => serve(stream, service).await,
                Door::Tls { acceptor, sans } => {
                    if let Ok(Ok(stream)) = timeout(HEAD_TIME, acceptor.accept(stream)).await
                        && tls::has_name(stream.get_ref().1.peer_certificates(), &sans)
                    {
                        serve(stream, service).await;
                    }
                }
            }
        });
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, service: Arc<Service>) {
    let follows = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let of_request = |request: Request<Incoming>| {
        let (service, follows) = (service.clone(), follows.clone());
        async move {
            let reply = reply(&service, &request).await;
            let is_events = matches!(reply.body(), Either::Right(_));
            follows.fetch_or(is_events, std::sync::atomic::Ordering::Relaxed);
            service
                .node
                .state()
                .own
                .requests
                .entry(reply.status().as_u16())
                .and_modify(|count| *count += 1)
                .or_insert(1);
            Ok::<_, Infallible>(reply)
        }
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME).max_buf_size(HEAD_BYTES_MAX);
    let stream = TokioIo::new(Patient::new(stream, HEAD_TIME));
    let connection = builder.serve_connection(stream, service_fn(of_request));
    let mut connection = std::pin::pin!(connection);
    // A broken connection is the client's affair.
    if timeout(CONNECTION_TIME, connection.as_mut()).await.is_err()
        && follows.load(std::sync::atomic::Ordering::Relaxed)
    {
        let _ = timeout(FOLLOWED_TIME, connection).await;
    }
}

async fn reply(service: &Arc<Service>, request: &Request<Incoming>) -> Reply {
    let header =
        |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or("");
    let path = request.uri().path();
    let is_open = answers::is_health(path);
    if !is_open && !service.guard.admits(header(AUTHORIZATION)).await {
        let mut reply = plain(service, StatusCode::UNAUTHORIZED, "unauthorized\n");
        let asks = HeaderValue::from_static("Basic realm=\"marusa\", charset=\"UTF-8\"");
        reply.headers_mut().insert(hyper::header::WWW_AUTHENTICATE, asks);
        return finished(service, reply);
    }
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut reply = plain(service, StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
        reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return finished(service, reply);
    }
    if path == "/api/v1/events" {
        return finished(service, events(service));
    }
    let asked = Asked {
        path,
        query: request.uri().query().unwrap_or(""),
        accept: header(ACCEPT),
        takes_gzip: header(ACCEPT_ENCODING).split(',').any(|coding| coding.trim().starts_with("gzip")),
    };
    let Answer { status, content_type, bytes, is_gzip } = answers::to(&service.node, &service.fixed, &asked);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = whole(service, status, content_type, bytes);
    if is_gzip && reply.status() == status {
        reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    finished(service, reply)
}

fn plain(service: &Service, status: StatusCode, text: &'static str) -> Reply {
    whole(service, status, answers::TEXT, Bytes::from_static(text.as_bytes()))
}

fn whole(service: &Service, status: StatusCode, content_type: &'static str, bytes: Bytes) -> Reply {
    let Some(held) = service.room.hold(bytes) else {
        let text = "too many answers wait for their readers\n";
        return plain(service, StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let mut reply = Response::new(Either::Left(held));
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    reply
}

fn finished(service: &Service, mut reply: Reply) -> Reply {
    for (name, value) in service.fixed.headers.iter().cloned().chain(service.guard.headers()) {
        reply.headers_mut().insert(name, value);
    }
    reply
}

/// Says that the state changed, at most every two seconds, for as long as a client listens.
fn events(service: &Arc<Service>) -> Reply {
    let Ok(place) = service.followers.clone().try_acquire_owned() else {
        let text = "too many pages follow this node\n";
        return plain(service, StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let (send, receive) = mpsc::channel(4);
    let node = service.node.clone();
    tokio::spawn(async move {
        let _place = place;
        let mut seen = None;
        loop {
            let version = node.state().version;
            let event = match seen.replace(version) {
                Some(before) if before == version => Bytes::from_static(b": still here\n\n"),
                _ => Bytes::from(format!("event: changed\ndata: {version}\n\n")),
            };
            // One that does not read is let go.
            if !matches!(timeout(HEAD_TIME, send.send(event)).await, Ok(Ok(()))) {
                return;
            }
            sleep(EVENTS_EVERY).await;
        }
    });
    let mut reply = Response::new(Either::Right(Events(receive)));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
