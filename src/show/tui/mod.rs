//! The live view in a terminal. `model` is what is shown and what keys do to it: plain data and a pure function, so that it is
//! tested without a terminal; `draw` lays a model out on whatever screen there is.

mod columns;
pub mod draw;
mod history;
mod holders;
pub mod model;
mod rows;
mod style;

pub use draw::draw;
pub use model::{Action, Key, Model, News};
pub use style::Style;
