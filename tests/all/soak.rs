//! Sessions, plugins and threads that come and go: a few rounds of `cargo xtask soak`.

use halite_tests::soak::soak;

use crate::plugins;

#[test]
fn sessions_and_plugins_come_and_go_on_many_threads() {
    // Without the plugin there is less to do, which `is_built` says.
    plugins::is_built("scale_add_c.sos");
    let plugin = plugins::folder().join("scale_add_c.sos");
    assert!(soak(&plugin, |rounds| rounds >= 100) >= 100);
}
