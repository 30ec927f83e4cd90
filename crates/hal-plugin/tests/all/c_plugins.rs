//! Builds small plugins with the C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// What every C plugin here starts with: the ABI in C, and helpers.
const PRELUDE: &str = r#"
#include <stddef.h>
#include <stdint.h>
typedef struct { uint32_t version; const char *name, *description; uint32_t features; int32_t sanitizer; uint64_t reserved[8]; } header_t;
typedef struct { size_t count; const char *const *names; void **functions; void **contexts; } resolve_t;
typedef struct {
  const header_t *header;
  uintptr_t (*load)(const void *, size_t, const void *, void **);
  void (*unload)(void *);
  uintptr_t (*resolve)(void *, const resolve_t *, uint32_t *);
} plugin_t;
#ifndef LOAD_STATUS
#define LOAD_STATUS 0
#endif
static int value(void *params, void *context, void *reserved);
static uintptr_t on_load(const void *e, size_t n, const void *p, void **self) { return LOAD_STATUS; }
static uintptr_t on_resolve(void *self, const resolve_t *r, uint32_t *bits) {
  int missing = 0;
  for (size_t i = 0; i < r->count; ++i) {
    const char *s = r->names[i];
    if (r->functions[i]) continue;
    if (s[0] == 'f' && !s[1]) r->functions[i] = (void *)value; else missing = 1;
  }
  *bits = 0;
  return missing ? 5 : 0;
}
static const header_t header = {1, "c plugin", "built by a test", 1, 0, {0}};
static const plugin_t plugin = {&header, on_load, 0, on_resolve};
__attribute__((visibility("default"))) const void *iree_hal_executable_plugin_query(uint32_t max, void *reserved) {
  return max >= 1 ? &plugin : 0;
}
"#;

/// A place for the files of a test; `None`, with the reason printed, if there is no C compiler, or Miri runs the test,
/// which cannot load what it would build.
pub(crate) struct Workshop(TempDir);

impl Workshop {
    pub(crate) fn open() -> Option<Self> {
        if cfg!(miri) {
            println!("skipped: Miri does not run machine code");
            return None;
        }
        if let Err(error) = Command::new("cc").arg("--version").output() {
            println!("skipped: cannot run the C compiler `cc`: {error}");
            return None;
        }
        Some(Self(TempDir::new().unwrap()))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Builds the shared object `name` from the prelude and `code`, which defines `value`.
    pub(crate) fn plugin(&self, name: &str, code: &str, flags: &[&str]) -> PathBuf {
        self.shared_object(name, &format!("{PRELUDE}\n{code}\n"), flags)
    }

    /// Builds a plugin whose function returns `number`.
    pub(crate) fn numbered(&self, name: &str, number: u32, flags: &[&str]) -> PathBuf {
        let code = format!("static int value(void *p, void *c, void *r) {{ return {number}; }}");
        self.plugin(name, &code, flags)
    }

    /// Builds the shared object `name` from `code`.
    pub(crate) fn shared_object(&self, name: &str, code: &str, flags: &[&str]) -> PathBuf {
        let source = self.path("source.c");
        std::fs::write(&source, code).unwrap();
        let object = self.path(name);
        self.run(
            Command::new("cc")
                .args(["-O1", "-w", "-fPIC", "-shared", "-o"])
                .arg(&object)
                .arg(&source)
                .args(flags),
        );
        object
    }

    fn run(&self, command: &mut Command) {
        let output = command.current_dir(self.0.path()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}: {text}");
    }
}

/// Flags for a freestanding image that needs nothing from its surroundings.
pub(crate) const FREESTANDING: &[&str] = &[
    "-nostdlib",
    "-ffreestanding",
    "-fvisibility=hidden",
    "-fno-stack-protector",
    "-Wl,--hash-style=both",
];

/// Calls the import `f` of a plugin file.
#[track_caller]
pub(crate) fn call_f(plugin: &hal_plugin::Plugin) -> i32 {
    let imports = hal_plugin::resolve_imports(Some(plugin), &[c"f"]).unwrap();
    let import = imports.get(0).unwrap();
    // SAFETY: the test plugins' functions use none of their arguments, and `plugin` is loaded.
    unsafe { import.function()(std::ptr::null_mut(), import.context(), std::ptr::null_mut()) }
}

/// Returns the chain of causes of an error as one text.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// Writes a path into a specification string.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
