//! The table of a plugin's functions, and the search for a requested name in it.
//!
//! Requests are usually sorted, and the table always is, so the search first walks on from where
//! the last name was found. Order is never relied on: whatever the walk cannot decide, a binary
//! search does.

use core::cmp::Ordering;

use hal_abi::{ImportFn, OPTIONAL_IMPORT_PREFIX};

/// How many entries the walk looks at before it turns to binary search.
const WALK_LENGTH: usize = 4;

/// A function that a plugin exports.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    name: &'static [u8],
    import: ImportFn,
}

impl Function {
    /// Names a function.
    ///
    /// # Panics
    ///
    /// Panics, at compile time in a constant, if no import can have the name: it is empty, contains
    /// a NUL, or starts with the mark of optional imports.
    #[must_use]
    pub const fn new(name: &'static str, import: ImportFn) -> Self {
        let name = name.as_bytes();
        assert!(!name.is_empty(), "the name of a plugin function is empty");
        assert!(
            name[0] != OPTIONAL_IMPORT_PREFIX,
            "the name of a plugin function starts with `?`"
        );
        let mut index = 0;
        while index < name.len() {
            assert!(name[index] != 0, "the name of a plugin function has a NUL");
            index += 1;
        }
        Self { name, import }
    }
}

/// Sorts the functions of a plugin by name.
///
/// # Panics
///
/// Panics, at compile time in a constant, if two functions have the same name.
#[must_use]
pub const fn sorted<const N: usize>(mut functions: [Function; N]) -> [Function; N] {
    let mut sorted_count = 1;
    while sorted_count < N {
        let mut index = sorted_count;
        while index > 0 {
            match compare(functions[index - 1].name, functions[index].name) {
                Ordering::Less => break,
                Ordering::Equal => panic!("two plugin functions have the same name"),
                Ordering::Greater => {
                    let larger = functions[index - 1];
                    functions[index - 1] = functions[index];
                    functions[index] = larger;
                }
            }
            index -= 1;
        }
        sorted_count += 1;
    }
    functions
}

/// Compares by bytes, like `Ord`, in constants.
const fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let mut index = 0;
    while index < left.len() && index < right.len() {
        if left[index] != right[index] {
            return if left[index] < right[index] {
                Ordering::Less
            } else {
                Ordering::Greater
            };
        }
        index += 1;
    }
    if left.len() < right.len() {
        Ordering::Less
    } else if left.len() > right.len() {
        Ordering::Greater
    } else {
        Ordering::Equal
    }
}

/// A search for one name after another in a sorted table.
///
/// Invariant: `table` is sorted and `next` is at most its length. `next` is only a guess of where
/// the following name is.
#[derive(Debug)]
pub(crate) struct Search<'table> {
    table: &'table [Function],
    next: usize,
}

impl<'table> Search<'table> {
    /// Starts at the first entry of a table made by [`sorted`].
    pub(crate) fn new(table: &'table [Function]) -> Self {
        Self { table, next: 0 }
    }

    /// Returns the function with this name.
    pub(crate) fn find(&mut self, name: &[u8]) -> Option<ImportFn> {
        // The common case, a request for all of the table in order, takes one comparison a name.
        if let Some(function) = self.table.get(self.next)
            && function.name == name
        {
            self.next += 1;
            return Some(function.import);
        }
        let (before, ahead) = self.table.split_at_checked(self.next)?;
        for (step, function) in ahead.iter().take(WALK_LENGTH).enumerate() {
            match function.name.cmp(name) {
                Ordering::Less => {}
                Ordering::Equal => {
                    self.next += step + 1;
                    return Some(function.import);
                }
                Ordering::Greater if step > 0 => {
                    self.next += step;
                    return None;
                }
                Ordering::Greater => return Self::find_before(before, name),
            }
        }
        match ahead.get(WALK_LENGTH..) {
            Some(rest) if !rest.is_empty() => {
                let found = rest.binary_search_by(|function| function.name.cmp(name));
                let (Ok(position) | Err(position)) = found;
                self.next += WALK_LENGTH + position + usize::from(found.is_ok());
                rest.get(found.ok()?).map(|function| function.import)
            }
            _ if ahead.is_empty() => Self::find_before(before, name),
            _ => {
                self.next = self.table.len();
                None
            }
        }
    }

    /// Searches the entries that the walk has passed. Requests in order end at the first look.
    fn find_before(before: &[Function], name: &[u8]) -> Option<ImportFn> {
        if before.last()?.name < name {
            return None;
        }
        let position = before
            .binary_search_by(|function| function.name.cmp(name))
            .ok()?;
        before.get(position).map(|function| function.import)
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::{c_int, c_void};
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    extern "C" fn import(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
        0
    }

    fn table(names: &[&'static str]) -> Vec<Function> {
        let mut table: Vec<_> = names
            .iter()
            .map(|name| Function::new(name, import))
            .collect();
        table.sort_by_key(|function| function.name);
        table.dedup_by_key(|function| function.name);
        table
    }

    #[track_caller]
    fn check(names: &[&'static str], requests: &[&str]) {
        let table = table(names);
        let mut search = Search::new(&table);
        for request in requests {
            assert_eq!(
                search.find(request.as_bytes()).is_some(),
                names.contains(request),
                "{request}"
            );
        }
    }

    #[test]
    fn names_are_found_in_any_order_and_more_than_once() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        check(&names, &["a", "b", "c", "j"]);
        check(&names, &["j", "i", "a", "a", "j", "j", "e"]);
        check(&names, &["a", "j", "b", "i", "k", "", "j"]);
    }

    #[test]
    fn a_prefix_is_not_the_name() {
        check(
            &["mmt4d", "mmt4d_f32"],
            &["mmt", "mmt4d", "mmt4d_", "mmt4d_f32", "mmt4d_f32x"],
        );
    }

    #[test]
    fn an_empty_table_has_nothing() {
        check(&[], &["a", "b"]);
    }

    #[test]
    fn the_table_is_sorted_whatever_the_order_of_the_declaration() {
        const SORTED: [Function; 4] = sorted([
            Function::new("b", import),
            Function::new("a_longer", import),
            Function::new("c", import),
            Function::new("a", import),
        ]);
        assert_eq!(
            SORTED.map(|function| function.name),
            [&b"a"[..], b"a_longer", b"b", b"c"]
        );
    }

    /// Functions live in statics, so their names do as well.
    const NAMES: [&str; 14] = [
        "a", "b", "aa", "ab", "ba", "bb", "aaa", "aab", "aba", "abb", "baa", "bab", "bbb", "abab",
    ];

    proptest! {
        #[test]
        fn the_search_agrees_with_a_scan(
            indices in prop::collection::vec(0..NAMES.len(), 0..30),
            mut requests in prop::collection::vec("[abc]{1,4}", 0..60),
            is_sorted: bool,
        ) {
            let names: Vec<&'static str> = indices
                .into_iter()
                .map(|index| NAMES[index])
                .collect();
            if is_sorted {
                requests.sort();
            }
            let table = table(&names);
            let mut search = Search::new(&table);
            for request in &requests {
                prop_assert_eq!(
                    search.find(request.as_bytes()).is_some(),
                    names.contains(&request.as_str()),
                    "{}", request
                );
            }
        }
    }
}
