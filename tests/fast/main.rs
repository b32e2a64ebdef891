//! What needs neither root nor a JDK: the walls of the house, recorded JVMs, files of strangers. `make check` runs it.

mod frozen;
mod page_readers;
mod strangers;
mod tidy;
