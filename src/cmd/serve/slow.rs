//! Clients that read slowly, or not at all. An answer takes memory until it is read: it is handed out in slices, within a time, and
//! all large ones together take no more than their part of the memory.

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// An answer is read within this time.
const READ_TIME: Duration = Duration::from_secs(30);
/// Smaller answers are not counted: there are no more of them than connections.
const COUNTED_BYTES: usize = 64 << 10;
/// What is handed to the connection at once.
const SLICE_BYTES: usize = 16 << 10;
/// A semaphore counts in these.
const UNIT_BYTES: usize = 1 << 10;

/// What large answers may take together.
pub struct Room {
    units: Arc<Semaphore>,
    max: u32,
}

impl Room {
    pub fn new(bytes: u64) -> Room {
        let max = u32::try_from(bytes / UNIT_BYTES as u64).unwrap_or(u32::MAX).clamp(1, 1 << 28);
        Room { units: Arc::new(Semaphore::new(max as usize)), max }
    }

    /// `None`: others that are not read take too much.
    pub fn hold(&self, bytes: Bytes) -> Option<Held> {
        let place = if bytes.len() < COUNTED_BYTES {
            None
        } else {
            // One alone may be larger than all that there is.
            let units = u32::try_from(bytes.len() / UNIT_BYTES).unwrap_or(u32::MAX).min(self.max);
            Some(self.units.clone().try_acquire_many_owned(units).ok()?)
        };
        Some(Held { rest: bytes, until: Instant::now() + READ_TIME, _place: place })
    }
}

/// An answer on its way.
pub struct Held {
    rest: Bytes,
    until: Instant,
    _place: Option<OwnedSemaphorePermit>,
}

impl Body for Held {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        if Instant::now() >= self.until {
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        let slice = self.rest.len().min(SLICE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(slice)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

/// A connection that fails when nothing can be written to it for a time.
pub struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Since the last write that had to wait.
    waits: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    pub fn new(stream: S, patience: Duration) -> Patient<S> {
        Patient { stream, patience, waits: None }
    }

    fn judged<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.waits = None;
            return poll;
        }
        let patience = self.patience;
        let waits = self.waits.get_or_insert_with(|| Box::pin(sleep(patience)));
        waits.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judged(context, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(context);
        self.judged(context, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judged(context, poll)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Waker;

    fn frame(held: &mut Held) -> Option<Result<usize, io::ErrorKind>> {
        match Pin::new(held).poll_frame(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(frame))) => Some(Ok(frame.data_ref().map_or(0, Bytes::len))),
            Poll::Ready(Some(Err(error))) => Some(Err(error.kind())),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    #[test]
    fn large_answers_take_no_more_than_their_part() {
        let room = Room::new(200 << 10);
        let answer = |bytes: usize| room.hold(Bytes::from(vec![b'x'; bytes]));
        let (one, other) = (answer(100 << 10), answer(100 << 10));
        assert!(one.is_some() && other.is_some() && answer(100 << 10).is_none());
        assert!(answer(1 << 10).is_some(), "a small one always has a place");
        drop(one);
        assert!(answer(100 << 10).is_some());
        drop(other);
        assert!(answer(10 << 20).is_some(), "one alone may be larger");
    }

    #[test]
    fn an_answer_comes_in_slices_and_within_its_time() {
        let room = Room::new(1 << 20);
        let mut held = room.hold(Bytes::from(vec![b'x'; 40 << 10])).expect("there is room");
        assert_eq!(held.size_hint().exact(), Some(40 << 10));
        assert_eq!([frame(&mut held), frame(&mut held)], [Some(Ok(SLICE_BYTES)); 2]);
        assert_eq!(
            (frame(&mut held), frame(&mut held), held.is_end_stream()),
            (Some(Ok(8 << 10)), None, true)
        );
        let mut late = room.hold(Bytes::from_static(b"x")).expect("there is room");
        late.until = Instant::now();
        assert_eq!(frame(&mut late), Some(Err(io::ErrorKind::TimedOut)));
    }

    #[test]
    fn a_client_that_does_not_read_is_let_go() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, _theirs) = tokio::net::UnixStream::pair().expect("a pair");
            let mut ours = Patient::new(ours, Duration::from_millis(10));
            let error = loop {
                let write = |context: &mut Context<'_>| Pin::new(&mut ours).poll_write(context, &[0; 4096]);
                if let Err(error) = poll_fn(write).await {
                    break error;
                }
            };
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        });
    }
}
