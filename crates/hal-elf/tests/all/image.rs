//! Images that are mapped and run. The code is x86-64; other hosts run what does not depend on it.

use hal_elf::{ElfError, FatElfError, Image, Machine, Target};

use crate::builder::{ARM_64, Builder, X86_64};
use crate::fixtures::{MUL_ARM_64, MUL_X86_64};

/// A FatELF file of one member at an odd offset.
fn fat(target: Target, member: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xFA, 0x70, 0x0E, 0x1F, 1, 0, 1, 0];
    bytes.extend(target.machine.0.to_le_bytes());
    bytes.extend([0, 0, 2, 1, 0, 0]);
    bytes.extend(33_u64.to_le_bytes());
    bytes.extend((member.len() as u64).to_le_bytes());
    bytes.push(0);
    bytes.extend(member);
    bytes
}

#[track_caller]
fn error_of(bytes: &[u8]) -> ElfError {
    // SAFETY: loading fails, so no code of the file runs; a file that loads has no initializers.
    match unsafe { Image::load(bytes) } {
        Ok(_) => panic!("the image was loaded"),
        Err(error) => error,
    }
}

#[test]
fn an_image_may_be_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Image>();
}

#[test]
fn a_file_for_another_machine_is_refused() {
    let (bytes, machine) = if Target::HOST == ARM_64 {
        (MUL_X86_64, Machine::X86_64)
    } else {
        (MUL_ARM_64, Machine::ARM_64)
    };
    let error = error_of(bytes);
    let ElfError::Target { expected, found } = error else {
        panic!("{error}")
    };
    assert_eq!((expected, found.machine), (Target::HOST, machine));
}

#[test]
fn a_fat_file_without_a_member_for_the_host_is_refused() {
    let error = error_of(&fat(
        Target {
            machine: Machine(0x1234),
            ..X86_64
        },
        MUL_X86_64,
    ));
    let ElfError::FatElf(FatElfError::NoMatch { present, .. }) = error else {
        panic!("{error}")
    };
    assert_eq!(present, "machine 0x1234 64-bit little-endian");
}

