//! Resolution against an oracle that does the same in the plainest way.

use std::ffi::CString;
use std::sync::Arc;

use hal_abi::{Resolution, StatusCode};
use hal_plugin::{ImportProvider, PluginManager, ResolveError};
use proptest::prelude::*;

use crate::probe;
use crate::providers::{Answer, Known, borrow, tag};

/// A provider to make, and for the oracle to imitate.
#[derive(Clone, Debug)]
struct Model {
    /// Made as a plugin, or as a provider in Rust.
    is_plugin: bool,
    knows: Vec<String>,
    /// The status returned, or `None` for the honest one.
    status: Option<u32>,
    /// For plugins: whether filled slots are overwritten, and which bits are reported.
    clobbers: bool,
    bits: Option<u32>,
}

impl Model {
    /// Makes the provider. Its functions have the context `tag`.
    fn make(&self, tag: usize) -> Arc<dyn ImportProvider> {
        let symbols: Vec<&str> = self.knows.iter().map(String::as_str).collect();
        if !self.is_plugin {
            let answer = match self.status {
                None | Some(0) => Answer::Ok,
                Some(code) => Answer::Error(StatusCode(code)),
            };
            return Arc::new(Known::with_answer("known", tag, &symbols, answer));
        }
        let (tag, knows) = (tag.to_string(), symbols.join(","));
        let status = self.status.map(|status| status.to_string());
        let bits = self.bits.map(|bits| bits.to_string());
        let mut parameters = vec![("id", "oracle"), ("tag", &*tag)];
        if !symbols.is_empty() {
            parameters.push(("knows", &knows));
        }
        if let Some(status) = &status {
            parameters.push(("resolve", status));
        }
        if let Some(bits) = &bits {
            parameters.push(("bits", bits));
        }
        if self.clobbers {
            parameters.push(("clobber", ""));
        }
        Arc::new(probe::load(&parameters).unwrap())
    }
}

/// Returns for each name the tag of its provider and 0 where there is none, or the missing names, or
/// the code of the first failure. The newest provider is the last.
fn oracle(models: &[Model], names: &[String]) -> Result<Vec<usize>, Result<Vec<String>, u32>> {
    let mut slots = vec![0; names.len()];
    for (index, model) in models.iter().enumerate().rev() {
        if slots.iter().all(|&slot| slot != 0) {
            break;
        }
        for (slot, name) in slots.iter_mut().zip(names) {
            let symbol = name.strip_prefix('?').unwrap_or(name);
            if *slot == 0 && model.knows.iter().any(|known| known == symbol) {
                *slot = index + 1;
            }
        }
        match model.status {
            None | Some(0 | 5) => {}
            Some(1 | 17) => return Err(Err(13)),
            Some(code) => return Err(Err(code)),
        }
    }
    let mut missing: Vec<String> = Vec::new();
    for (name, &slot) in names.iter().zip(&slots) {
        if slot == 0 && !name.starts_with('?') && !missing.contains(name) {
            missing.push(name.clone());
        }
    }
    missing.sort();
    if missing.is_empty() {
        Ok(slots)
    } else {
        Err(Ok(missing))
    }
}

fn models() -> impl Strategy<Value = Vec<Model>> {
    let knows = prop::collection::vec("[a-d]{1,2}", 0..5);
    let status = prop_oneof![
        6 => Just(None),
        2 => Just(Some(0)),
        3 => Just(Some(5)),
        1 => (1..32_u32).prop_map(Some),
    ];
    let bits = prop::option::of(any::<u32>());
    let model = (any::<bool>(), knows, status, any::<bool>(), bits).prop_map(
        |(is_plugin, knows, status, clobbers, bits)| Model {
            is_plugin,
            knows,
            status,
            clobbers,
            bits,
        },
    );
    prop::collection::vec(model, 0..6)
}

proptest! {
    #[test]
    fn resolution_agrees_with_the_oracle(
        models in models(),
        names in prop::collection::vec("[?]{0,1}[a-d]{0,2}", 0..12),
        split in 0_usize..6,
    ) {
        // The older providers sit in a manager of their own, which must make no difference.
        let split = split.min(models.len());
        let (inner, outer) = (PluginManager::new(), PluginManager::new());
        outer.register_provider("inner", Arc::new(inner.clone())).unwrap();
        for (index, model) in models.iter().enumerate() {
            let manager = if index < split { &inner } else { &outer };
            manager.register_provider(format!("p{index}"), model.make(index + 1)).unwrap();
        }
        let owned: Vec<CString> =
            names.iter().map(|name| CString::new(name.as_str()).unwrap()).collect();

        let result = outer.resolve(&borrow(&owned));
        match (result, oracle(&models, &names)) {
            (Ok(imports), Ok(slots)) => {
                prop_assert_eq!(imports.len(), names.len());
                for (index, &slot) in slots.iter().enumerate() {
                    prop_assert_eq!(imports.get(index).map_or(0, tag), slot);
                }
                let is_complete = slots.iter().all(|&slot| slot != 0);
                prop_assert_eq!(imports.resolution() == Resolution::COMPLETE, is_complete);
            }
            (Err(ResolveError::MissingImports { missing, asked }), Err(Ok(expected))) => {
                prop_assert_eq!(missing, expected);
                prop_assert_eq!(asked.len(), models.len() + 1);
            }
            (Err(error), Err(Err(code))) => prop_assert_eq!(error.status_code(), StatusCode(code)),
            (result, expected) => prop_assert!(false, "{:?} is not {:?}", result, expected),
        }
    }
}
