//! Why each path carries what it carries, in words, from two reports of one process.

mod report;
mod words;

pub use report::{EXPLAIN_SCHEMA, ExplainReport, PathExplanation, explain};
