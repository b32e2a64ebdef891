//! What `marusa serve` answers, without the serving: the state of this node's JVMs as the watch sees it (`node`), the exported
//! figures (`catalogue`), and the forms they take (`openmetrics`, `otlp`). Sockets and files are `cmd/serve`'s.

pub mod catalogue;
pub mod history;
pub mod jvm;
pub mod node;
pub mod openmetrics;
pub mod otlp;
pub mod own;
pub mod summary;

pub use jvm::{JvmNow, Who};
pub use node::Node;
