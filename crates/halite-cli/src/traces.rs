//! Tensors that a program traces: kept while it runs, then written to standard error.
#![forbid(unsafe_code)]

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use halite::{BufferView, Tensor, TraceSink, text};

use crate::Streams;

/// The text of what was traced, in the format of IREE's tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traces(Arc<Mutex<String>>);

impl Traces {
    /// Writes what was traced since the last time.
    pub(crate) fn write(&self, streams: &mut Streams<'_>) -> io::Result<()> {
        let text = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        streams.stderr.write_all(text.as_bytes())
    }
}

impl TraceSink for Traces {
    fn trace(&self, key: &str, views: &[&BufferView]) {
        let mut traced = format!("=== {key} ===\n");
        for view in views {
            let tensor = Tensor::from_view(Arc::new(BufferView::clone(view)));
            let written = tensor.map(|tensor| text::write_tensor(&mut traced, &tensor, usize::MAX));
            if !matches!(written, Some(Ok(()))) {
                traced += "(no printer)";
            }
            traced.push('\n');
        }
        traced.push('\n');
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += &traced;
    }
}
