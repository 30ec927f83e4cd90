//! Which computer a file is for: machine, word size, byte order.
//!
//! Nothing here reads a file. The machine is an open set, since any number may stand in a header;
//! class and byte order are closed, since no file can be read without knowing them.

use core::fmt;

/// An `e_machine` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Machine(pub u16);

impl Machine {
    /// No machine.
    pub const NONE: Self = Self(0);
    /// Intel 80386: `EM_386`.
    pub const X86_32: Self = Self(3);
    /// IBM S/390: `EM_S390`.
    pub const S390: Self = Self(22);
    /// 32-bit Arm: `EM_ARM`.
    pub const ARM_32: Self = Self(40);
    /// AMD x86-64: `EM_X86_64`.
    pub const X86_64: Self = Self(62);
    /// 64-bit Arm: `EM_AARCH64`.
    pub const ARM_64: Self = Self(183);
    /// RISC-V, both word sizes: `EM_RISCV`.
    pub const RISCV: Self = Self(243);
    /// DEC Alpha, the number that is in use: `EM_ALPHA`.
    pub const ALPHA: Self = Self(0x9026);

    /// The machine this library is compiled for, [`Machine::NONE`] when the loader does not know it.
    pub const HOST: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "x86") {
        Self::X86_32
    } else if cfg!(target_arch = "aarch64") {
        Self::ARM_64
    } else if cfg!(target_arch = "arm") {
        Self::ARM_32
    } else if cfg!(any(target_arch = "riscv64", target_arch = "riscv32")) {
        Self::RISCV
    } else {
        Self::NONE
    };

    /// Returns the usual name of the machine, or `None` for one that is not in the table.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "no machine",
            2 => "SPARC",
            3 => "x86",
            4 => "Motorola 68000",
            8 => "MIPS",
            15 => "PA-RISC",
            20 => "PowerPC",
            21 => "PowerPC64",
            22 => "S/390",
            40 => "Arm",
            42 => "SuperH",
            43 => "SPARC V9",
            50 => "Itanium",
            62 => "x86-64",
            83 => "AVR",
            94 => "Xtensa",
            164 => "Hexagon",
            183 => "AArch64",
            190 => "CUDA",
            224 => "AMD GPU",
            243 => "RISC-V",
            247 => "BPF",
            258 => "LoongArch",
            0x9026 => "Alpha",
            _ => return None,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "machine {:#x}", self.0),
        }
    }
}

/// The word size of a file: `EI_CLASS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// 32-bit words: `ELFCLASS32`.
    Elf32,
    /// 64-bit words: `ELFCLASS64`.
    Elf64,
}

impl Class {
    /// The class whose word is a pointer of the host.
    pub const HOST: Self = if cfg!(target_pointer_width = "64") {
        Self::Elf64
    } else {
        Self::Elf32
    };

    /// Returns the bytes in a word: 4 or 8.
    #[must_use]
    pub const fn word_size(self) -> usize {
        match self {
            Self::Elf32 => 4,
            Self::Elf64 => 8,
        }
    }

    /// Returns the highest address that a word can hold.
    #[must_use]
    pub(crate) const fn max_address(self) -> u64 {
        match self {
            Self::Elf32 => 0xFFFF_FFFF,
            Self::Elf64 => u64::MAX,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Elf32 => "32-bit",
            Self::Elf64 => "64-bit",
        })
    }
}

/// The byte order of a file: `EI_DATA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ByteOrder {
    /// Least significant byte first: `ELFDATA2LSB`.
    Little,
    /// Most significant byte first: `ELFDATA2MSB`.
    Big,
}

impl ByteOrder {
    /// The byte order of the host.
    pub const HOST: Self = if cfg!(target_endian = "little") {
        Self::Little
    } else {
        Self::Big
    };

    /// Reads a number of up to 8 bytes.
    pub(crate) fn read(self, bytes: &[u8]) -> u64 {
        let push_byte = |value, byte: &u8| value << 8 | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, push_byte),
            Self::Big => bytes.iter().fold(0, push_byte),
        }
    }

    /// Returns the same choice in the words of the `object` crate.
    pub(crate) const fn endianness(self) -> object::Endianness {
        match self {
            Self::Little => object::Endianness::Little,
            Self::Big => object::Endianness::Big,
        }
    }
}

impl fmt::Display for ByteOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Little => "little-endian",
            Self::Big => "big-endian",
        })
    }
}

/// What a file must match to run somewhere: machine, word size and byte order together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The instruction set.
    pub machine: Machine,
    /// The word size.
    pub class: Class,
    /// The byte order.
    pub byte_order: ByteOrder,
}

impl Target {
    /// The target this library is compiled for.
    pub const HOST: Self = Self {
        machine: Machine::HOST,
        class: Class::HOST,
        byte_order: ByteOrder::HOST,
    };

    /// Returns the architecture name that executable formats use, such as the `x86_64` in
    /// `embedded-elf-x86_64`, or `None` for a machine that has none.
    ///
    /// Names: `docs/abi.md`, section 10.9. The byte order is not part of the name.
    #[must_use]
    pub const fn arch_name(self) -> Option<&'static str> {
        Some(match (self.machine, self.class) {
            (Machine::X86_64, Class::Elf64) => "x86_64",
            (Machine::X86_32, Class::Elf32) => "x86_32",
            (Machine::ARM_64, Class::Elf64) => "arm_64",
            (Machine::ARM_32, Class::Elf32) => "arm_32",
            (Machine::RISCV, Class::Elf64) => "riscv_64",
            (Machine::RISCV, Class::Elf32) => "riscv_32",
            _ => return None,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.machine, self.class, self.byte_order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_risc_v_machine_has_two_architecture_names() {
        let target = |class| Target {
            machine: Machine::RISCV,
            class,
            byte_order: ByteOrder::Little,
        };
        assert_eq!(target(Class::Elf64).arch_name(), Some("riscv_64"));
        assert_eq!(target(Class::Elf32).arch_name(), Some("riscv_32"));
    }

    #[test]
    fn an_unknown_machine_prints_its_number() {
        assert_eq!(Machine(0xBEEF).to_string(), "machine 0xbeef");
        assert_eq!(Machine::X86_64.to_string(), "x86-64");
    }

    #[test]
    fn a_64_bit_machine_with_32_bit_words_has_no_architecture_name() {
        let x32 = Target {
            machine: Machine::X86_64,
            class: Class::Elf32,
            byte_order: ByteOrder::Little,
        };
        assert_eq!(x32.arch_name(), None);
    }
}
