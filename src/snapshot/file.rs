//! The frozen snapshot.
