//! Showing how far the matrix is: a screen of bars on a terminal, a line now and then elsewhere.
//!
//! Only steps are shown. A loss or a score is never read here: `tbps report` is where results come
//! from.

mod board;
mod meter;
mod tail;

pub(crate) use board::Board;
pub(crate) use tail::Tail;
