//! Loading the plugins that are named on the command line.
#![forbid(unsafe_code)]

use halite::{Plugin, PluginManager, PluginSpec, StatusCode};

use crate::failure::Failure;
use crate::{hints, trust};

/// Loads the plugin of an item of `--executable_plugin` and runs its `load`.
pub(crate) fn load(spec: &str) -> Result<Plugin, Failure> {
    let parsed = PluginSpec::parse(spec)
        .map_err(|error| Failure::of(StatusCode::INVALID_ARGUMENT, &error))?;
    trust::of_the_user().load_plugin(&parsed).map_err(|error| {
        let code = StatusCode::from_low_bits(error.status_code().0);
        Failure::work(code, format!("cannot load the plugin `{spec}`"))
            .caused_by(error)
            .with_hint(hints::of_plugin(parsed.path()))
    })
}

/// Adds a plugin to a manager.
pub(crate) fn register(manager: &PluginManager, plugin: Plugin) -> Result<(), Failure> {
    manager
        .register_plugin(plugin)
        .map_err(|error| Failure::of(StatusCode::from_low_bits(error.status_code().0), &error))
}

/// Loads several plugins, of which later ones are asked first.
pub(crate) fn manager(specs: &[String]) -> Result<PluginManager, Failure> {
    let manager = PluginManager::new();
    for spec in specs {
        register(&manager, load(spec)?)?;
    }
    Ok(manager)
}
