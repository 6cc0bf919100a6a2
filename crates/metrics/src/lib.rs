//! What a text-based person search training is judged by: how well it retrieves, how sure a
//! difference is, how long it took and how much memory it needed.
//!
//! Plain arrays come in and plain numbers go out. The crate knows no tensor library, no dataset and
//! no model: features are `&[f32]`, identities are `&[i64]`, a device's memory pool is a closure.
//!
//! ```
//! use tbps_metrics::retrieval;
//!
//! // Two captions of persons 7 and 9 searched among three images, with features of width 2.
//! let captions = [1.0, 0.0, 0.0, 1.0];
//! let images = [0.9, 0.1, 0.8, 0.3, 0.1, 0.7];
//! let found = retrieval::evaluate(&captions, &[7, 9], &images, &[9, 7, 9], 2)?;
//!
//! // Person 7 comes second for the first caption; person 9 leads for the other.
//! assert_eq!(found.first_rank, [Some(1), Some(0)]);
//! assert_eq!(found.scores.r1, 50.0);
//! assert_eq!(found.scores.r5, 100.0);
//! # Ok::<(), tbps_metrics::MetricsError>(())
//! ```

pub mod bootstrap;
pub mod chrono;
pub mod memory;
pub mod retrieval;

mod error;
mod random;

pub use error::{MetricsError, Side};
