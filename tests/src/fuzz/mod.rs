//! The fuzz targets: what is done with any bytes, and where to begin.
//!
//! A target is a plain function, so that the fuzzer (`tests/fuzz`) and plain tests (`tests/hostile`) run the same code.
//! It panics when something does not hold: a promise broken, or two ways to the same answer that disagree.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a target panics when it finds something"
)]

mod blocks;
mod images;
mod inputs;
mod modules;
mod plugins;
mod run;

use std::path::{Path, PathBuf};

use crate::memory;

/// Something that takes any bytes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of the fuzzer's program, and of the folders of its inputs.
    pub name: &'static str,
    /// Does everything with an input that can be done.
    run: fn(&[u8]) -> Outcome,
    /// Makes inputs from the fixtures of the repository.
    seeds: fn() -> Vec<Vec<u8>>,
    memory: Bound,
}

/// What came of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was refused with an error.
    Refused,
    /// It was taken.
    Taken,
    /// It was taken, and something in it was called.
    Ran,
}

/// The most memory that a target may take at one time.
#[derive(Clone, Copy, Debug)]
struct Bound {
    /// Bytes whatever the input.
    fixed: usize,
    /// Bytes for each byte of the input.
    per_byte: usize,
}

impl Bound {
    const fn new(fixed: usize, per_byte: usize) -> Self {
        Self { fixed, per_byte }
    }
}

/// All targets, the riskiest first.
pub const TARGETS: &[Target] = &[
    Target {
        name: "run",
        run: run::run,
        seeds: run::seeds,
        // A program decides what it takes, in blocks that the target limits.
        memory: Bound::new(usize::MAX, 0),
    },
    Target {
        name: "archive",
        run: modules::archive,
        seeds: modules::seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "elf_relocate",
        run: images::elf_relocate,
        seeds: images::seeds,
        memory: Bound::new(
            3 * hal_elf::MAX_EXTRA_IMAGE_BYTES,
            3 * hal_elf::MAX_IMAGE_BYTES_PER_FILE_BYTE + 64,
        ),
    },
    Target {
        name: "npy",
        run: inputs::npy,
        seeds: inputs::npy_seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "input_text",
        run: inputs::input_text,
        seeds: inputs::input_text_seeds,
        memory: Bound::new(usize::MAX, 0),
    },
    Target {
        name: "verify",
        run: modules::verify,
        seeds: modules::seeds,
        memory: Bound::new(1 << 16, 512),
    },
    Target {
        name: "session",
        run: modules::session,
        seeds: modules::session_seeds,
        memory: Bound::new(usize::MAX, 0),
    },
    Target {
        name: "elf_parse",
        run: images::elf_parse,
        seeds: images::seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "inspect",
        run: images::inspect,
        seeds: images::inspect_seeds,
        memory: Bound::new(1 << 16, 512),
    },
    Target {
        name: "plugin_header",
        run: plugins::plugin_header,
        seeds: plugins::plugin_header_seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "registry",
        run: plugins::registry,
        seeds: plugins::registry_seeds,
        memory: Bound::new(1 << 16, 4096),
    },
    Target {
        name: "dispatch_arguments",
        run: blocks::dispatch_arguments,
        seeds: blocks::dispatch_seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "argument_block",
        run: blocks::argument_block,
        seeds: blocks::block_seeds,
        memory: Bound::new(1 << 16, 128),
    },
    Target {
        name: "convention",
        run: blocks::convention,
        seeds: blocks::convention_seeds,
        memory: Bound::new(1 << 16, 64),
    },
    Target {
        name: "fat_elf",
        run: images::fat_elf,
        seeds: images::fat_elf_seeds,
        memory: Bound::new(1 << 16, 64),
    },
];

impl Target {
    /// Returns the target of a name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Runs the target, and checks the memory it takes.
    pub fn exercise(&self, input: &[u8]) -> Outcome {
        let (outcome, peak) = memory::peak_of(|| (self.run)(input));
        let Bound { fixed, per_byte } = self.memory;
        let limit = fixed.saturating_add(per_byte.saturating_mul(input.len()));
        assert!(
            peak <= limit,
            "{}: an input of {} bytes took {peak} bytes of memory",
            self.name,
            input.len()
        );
        outcome
    }

    /// Returns the inputs to begin with: those made from fixtures, and the committed ones, by name.
    #[must_use]
    pub fn inputs(&self) -> Vec<(String, Vec<u8>)> {
        let made = (self.seeds)().into_iter().enumerate();
        let mut inputs: Vec<(String, Vec<u8>)> = made
            .map(|(index, input)| (format!("made-{index:02}"), input))
            .collect();
        for folder in ["corpus", "crashes"] {
            inputs.extend(files(&self.folder(folder)));
        }
        inputs
    }

    /// Returns a folder of committed inputs, which need not exist: `corpus` or `crashes`.
    #[must_use]
    pub fn folder(&self, kind: &str) -> PathBuf {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz");
        fuzz.join(kind).join(self.name)
    }
}

/// Returns the files of a folder and their names, sorted.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Returns the files below a folder of the workspace whose names end so.
pub(crate) fn fixtures(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Takes numbers and bytes off the front of an input; an empty one gives zeros.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u32 {
        u32::from_le_bytes([self.byte(), self.byte(), self.byte(), self.byte()])
    }

    /// Takes bytes, as many as a first byte says.
    fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
