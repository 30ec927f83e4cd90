//! Calling-convention strings such as `0rIIiiCID_r`: parsed form and queries.
//!
//! Holds the grammar only; where the values lie in an argument block is [`crate::argument_block`].

use core::fmt;

use crate::StatusCode;

/// One value of a calling convention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Atom {
    /// `i`: a 32-bit integer; narrower integers are widened to it.
    I32,
    /// `I`: a 64-bit integer.
    I64,
    /// `f`: a 32-bit float.
    F32,
    /// `F`: a 64-bit float.
    F64,
    /// `r`: a ref.
    Ref,
}

impl Atom {
    /// Returns the character that spells the atom.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::I32 => 'i',
            Self::I64 => 'I',
            Self::F32 => 'f',
            Self::F64 => 'F',
            Self::Ref => 'r',
        }
    }

    /// Returns the number of 32-bit words the atom takes in an argument block.
    #[must_use]
    pub const fn word_count(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 1,
            Self::I64 | Self::F64 => 2,
            Self::Ref => 4,
        }
    }

    /// Returns the alignment of the atom in an argument block, in 32-bit words.
    #[must_use]
    pub const fn word_alignment(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 1,
            Self::I64 | Self::F64 | Self::Ref => 2,
        }
    }
}

/// One argument of a calling convention: a value, or a span of tuples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Item {
    /// A single value.
    Atom(Atom),
    /// `C...D`: any number of tuples, each of these atoms. Never empty.
    Span(Box<[Atom]>),
}

/// A parsed calling convention.
///
/// The grammar (`docs/vm.md`, section "Calling conventions"): an empty string, or the version `0`, the arguments,
/// and optionally `_` and the results. `v` stands for nothing. Spans occur among arguments only and do not nest.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CallingConvention {
    text: Box<str>,
    arguments: Box<[Item]>,
    results: Box<[Atom]>,
}

/// Why a string is not a calling convention.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConventionError {
    /// The first character is not the version `0`.
    #[error("calling convention `{text}` has version `{found}`, expected `0`")]
    Version {
        /// The whole string.
        text: String,
        /// Its first character.
        found: char,
    },
    /// A character does not belong where it stands.
    #[error("calling convention `{text}` has an unexpected `{found}` at byte {offset}")]
    Unexpected {
        /// The whole string.
        text: String,
        /// The character.
        found: char,
        /// Its byte offset.
        offset: usize,
    },
    /// A span is not closed by `D`.
    #[error("calling convention `{text}` opens a span at byte {offset} that is not closed")]
    OpenSpan {
        /// The whole string.
        text: String,
        /// Byte offset of the `C`.
        offset: usize,
    },
    /// A span has no members.
    #[error("calling convention `{text}` has an empty span at byte {offset}")]
    EmptySpan {
        /// The whole string.
        text: String,
        /// Byte offset of the `C`.
        offset: usize,
    },
}

impl ConventionError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Version { .. } => StatusCode::UNIMPLEMENTED,
            Self::Unexpected { .. } | Self::OpenSpan { .. } | Self::EmptySpan { .. } => {
                StatusCode::INVALID_ARGUMENT
            }
        }
    }
}

impl CallingConvention {
    /// Parses a calling-convention string.
    ///
    /// # Errors
    /// Fails when the version is not `0` or a character does not fit the grammar.
    pub fn parse(text: &str) -> Result<Self, ConventionError> {
        let mut characters = text.char_indices();
        match characters.next() {
            None => return Ok(Self::new(text, Vec::new(), Vec::new())),
            Some((_, '0')) => {}
            Some((_, found)) => {
                return Err(ConventionError::Version {
                    text: text.into(),
                    found,
                });
            }
        }

        let mut arguments = Vec::new();
        let mut results = Vec::new();
        let mut in_results = false;
        let mut span: Option<(usize, Vec<Atom>)> = None;
        for (offset, character) in characters {
            let unexpected = || ConventionError::Unexpected {
                text: text.into(),
                found: character,
                offset,
            };
            let atom = match character {
                'v' if span.is_none() => continue,
                'C' if span.is_none() && !in_results => {
                    span = Some((offset, Vec::new()));
                    continue;
                }
                'D' => {
                    let (start, atoms) = span.take().ok_or_else(unexpected)?;
                    if atoms.is_empty() {
                        return Err(ConventionError::EmptySpan {
                            text: text.into(),
                            offset: start,
                        });
                    }
                    arguments.push(Item::Span(atoms.into()));
                    continue;
                }
                '_' if span.is_none() && !in_results => {
                    in_results = true;
                    continue;
                }
                'i' => Atom::I32,
                'I' => Atom::I64,
                'f' => Atom::F32,
                'F' => Atom::F64,
                'r' => Atom::Ref,
                _ => return Err(unexpected()),
            };
            match &mut span {
                Some((_, atoms)) => atoms.push(atom),
                None if in_results => results.push(atom),
                None => arguments.push(Item::Atom(atom)),
            }
        }
        if let Some((offset, _)) = span {
            return Err(ConventionError::OpenSpan {
                text: text.into(),
                offset,
            });
        }
        Ok(Self::new(text, arguments, results))
    }

