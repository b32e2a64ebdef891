//! The faces of `marusa pages`.

pub mod apply;
pub mod code;
pub mod collapse;
pub mod plan;
pub mod prove;
mod steps;
pub mod undo;
pub mod verify;
