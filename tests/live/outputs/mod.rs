//! What Marusa writes, creates and sends: to terminals, to files, and to the target's attach socket, when a hostile process or
//! user has prepared the place.

mod attach;
mod fake;
mod files;
mod terminal;
