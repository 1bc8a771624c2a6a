//! The scheduler tournament: every scheduler over a matrix of conditions in
//! virtual time, and one table out.
//!
//! A **condition** is two paths, what happens to them, and a receive buffer.
//! A **cell** is one scheduler under one condition. Each condition is also
//! run over each of its paths alone, which gives the sum of links that cells
//! are compared with.

pub mod condition;
pub mod kept;
pub mod matrix;
pub mod measure;
pub mod table;
pub mod traces;
mod transfers;
