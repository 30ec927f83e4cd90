//! What is known of a function of an executable: [`ExportInfo`].

mod cost;

use std::fmt;

pub(crate) use cost::TileCost;

/// One function of an executable: its name and what a dispatch of it has to look like.
///
/// Loaders make these; [`Dispatch::new`](crate::Dispatch::new) checks against them.
#[derive(Debug)]
pub struct ExportInfo {
    ordinal: u32,
    name: Option<Box<[u8]>>,
    attributes: ExportAttributes,
    source: Option<SourceLocation>,
    cost: TileCost,
}

/// Where a function stands in the program that it was compiled from. Displays as `path:line`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file, as the compiler was given it.
    pub path: Box<str>,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
}

/// What a dispatch of a function has to look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportAttributes {
    /// The number of 32-bit constants; `None` if the file does not say.
    pub constant_count: Option<usize>,
    /// The number of bindings; `None` if the file does not say.
    pub binding_count: Option<usize>,
    /// The workgroup size in x, y and z, passed on to the function; each at least 1.
    pub workgroup_size: [u32; 3],
    /// The scratch memory of a workgroup in bytes.
    pub local_memory_byte_length: usize,
    /// The alignment that the address of each binding must have, a power of two: 1 for functions
    /// that do not care.
    pub binding_alignment: usize,
    /// Whether workgroups must run one after another, in order.
    pub is_sequential: bool,
}

impl Default for ExportAttributes {
    /// Returns the attributes of a function that needs nothing and of which nothing is known.
    fn default() -> Self {
        Self {
            constant_count: None,
            binding_count: None,
            workgroup_size: [1; 3],
            local_memory_byte_length: 0,
            binding_alignment: 1,
            is_sequential: false,
        }
    }
}

impl ExportInfo {
    /// Returns the description of the function with this ordinal.
    ///
    /// The name is a byte string, without a NUL; `None` if the file holds no names.
    ///
    /// # Panics
    ///
    /// Panics if [`ExportAttributes::binding_alignment`] is not a power of two.
    #[must_use]
    pub fn new(ordinal: u32, name: Option<Box<[u8]>>, attributes: ExportAttributes) -> Self {
        let alignment = attributes.binding_alignment;
        assert!(
            alignment.is_power_of_two(),
            "binding alignment {alignment} is not a power of two"
        );
        Self {
            ordinal,
            name,
            attributes,
            source: None,
            cost: TileCost::default(),
        }
    }

    /// Returns the description with where the function comes from, if the file says.
    #[must_use]
    pub fn with_source(mut self, source: Option<SourceLocation>) -> Self {
        self.source = source;
        self
    }

    /// Returns the position of the function in its executable.
    #[must_use]
    #[inline]
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// Returns the name, or `None` if the file holds no names.
    #[must_use]
    pub fn name(&self) -> Option<&[u8]> {
        self.name.as_deref()
    }

    /// Returns what a dispatch has to look like.
    #[must_use]
    #[inline]
    pub fn attributes(&self) -> &ExportAttributes {
        &self.attributes
    }

    /// Returns where the function comes from, or `None` if the file does not say.
    #[must_use]
    pub fn source(&self) -> Option<&SourceLocation> {
        self.source.as_ref()
    }

    /// Returns the running estimate of what one workgroup costs.
    #[inline]
    pub(crate) fn cost(&self) -> &TileCost {
        &self.cost
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.line)
    }
}

/// Writes the name, or the ordinal of a function without one.
impl fmt::Display for ExportInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{}`", name.escape_ascii()),
            None => write!(f, "#{}", self.ordinal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_shown_by_name_or_ordinal() {
        let named = ExportInfo::new(
            3,
            Some(b"mul\xff".as_slice().into()),
            ExportAttributes::default(),
        );
        assert_eq!(named.to_string(), r"`mul\xff`");
        let nameless = ExportInfo::new(3, None, ExportAttributes::default());
        assert_eq!(nameless.to_string(), "#3");
    }
}
