//! Reads a `.vmfb` file without running anything of it: what it is, what it needs, what it offers, and its bytecode.
//!
//! Any bytes may be given: the file is verified, and a bad one gives an error that says what is wrong where.
//!
//! ```console
//! $ cargo run --quiet --package vm-bytecode --example read_vmfb tests/fixtures/3.13.0/vmvx/host.vmfb
//! module `module`, bytecode 17.0
//! needs `host` 0 or newer
//! needs `hal_loader` 1 or newer
//! needs `hal_inline` 0 or newer
//! imports 9 functions, the first is host.clamp 0iii_i
//! exports clamped 0i_i
//! exports mul_into 0rrr_r
//! exports __init 0v_v
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use vm_bytecode::VerifiedModule;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name a .vmfb file")?;
    let module = VerifiedModule::load(&std::fs::read(path)?)?;
    let def = module.def();
    println!("module `{}`, bytecode {}", def.name, def.bytecode_version);
    for dependency in &def.dependencies {
        println!(
            "needs `{}` {} or newer",
            dependency.name, dependency.minimum_version
        );
    }
    if let Some(first) = def.imports.first() {
        println!(
            "imports {} functions, the first is {} {}",
            def.imports.len(),
            first.full_name,
            first.signature.calling_convention
        );
    }
    for export in &def.exports {
        let function = usize::try_from(export.function)?;
        let convention = module.functions()[function].convention();
        println!("exports {} {}", export.name, convention.text());
    }
    Ok(())
}
