//! The subcommands, one file each.

pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod compile;
pub(crate) mod completions;
pub(crate) mod exec;
pub(crate) mod inspect;
pub(crate) mod isolate;
pub(crate) mod plugin;
pub(crate) mod run;
