//! The two symbol hash tables, used for one thing only: how many symbols there are.
//!
//! Nothing is looked up by hash: a loaded image prepares its own sorted index. Facts: the ELF
//! specification, "Hash Table"; the GNU table as written by common linkers.

use crate::machine::{ByteOrder, Class, Machine, Target};

/// What a hash table says about the number of symbols, the reserved symbol 0 included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SymbolCount {
    /// The table counts every symbol.
    Exact(u64),
    /// The table counts the symbols it can find; one that exports nothing knows nothing of the
    /// undefined ones.
    AtLeast(u64),
}

/// Returns the count of a `DT_HASH` table: its number of chain entries. `None` when `bytes` is too
/// short for its header. The caller still has to check that so many symbols exist.
pub(crate) fn sysv_symbol_count(bytes: &[u8], target: Target) -> Option<SymbolCount> {
    // Two 64-bit machines use words of 8 bytes here, all others use 4.
    let wide =
        target.class == Class::Elf64 && matches!(target.machine, Machine::S390 | Machine::ALPHA);
    let count = if wide {
        target.byte_order.read(bytes.get(8..16)?)
    } else {
        read_u32(bytes, 4, target.byte_order)?.into()
    };
    Some(SymbolCount::Exact(count))
}

/// Returns the count of a `DT_GNU_HASH` table: one past the end of its last chain. `None` when the
/// table, or the chain, does not end within `bytes`.
///
/// Layout, in 32-bit words: bucket count, first hashed symbol, Bloom word count, Bloom shift; then
/// the Bloom filter in words of the class; then the buckets, each the first symbol of its chain or
/// 0; then a word per hashed symbol whose lowest bit is set at the end of a chain.
pub(crate) fn gnu_symbol_count(bytes: &[u8], target: Target) -> Option<SymbolCount> {
    let header = |index: usize| read_u32(bytes, index * 4, target.byte_order);
    let bucket_count = usize::try_from(header(0)?).ok()?;
    let first_hashed = header(1)?;
    let bloom_words = usize::try_from(header(2)?).ok()?;

    let buckets_start = bloom_words
        .checked_mul(target.class.word_size())?
        .checked_add(16)?;
    let buckets_length = bucket_count.checked_mul(4)?;
    let buckets = bytes.get(buckets_start..)?.get(..buckets_length)?;
    let chains = &bytes[buckets_start + buckets_length..];

    let last_chain = buckets
        .chunks_exact(4)
        .filter_map(|bucket| read_u32(bucket, 0, target.byte_order))
        .max();
    let Some(last_chain) = last_chain.filter(|&symbol| symbol != 0) else {
        return Some(SymbolCount::AtLeast(first_hashed.into()));
    };
    let skip = usize::try_from(last_chain.checked_sub(first_hashed)?)
        .ok()?
        .checked_mul(4)?;
    let end = chains
        .get(skip..)?
        .chunks_exact(4)
        .position(|word| read_u32(word, 0, target.byte_order).is_some_and(|word| word & 1 != 0))?;
    Some(SymbolCount::AtLeast(u64::from(last_chain) + end as u64 + 1))
}

fn read_u32(bytes: &[u8], offset: usize, byte_order: ByteOrder) -> Option<u32> {
    let raw = bytes.get(offset..)?.get(..4)?;
    u32::try_from(byte_order.read(raw)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE_64: Target = Target {
        machine: Machine::X86_64,
        class: Class::Elf64,
        byte_order: ByteOrder::Little,
    };
    const BIG_32: Target = Target {
        machine: Machine::S390,
        class: Class::Elf32,
        byte_order: ByteOrder::Big,
    };

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_chain_count_is_the_symbol_count() {
        assert_eq!(
            sysv_symbol_count(&words(&[1, 7]), LITTLE_64),
            Some(SymbolCount::Exact(7))
        );
        let big = [0, 0, 0, 1, 0, 0, 0, 7];
        assert_eq!(sysv_symbol_count(&big, BIG_32), Some(SymbolCount::Exact(7)));
        assert_eq!(sysv_symbol_count(&words(&[1]), LITTLE_64), None);
    }

    #[test]
    fn two_machines_have_wide_hash_words() {
        let target = Target {
            class: Class::Elf64,
            ..BIG_32
        };
        let mut table = vec![0; 16];
        table[15] = 9;
        assert_eq!(
            sysv_symbol_count(&table, target),
            Some(SymbolCount::Exact(9))
        );
    }

    #[test]
    fn the_last_chain_of_a_gnu_table_ends_the_symbols() {
        // Two buckets; chains 3, 4 and 5, 6, 7; a Bloom filter of one 64-bit word.
        let table = words(&[2, 3, 1, 0, 0, 0, 3, 5, 10, 11, 12, 14, 15]);
        assert_eq!(
            gnu_symbol_count(&table, LITTLE_64),
            Some(SymbolCount::AtLeast(8))
        );
    }

    #[test]
    fn a_gnu_table_that_exports_nothing_counts_the_symbols_before_its_first() {
        let table = words(&[1, 4, 1, 0, 0, 0, 0]);
        assert_eq!(
            gnu_symbol_count(&table, LITTLE_64),
            Some(SymbolCount::AtLeast(4))
        );
    }

    #[test]
    fn a_gnu_chain_without_an_end_is_refused() {
        let table = words(&[1, 1, 1, 0, 0, 0, 1, 10, 12]);
        assert_eq!(gnu_symbol_count(&table, LITTLE_64), None);
    }

    #[test]
    fn huge_gnu_counts_are_refused() {
        for (buckets, bloom) in [(u32::MAX, 1), (1, u32::MAX), (u32::MAX, u32::MAX)] {
            let table = words(&[buckets, 1, bloom, 0, 0, 0, 1, 11]);
            assert_eq!(gnu_symbol_count(&table, LITTLE_64), None);
        }
    }
}