    fn new(text: &str, arguments: Vec<Item>, results: Vec<Atom>) -> Self {
        Self {
            text: text.into(),
            arguments: arguments.into(),
            results: results.into(),
        }
    }

    /// Returns the string the convention was parsed from.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the arguments in order.
    #[must_use]
    pub fn arguments(&self) -> &[Item] {
        &self.arguments
    }

    /// Returns the results in order.
    #[must_use]
    pub fn results(&self) -> &[Atom] {
        &self.results
    }

    /// Returns whether any argument is a span.
    #[must_use]
    pub fn has_spans(&self) -> bool {
        self.arguments
            .iter()
            .any(|item| matches!(item, Item::Span(_)))
    }
}

impl fmt::Display for CallingConvention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for CallingConvention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallingConvention({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_dispatch_convention_has_two_spans() {
        let convention = CallingConvention::parse("0rIiiiCiDCrIID_v").unwrap();
        assert_eq!(convention.arguments().len(), 7);
        assert_eq!(convention.arguments()[5], Item::Span([Atom::I32].into()));
        assert_eq!(
            convention.arguments()[6],
            Item::Span([Atom::Ref, Atom::I64, Atom::I64].into())
        );
        assert!(convention.results().is_empty());
        assert!(convention.has_spans());
    }

    #[test]
    fn nothing_is_spelled_in_three_ways() {
        for text in ["", "0", "0v_v"] {
            let convention = CallingConvention::parse(text).unwrap();
            assert!(convention.arguments().is_empty());
            assert!(convention.results().is_empty());
        }
    }

    #[test]
    fn another_version_is_unimplemented() {
        let error = CallingConvention::parse("1i_i").unwrap_err();
        assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
    }

    #[test]
    fn misplaced_characters_are_named() {
        for text in [
            "0i_i_i", "0CiCiDD", "0Ci", "0CD", "0D", "0_CiD", "0x", "0i_iD",
        ] {
            let error = CallingConvention::parse(text).unwrap_err();
            assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT, "{text}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    fn atom() -> impl Strategy<Value = Atom> {
        prop_oneof![
            Just(Atom::I32),
            Just(Atom::I64),
            Just(Atom::F32),
            Just(Atom::F64),
            Just(Atom::Ref)
        ]
    }

    fn item() -> impl Strategy<Value = Item> {
        prop_oneof![
            3 => atom().prop_map(Item::Atom),
            1 => prop::collection::vec(atom(), 1..4).prop_map(|atoms| Item::Span(atoms.into())),
        ]
    }

    proptest! {
        #[test]
        fn any_text_gives_a_value_or_an_error(text in ".{0,24}") {
            if let Ok(convention) = CallingConvention::parse(&text) {
                prop_assert_eq!(convention.text(), text);
            }
        }

        #[test]
        fn parsing_what_was_spelled_gives_it_back(
            arguments in prop::collection::vec(item(), 0..6),
            results in prop::collection::vec(atom(), 0..6),
        ) {
            let mut text = String::from("0");
            for item in &arguments {
                match item {
                    Item::Atom(atom) => text.push(atom.letter()),
                    Item::Span(atoms) => {
                        text.push('C');
                        text.extend(atoms.iter().map(|atom| atom.letter()));
                        text.push('D');
                    }
                }
            }
            text.push('_');
            text.extend(results.iter().map(|atom| atom.letter()));
            let convention = CallingConvention::parse(&text).unwrap();
            prop_assert_eq!(convention.arguments(), &arguments[..]);
            prop_assert_eq!(convention.results(), &results[..]);
        }
    }
}
