//! Who a JVM is to the platform that runs it, and what a service in a container with few rights sees of JVMs outside of it.

mod container;
mod pods;
