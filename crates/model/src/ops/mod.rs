//! The differentiable operations of a block, each with an explicit compute dtype.
//!
//! Letters: `b` batch, `n` positions, `w` width, `h` heads, `d` width of a head.
//!
//! burn does not promote dtypes, and a matrix product of two dtypes reads one as the other on some
//! backends: every product goes through [`matmul()`], which refuses that and records what it saw.

mod activation;
mod attention;
mod layer_norm;
mod linear;
mod matmul;

pub use activation::{gelu, quick_gelu};
pub use attention::attention;
pub use layer_norm::layer_norm;
pub use linear::linear;
pub use matmul::{MatmulDtypes, matmul, take_matmul_dtypes};
