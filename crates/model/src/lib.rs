//! CLIP as text-based person search uses it: a vision transformer and a causal text transformer
//! that meet in one embedding space, for any image size, on any burn device.
//!
//! The model is plain and explicit. It knows no dataset, no optimizer and no precision policy: each
//! forward takes the dtype that the blocks compute in, parameters stay f32, and layer norms,
//! softmax, features, logits and losses are f32 whatever it is. Towers are open as `stem`, `blocks`
//! and `head`, so that a caller can recompute block by block.
//!
//! ```
//! use burn::tensor::{Device, FloatDType, Int, Tensor};
//! use tbps_model::{config::ClipConfig, objective};
//!
//! let device = Device::flex().autodiff();
//! let model = ClipConfig::tiny().init(0, &device)?;
//! let pixels = Tensor::<4>::zeros([2, 3, 32, 16], &device);
//! let token_ids = Tensor::<2, Int>::from_ints([[62, 5, 63, 0], [62, 7, 9, 63]], &device);
//! let image_features = model.encode_image(pixels, FloatDType::F32); // [2, embed_dim]
//! let text_features = model.encode_text(token_ids, FloatDType::F32); // [2, embed_dim]
//! let loss = objective::itc(image_features, text_features, model.logit_scale());
//! assert!(loss.into_scalar::<f32>().is_finite());
//! # Ok::<(), tbps_model::ModelError>(())
//! ```

pub mod block;
pub mod clip;
pub mod config;
mod error;
mod init;
pub mod objective;
pub mod ops;
pub mod pos_embed;
pub mod text;
pub mod vision;
pub mod weights;

pub use clip::Clip;
pub use error::ModelError;
