//! Trees and interaction lists made on the device: the arrays of [`fmm_core::tree::Tree`] and [`fmm_core::lists::Lists`], element
//! by element.

mod lists;
mod sort;
mod survey;
mod tiles;
mod tree;
pub mod view;
mod work;

pub use lists::{DeviceCsr, DeviceLists};
pub(crate) use sort::{Key, sort, sort_keys};
pub use survey::Survey;
pub use tiles::Tiles;
pub use tree::DeviceTree;
pub(crate) use view::DIGITS;
pub use work::Work;
pub(crate) use work::launch;
