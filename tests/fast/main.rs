//! What needs neither root nor a JDK: the walls of the house, recorded JVMs, files of strangers. `make check` runs it.

mod book;
mod circles;
mod crowd;
mod deploy;
mod faces;
mod frozen;
mod metrics;
mod packages;
mod page_readers;
mod ratchets;
#[path = "../common/scrape.rs"]
mod scrape;
mod strangers;
mod terminal;
mod tidy;
mod transcripts;
mod words;
