//! FatELF files: their table, and each image in them.
#![forbid(unsafe_code)]

use hal_elf::{FatElfError, Target};
#[cfg(feature = "serde")]
use serde::Serialize;

use super::{Elf, elf, error_line};

/// The images of a FatELF file.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct FatElf {
    /// The images, in the order of the table.
    pub members: Vec<FatElfMember>,
}

/// An image of a FatELF file.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct FatElfMember {
    /// What the table says it is for, such as `x86-64 64-bit little-endian`.
    pub target: String,
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length.
    pub byte_length: u64,
    /// The image; `None` if it is damaged or another one of its target comes before it.
    pub elf: Option<Box<Elf>>,
    /// Why there is no image.
    pub problem: Option<String>,
}

/// Describes a FatELF file.
pub(super) fn describe(bytes: &[u8]) -> Result<FatElf, FatElfError> {
    let fat = hal_elf::FatElf::parse(bytes)?;
    let mut seen: Vec<Target> = Vec::new();
    let mut members = Vec::new();
    for record in fat.records() {
        let found = match record.target() {
            None => Err("its target is not known".to_owned()),
            // Only the first of a target is ever used. This also keeps the work small: a member is a whole file.
            Some(target) if seen.contains(&target) => {
                Err("another image for the same target comes before it".to_owned())
            }
            Some(target) => {
                seen.push(target);
                describe_member(&fat, target)
            }
        };
        let (elf, problem) = match found {
            Ok(elf) => (Some(Box::new(elf)), None),
            Err(problem) => (None, Some(problem)),
        };
        members.push(FatElfMember {
            target: record.to_string(),
            offset: record.offset,
            byte_length: record.size,
            elf,
            problem,
        });
    }
    Ok(FatElf { members })
}

fn describe_member(fat: &hal_elf::FatElf<'_>, target: Target) -> Result<Elf, String> {
    let bytes = fat.select(target).map_err(|error| error_line(&error))?;
    elf::describe(bytes).map_err(|error| error_line(&error))
}

#[cfg(test)]
mod tests {
    use crate::inspect::testing::Image;
    use crate::inspect::{Content, describe};

    #[test]
    fn each_image_is_described_and_only_the_first_of_a_target_is_used() {
        let image = Image::exporting("f").build();
        // Machine x86-64 or one that no class is given for; 64 bits, little-endian.
        let record = |class: u8| {
            let mut record = vec![62, 0, 0, 0, class, 1, 0, 0];
            record.extend(80u64.to_le_bytes());
            record.extend((image.len() as u64).to_le_bytes());
            record
        };
        let mut file = b"\xFA\x70\x0E\x1F\x01\x00\x03\x00".to_vec();
        file.extend([record(2), record(2), record(7)].concat());
        file.extend(&image);
        let Content::FatElf(fat) = describe(&file).unwrap().content else {
            panic!("not a FatELF file")
        };
        let problems: Vec<_> = fat
            .members
            .iter()
            .map(|member| member.problem.as_deref())
            .collect();
        assert_eq!(
            problems,
            [
                None,
                Some("another image for the same target comes before it"),
                Some("its target is not known"),
            ]
        );
        let elf = fat.members[0].elf.as_ref().unwrap();
        assert_eq!(elf.exported_symbols.names, ["f"]);
    }
}
