//! The debug database of a module: function names and source locations, looked up when a person needs them.
//!
//! Nothing is read before it is asked for, and whatever is wrong in the database only makes the answer `None`: what
//! serves diagnosis alone must not keep a module from running. See `docs/vm.md`, section "Debug database".

use core::fmt::Write as _;

use crate::ModuleDef;
use crate::flatbuffer::{Field, FieldError, FlatBuffer, Table, Tables};
use crate::schema::DEBUG_DATABASE;

const LOCATION_TABLE_TYPE: Field = Field(0, "location_table_type");
const LOCATION_TABLE: Field = Field(1, "location_table");
const FUNCTIONS: Field = Field(2, "functions");
const LOCAL_NAME: Field = Field(0, "local_name");
const LOCATIONS: Field = Field(1, "locations");

/// How many locations deep a location may refer to others before the rest is left out.
const MAX_DEPTH: usize = 8;
/// How many bytes of text a location may become before the rest is left out.
const MAX_TEXT: usize = 1024;

/// Looks up names and source locations in the debug database of a module.
#[derive(Clone, Copy, Debug)]
pub struct DebugDatabase<'a> {
    def: &'a ModuleDef,
    flatbuffer: &'a [u8],
}

impl<'a> DebugDatabase<'a> {
    /// Makes a view of the database of the module `def`, which was read from `file`.
    ///
    /// Returns `None` if the database was stripped.
    #[must_use]
    pub fn new(def: &'a ModuleDef, file: &'a [u8]) -> Option<Self> {
        let flatbuffer = file.get(def.archive.flatbuffer())?;
        def.has_debug_database.then_some(Self { def, flatbuffer })
    }

    /// Returns the name of a function, also of one that is not exported.
    #[must_use]
    pub fn function_name(&self, function: u32) -> Option<String> {
        self.read(|root| {
            let Some(map) = self.function_map(root, function)? else {
                return Ok(None);
            };
            Ok(map.string(LOCAL_NAME)?.map(str::to_owned))
        })
    }

    /// Returns the source location of the instruction at byte `offset` of a function, spelled as MLIR does.
    #[must_use]
    pub fn location(&self, function: u32, offset: u32) -> Option<String> {
        self.read(|root| {
            let Some(map) = self.function_map(root, function)? else {
                return Ok(None);
            };
            let locations = map.vector::<8>(LOCATIONS)?.elements();
            let entries = locations.iter().map(|&[a, b, c, d, e, f, g, h]| {
                (
                    i32::from_le_bytes([a, b, c, d]),
                    i32::from_le_bytes([e, f, g, h]),
                )
            });
            // An entry holds for all instructions up to the next one.
            let entry = entries
                .take_while(|&(start, _)| i64::from(start) <= i64::from(offset))
                .last();
            let Some((_, location)) = entry else {
                return Ok(None);
            };
            let mut text = String::new();
            LocationTable::new(root)?.write(location, MAX_DEPTH, &mut text)?;
            Ok(Some(text).filter(|text| !text.is_empty()))
        })
    }

    /// Runs a query on the root of the database with a fresh budget.
    fn read<T>(
        &self,
        query: impl FnOnce(&Table<'_>) -> Result<Option<T>, FieldError>,
    ) -> Option<T> {
        let buffer = FlatBuffer::new(self.flatbuffer, self.def.archive.flatbuffer().start);
        let root = buffer
            .root("BytecodeModuleDef")
            .ok()?
            .table(DEBUG_DATABASE, "DebugDatabaseDef")
            .ok()??;
        query(&root).ok()?
    }

    /// Finds the entry of a function.
    ///
    /// Up to IREE 3.10 there is one entry per function in order. Later releases write one entry only, that of the last
    /// function, so the name decides whenever there is one.
    fn function_map<'b>(
        &self,
        root: &Table<'b>,
        function: u32,
    ) -> Result<Option<Table<'b>>, FieldError> {
        let maps = root.tables(FUNCTIONS, "FunctionSourceMapDef")?;
        let Some(name) = self.def.export_name(function) else {
            let is_complete = maps.len() == self.def.functions.len();
            return if is_complete {
                maps.get(function as usize)
            } else {
                Ok(None)
            };
        };
        let mut index = 0;
        while let Some(map) = maps.get(index)? {
            if map.string(LOCAL_NAME)? == Some(name) {
                return Ok(Some(map));
            }
            index += 1;
        }
        Ok(None)
    }
}

/// The locations of the database, to write some of them as text.
struct LocationTable<'a> {
    kinds: &'a [u8],
    locations: Tables<'a>,
}

impl<'a> LocationTable<'a> {
    fn new(root: &Table<'a>) -> Result<Self, FieldError> {
        Ok(Self {
            kinds: root
                .bytes(LOCATION_TABLE_TYPE)?
                .map_or(&[], |kinds| kinds.bytes),
            locations: root.tables(LOCATION_TABLE, "LocationTypeDef")?,
        })
    }

    /// Appends the text of a location. Depth and length are limited because locations may refer to each other in
    /// circles.
    fn write(&self, index: i32, depth: usize, text: &mut String) -> Result<(), FieldError> {
        if depth == 0 || text.len() > MAX_TEXT {
            text.push_str("...");
            return Ok(());
        }
        let Ok(index) = usize::try_from(index) else {
            return Ok(());
        };
        let (Some(kind), Some(location)) = (self.kinds.get(index), self.locations.get(index)?)
        else {
            return Ok(());
        };
        let string = |field| Ok::<_, FieldError>(location.string(field)?.unwrap_or_default());
        match kind {
            1 => {
                text.push_str("callsite(");
                self.write(location.i32(Field(0, "callee"), 0)?, depth - 1, text)?;
                text.push_str(" at ");
                self.write(location.i32(Field(1, "caller"), 0)?, depth - 1, text)?;
                text.push(')');
            }
            2 => {
                let (line, column) = (
                    location.i32(Field(1, "line"), 0)?,
                    location.i32(Field(2, "column"), 0)?,
                );
                let filename = string(Field(0, "filename"))?;
                write!(text, "{filename}:{line}:{column}").expect("a string takes any text");
            }
            3 => {
                text.push_str("fused[");
                let mut separator = "";
                for &child in location.vector::<4>(Field(1, "locations"))?.elements() {
                    text.push_str(separator);
                    separator = ", ";
                    self.write(i32::from_le_bytes(child), depth - 1, text)?;
                    if text.len() > MAX_TEXT {
                        break;
                    }
                }
                text.push(']');
            }
            4 => {
                let name = string(Field(0, "name"))?;
                write!(text, "\"{name}\"(").expect("a string takes any text");
                self.write(
                    location.i32(Field(1, "child_location"), 0)?,
                    depth - 1,
                    text,
                )?;
                text.push(')');
            }
            _ => {}
        }
        Ok(())
    }
}
