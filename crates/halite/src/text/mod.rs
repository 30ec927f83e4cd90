//! The text formats of IREE's tools: what `--input=` takes and what results are printed as.
//!
//! [`Inputs`] reads items and the files that they name, [`write_value`] and the `Display` of a [`Tensor`] print. The
//! formats are `docs/vm.md`, section "Tool text formats". Comparison of results is in [`crate::compare`].
//!
//! [`Tensor`]: crate::Tensor
#![forbid(unsafe_code)]

mod element;
mod format;
mod inputs;
mod number;
mod print;
mod tensor;

pub use element::ElementTextError;
pub use inputs::{InputError, Inputs, ItemError, Parameter};
pub use number::NumberError;
pub use print::{DEFAULT_MAX_ELEMENTS, PrintError, write_element, write_tensor, write_value};
pub use tensor::{TensorTextError, parse_tensor};

pub(crate) use print::{check_printable, write_metadata};