#[test]
fn the_first_match_of_a_fat_file_is_final() {
    let other = Builder::new(Target {
        machine: Machine(0x1234),
        ..Target::HOST
    })
    .finish();
    if Target::HOST.class == hal_elf::Class::Elf64 {
        assert!(matches!(
            error_of(&fat(Target::HOST, &other)),
            ElfError::Target { .. }
        ));
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux_x86_64 {
    use std::ffi::{CStr, c_void};
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use hal_elf::ElfError;

    use super::*;
    use crate::builder::{
        DATA, DT_INIT, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, PT_GNU_RELRO, R, Segment, TEXT, load,
        load_zeroes,
    };

    /// Loads a file of our own.
    fn load_image(bytes: &[u8]) -> Image {
        // SAFETY: the initializers of files that these tests build only write to their own data.
        unsafe { Image::load(bytes) }.unwrap()
    }

    /// Calls a function of an image that takes nothing and returns an integer.
    fn call(image: &Image, name: &CStr) -> i32 {
        let address = image.symbol(name).unwrap();
        // SAFETY: every function that these tests call by name has this type.
        let function: extern "C" fn() -> i32 = unsafe { std::mem::transmute(address) };
        function()
    }

    /// Reads a word of an image's data.
    fn word(image: &Image, offset: usize) -> u64 {
        assert!(offset + 8 <= image.byte_length());
        // SAFETY: the range was checked, and the callers' words are in readable data that no code
        // is changing meanwhile.
        let place = unsafe { image.base().as_ptr().byte_add(offset) };
        // SAFETY: as above; the read may be unaligned.
        unsafe { place.cast::<u64>().read_unaligned() }
    }

    /// The permissions of the pages of this process in a range of addresses, as `/proc` shows them.
    fn permissions(start: usize, byte_length: usize) -> Vec<String> {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let overlapping = maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let from = usize::from_str_radix(from, 16).unwrap();
            let to = usize::from_str_radix(to, 16).unwrap();
            (from < start + byte_length && to > start).then(|| rest[..3].to_owned())
        });
        overlapping.collect()
    }

    fn permissions_of(image: &Image) -> Vec<String> {
        permissions(image.base().as_ptr().addr(), image.byte_length())
    }

    #[test]
    fn an_exported_function_runs() {
        let image = load_image(&Builder::new(X86_64).finish());
        assert_eq!(call(&image, c"answer"), 42);
        assert_eq!(image.symbol(c"question"), None);
        assert_eq!(image.symbol(c""), None);
    }

    #[test]
    fn a_fat_member_at_an_odd_offset_runs() {
        let bytes = fat(X86_64, &Builder::new(X86_64).finish());
        assert_eq!(call(&load_image(&bytes), c"answer"), 42);
    }

    #[test]
    fn the_input_may_go_away_after_loading() {
        let bytes = Builder::new(X86_64).finish();
        let image = load_image(&bytes);
        drop(bytes);
        assert_eq!(call(&image, c"answer"), 42);
    }

    #[test]
    fn a_compiled_executable_answers_its_query() {
        let image = load_image(MUL_X86_64);
        let address = image.symbol(c"iree_hal_executable_library_query").unwrap();
        // SAFETY: the type of this function in the executable library ABI.
        let query: extern "C" fn(u32, *const c_void) -> *const *const u32 =
            unsafe { std::mem::transmute(address) };
        let library = query(6, std::ptr::null());
        assert!(!library.is_null());
        // SAFETY: the library's first field is the pointer to its header.
        let header = unsafe { *library };
        // SAFETY: the header's first field is the version.
        let version = unsafe { *header };
        assert_eq!(version, 6);
        assert!(query(99, std::ptr::null()).is_null());
    }

    #[test]
    fn no_page_is_writable_and_executable() {
        let both = || {
            let maps = fs::read_to_string("/proc/self/maps").unwrap();
            let both = maps.lines().filter(|line| line.contains("rwx"));
            both.map(str::to_owned).collect::<Vec<_>>()
        };
        // A program that runs this one, such as valgrind, has such pages of its own, and makes more at any time.
        let is_alone = both().is_empty();
        let image = load_image(MUL_X86_64);
        assert_eq!(permissions_of(&image), ["r--", "r-x", "r--"]);
        let other = load_image(&Builder::new(X86_64).finish());
        assert_eq!(permissions_of(&other), ["r--", "r-x", "rw-"]);
        if is_alone {
            assert_eq!(both(), [""; 0]);
        }
    }

    #[test]
    fn data_after_relro_stays_writable() {
        let mut builder = Builder::new(X86_64);
        builder.segments[2].memory_size = 0x2000;
        builder.segments.push(Segment {
            kind: PT_GNU_RELRO,
            ..load(R, DATA, 0x1008)
        });
        let image = load_image(&builder.finish());
        assert_eq!(permissions_of(&image), ["r--", "r-x", "r--", "rw-"]);
    }

    #[test]
    fn initializers_run_once_each_and_in_order() {
        let mut builder = Builder::new(X86_64);
        // Each function makes the word at DATA + 0x100 ten times what it was plus its own digit:
        // imul eax, [rip + word], 10; add eax, digit; mov [rip + word], eax; ret
        for (at, digit) in [(TEXT + 0x100, 1_u8), (TEXT + 0x200, 2), (TEXT + 0x300, 3)] {
            let relative = |end: u64| u32::try_from(DATA + 0x100 - end).unwrap().to_le_bytes();
            let mut code = vec![0x6B, 0x05];
            code.extend(relative(at + 7));
            code.push(10);
            code.extend([0x83, 0xC0, digit, 0x89, 0x05]);
            code.extend(relative(at + 16));
            code.push(0xC3);
            builder.put(at, &code);
        }
        builder.tags = vec![
            (DT_INIT, TEXT + 0x100),
            (DT_INIT_ARRAY, DATA),
            (DT_INIT_ARRAYSZ, 4 * 8),
        ];
        builder.put_word(DATA + 16, u64::MAX);
        let address = |offset| i64::try_from(TEXT + offset).unwrap();
        builder.rela = vec![
            (DATA, 8, 0, address(0x300)),
            (DATA + 24, 8, 0, address(0x200)),
        ];
        let image = load_image(&builder.finish());
        assert_eq!(word(&image, 0x2100), 132);
    }

    #[test]
    fn nothing_runs_when_an_initializer_is_not_code() {
        let mut builder = Builder::new(X86_64);
        // ud2, which would end the process
        builder.put(TEXT + 0x100, &[0x0F, 0x0B]);
        builder.tags = vec![
            (DT_INIT, TEXT + 0x100),
            (DT_INIT_ARRAY, DATA),
            (DT_INIT_ARRAYSZ, 8),
        ];
        builder.rela = vec![(DATA, 8, 0, i64::try_from(DATA).unwrap())];
        assert!(matches!(
            error_of(&builder.finish()),
            ElfError::Initializer { .. }
        ));
    }

    #[test]
    fn of_two_symbols_with_one_name_the_last_counts() {
        let mut builder = Builder::new(X86_64);
        builder.export("answer", TEXT + 0x10);
        builder.put(TEXT + 0x10, &[0xB8, 7, 0, 0, 0, 0xC3]);
        assert_eq!(call(&load_image(&builder.finish()), c"answer"), 7);
    }

    #[test]
    fn only_exported_memory_can_be_looked_up() {
        let mut builder = Builder::new(X86_64);
        builder.symbols.push(("local".into(), TEXT, 1, 0x02));
        builder.symbols.push(("number".into(), TEXT, 0xFFF1, 0x12));
        builder.symbols.push(("weak".into(), TEXT, 1, 0x22));
        builder.export("end", 0x3000);
        builder.export("stray", 1 << 62);
        let image = load_image(&builder.finish());
        for name in [c"local", c"number", c"end", c"stray"] {
            assert_eq!(image.symbol(name), None, "{name:?}");
        }
        assert_eq!(call(&image, c"weak"), 42);
    }

    #[test]
    fn many_symbols_are_each_found() {
        let mut builder = Builder::new(X86_64);
        builder.symbols.clear();
        for index in 0..50_u64 {
            builder.export(format!("f{index}"), TEXT + index * 8);
        }
        let image = load_image(&builder.finish());
        let base = image.base().as_ptr().addr();
        for index in 0..50 {
            let name = std::ffi::CString::new(format!("f{index}")).unwrap();
            let found = image.symbol(&name).unwrap().as_ptr().addr();
            assert_eq!(found - base, 0x1000 + index * 8);
        }
    }

    #[test]
    fn an_image_is_aligned_as_its_segments_ask() {
        let mut builder = Builder::new(X86_64);
        builder.base = 0x40_3000;
        builder.segments[0].alignment = 0x20_0000;
        for _ in 0..4 {
            let image = load_image(&builder.finish());
            assert_eq!(image.base().as_ptr().addr() % 0x20_0000, 0x3000);
            assert_eq!(call(&image, c"answer"), 42);
        }
    }

    #[test]
    fn a_dropped_image_is_unmapped() {
        // Once unmapped, the addresses may be taken by anything, so the mapping is told by its
        // length. Between pages of another kind it cannot merge with its neighbors.
        const LENGTH: u64 = 0x777_7000;
        let mut builder = Builder::new(X86_64);
        builder.segments[2].memory_size = LENGTH;
        builder.segments.push(load_zeroes(R, DATA + LENGTH, 0x1000));
        let count = || {
            let maps = fs::read_to_string("/proc/self/maps").unwrap();
            let is_ours = |line: &&str| {
                let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
                let address = |text| u64::from_str_radix(text, 16).unwrap();
                address(to) - address(from) == LENGTH
            };
            maps.lines().filter(is_ours).count()
        };
        let image = load_image(&builder.finish());
        assert_eq!(count(), 1);
        drop(image);
        assert_eq!(count(), 0);
    }

    const SOURCE: &str = r"
        static int calls;
        static int table[3] = {10, 20, 12};
        int *const pointers[3] = {&table[0], &table[1], &table[2]};
        __attribute__((constructor)) static void construct(void) { ++calls; }
        int answer(void) { return *pointers[0] + *pointers[1] + *pointers[2]; }
        int (*answer_pointer)(void) = answer;
        int indirect(void) { return answer_pointer(); }
        int constructor_calls(void) { return calls; }
    ";

    /// A scratch folder of one test.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            // Leaving files behind in the target folder harms nobody.
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Compiles [`SOURCE`] with the system's C compiler; `None`, with the reason printed, without.
    #[expect(clippy::print_stdout, reason = "a skipped test says why")]
    fn compile(name: &str, flags: &[&str]) -> Option<Vec<u8>> {
        let scratch = Scratch::new(name);
        let source = scratch.0.join("source.c");
        let output = scratch.0.join("output.so");
        fs::write(&source, SOURCE).unwrap();
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-nostdlib", "-ffreestanding"]);
        command
            .args(["-fno-stack-protector", "-o"])
            .arg(&output)
            .arg(&source)
            .args(flags);
        match command.output() {
            Err(error) => {
                println!("skipped: cannot run cc: {error}");
                None
            }
            Ok(result) if !result.status.success() => {
                println!(
                    "skipped: cc failed: {}",
                    String::from_utf8_lossy(&result.stderr)
                );
                None
            }
            Ok(_) => Some(fs::read(&output).unwrap()),
        }
    }

    #[test]
    fn a_file_of_the_systems_linker_runs() {
        for (name, flags) in [
            ("plain", &[][..]),
            ("gnu-hash", &["-Wl,--hash-style=gnu"]),
            ("sysv-hash", &["-Wl,--hash-style=sysv"]),
            ("relr", &["-Wl,-z,pack-relative-relocs"]),
            ("stripped", &["-s"]),
            ("no-relro", &["-Wl,-z,norelro"]),
            ("large-pages", &["-Wl,-z,max-page-size=0x200000"]),
            ("lazy", &["-Wl,-z,lazy", "-fplt"]),
            ("far", &["-Wl,-Ttext-segment=0x40000000"]),
        ] {
            let Some(bytes) = compile(name, flags) else {
                continue;
            };
            let image = load_image(&bytes);
            assert_eq!(call(&image, c"constructor_calls"), 1, "{name}");
            assert_eq!(call(&image, c"answer"), 42, "{name}");
            assert_eq!(call(&image, c"indirect"), 42, "{name}");
            assert!(
                !permissions_of(&image).iter().any(|access| access == "rwx"),
                "{name}"
            );
        }
    }

    #[test]
    fn a_file_linked_with_tiny_pages_is_refused_rather_than_made_unsafe() {
        let Some(bytes) = compile(
            "tiny-pages",
            &["-Wl,-z,max-page-size=64,-z,noseparate-code"],
        ) else {
            return;
        };
        // Code and data share a page, unless the linker kept them apart all the same.
        // SAFETY: the file is our own; its one initializer writes to its own data.
        match unsafe { Image::load(&bytes) } {
            Ok(image) => assert_eq!(call(&image, c"answer"), 42),
            Err(error) => assert!(
                matches!(error, ElfError::WritableAndExecutable { .. }),
                "{error}"
            ),
        }
    }
}
