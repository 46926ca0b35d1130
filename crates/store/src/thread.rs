//! Threads that end before what they belong to is gone.

use std::{
    io,
    thread::{Builder, JoinHandle},
};

/// A thread that is waited for when this is dropped. What lets it end, such as the sender of its queue, must be dropped
/// before: a field that stands above this one.
#[derive(Debug)]
pub(crate) struct JoinedThread(Option<JoinHandle<()>>);

impl JoinedThread {
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Builder::new().name(name.to_owned()).spawn(work).map(Some).map(Self)
    }
}

impl Drop for JoinedThread {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}
