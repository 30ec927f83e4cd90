/* The executable library ABI 0.6 and 0.5, for hand-made libraries in C11 and later.
 *
 * Compilers make libraries; write one by hand to test a loader. Holds the tables of a library and
 * the structures that a kernel gets, with their layouts asserted. `docs/abi.md`, sections 7 to 9,
 * is the contract behind it. The same types in Rust: crate `hal-abi`.
 */
#ifndef HALITE_LIBRARY_H_
#define HALITE_LIBRARY_H_

#include "halite_plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What a kernel gets ------------------------------------------------------------------- */

#define HALITE_MAX_CONSTANTS 64
#define HALITE_MAX_BINDINGS 64
#define HALITE_LOCAL_MEMORY_PAGE_SIZE 4096

/* Calls an import for a kernel. */
typedef int (*halite_import_thunk_t)(halite_import_fn_t function, void* params, void* context,
                                     void* reserved);

/* CPU features; see docs/abi.md, section 9. */
typedef struct {
  uint64_t data[8];
} halite_processor_t;
HALITE_ASSERT_SIZE(halite_processor_t, 64, 64);

typedef struct {
  const uint32_t* constants;
  halite_import_thunk_t import_thunk;
  const halite_import_fn_t* import_funcs;
  void* const* import_contexts;
  halite_processor_t processor;
} halite_environment_t;
HALITE_ASSERT_SIZE(halite_environment_t, 96, 80);
HALITE_ASSERT_OFFSET(halite_environment_t, processor, 32, 16);

typedef struct {
  uint32_t workgroup_size_x;
  uint32_t workgroup_size_y;
  uint16_t workgroup_size_z;
  uint16_t constant_count;
  uint32_t workgroup_count_x;
  uint32_t workgroup_count_y;
  uint16_t workgroup_count_z;
  uint8_t max_concurrency;
  uint8_t binding_count;
  const uint32_t* constants;
  void* const* binding_ptrs;
  const size_t* binding_lengths;
} halite_dispatch_state_t;
HALITE_ASSERT_SIZE(halite_dispatch_state_t, 48, 36);
HALITE_ASSERT_OFFSET(halite_dispatch_state_t, constants, 24, 24);

typedef struct {
  uint32_t workgroup_id_x;
  uint32_t workgroup_id_y;
  uint16_t workgroup_id_z;
  uint16_t reserved;
  uint32_t processor_id;
  void* local_memory;
  uint32_t local_memory_size;
} halite_workgroup_state_t;
HALITE_ASSERT_SIZE(halite_workgroup_state_t, 32, 24);
HALITE_ASSERT_OFFSET(halite_workgroup_state_t, local_memory, 16, 16);

/* A kernel: computes one workgroup. Returns 0, or any other value to fail the dispatch. */
typedef int (*halite_dispatch_fn_t)(const halite_environment_t* environment,
                                    const halite_dispatch_state_t* dispatch_state,
                                    const halite_workgroup_state_t* workgroup_state);

/* ---- Tables that all versions share ------------------------------------------------------- */

#define HALITE_LIBRARY_QUERY_SYMBOL "iree_hal_executable_library_query"
#define HALITE_LIBRARY_VERSION_0_5 5u
#define HALITE_LIBRARY_VERSION_0_6 6u

typedef struct {
  uint32_t version;
  const char* name;
  uint32_t features;
  int32_t sanitizer;
} halite_library_header_t;
HALITE_ASSERT_SIZE(halite_library_header_t, 24, 16);

typedef struct {
  uint32_t count;
  const char* const* symbols;
} halite_import_table_t;
HALITE_ASSERT_SIZE(halite_import_table_t, 16, 8);

typedef struct {
  uint32_t count;
} halite_constant_table_t;
HALITE_ASSERT_SIZE(halite_constant_table_t, 4, 4);

typedef struct {
  uint32_t line;
  uint32_t path_length;
  const char* path;
} halite_source_location_t;
HALITE_ASSERT_SIZE(halite_source_location_t, 16, 12);

typedef struct {
  uint32_t count;
  const char* const* names;
  const halite_source_location_t* locations;
} halite_stage_location_table_t;
HALITE_ASSERT_SIZE(halite_stage_location_table_t, 24, 12);

typedef struct {
  uint32_t path_length;
  const char* path;
  uint32_t content_length;
  const char* content;
} halite_source_file_t;
HALITE_ASSERT_SIZE(halite_source_file_t, 32, 16);

typedef struct {
  uint32_t count;
  const halite_source_file_t* files;
} halite_source_file_table_t;
HALITE_ASSERT_SIZE(halite_source_file_table_t, 16, 8);

/* ---- Version 0.6 -------------------------------------------------------------------------- */

enum {
  HALITE_DISPATCH_FLAG_SEQUENTIAL = 1 << 0,
  HALITE_DISPATCH_FLAG_WORKGROUP_SIZE_DYNAMIC = 1 << 1
};

typedef struct {
  uint64_t flags;
  uint16_t local_memory_pages;
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t workgroup_size_x;
  uint32_t workgroup_size_y;
  uint16_t workgroup_size_z;
  uint16_t parameter_count;
  uint64_t reserved_1[5];
} halite_dispatch_attrs_v0_6_t;
HALITE_ASSERT_SIZE(halite_dispatch_attrs_v0_6_t, 64, 64);

enum {
  HALITE_PARAMETER_CONSTANT = 0,
  HALITE_PARAMETER_BINDING = 1,
  HALITE_PARAMETER_BUFFER_PTR = 2,
  HALITE_PARAMETER_NO_NAME = 0xFFFF
};

typedef struct {
  uint8_t parameter_type;
  uint8_t size;
  uint16_t flags;
  uint16_t name;
  uint16_t offset;
} halite_parameter_record_t;
HALITE_ASSERT_SIZE(halite_parameter_record_t, 8, 8);

typedef struct {
  int reserved;
} halite_occupancy_info_t;
HALITE_ASSERT_SIZE(halite_occupancy_info_t, 4, 4);

typedef struct {
  uint32_t count;
  const halite_dispatch_fn_t* ptrs;
  const halite_dispatch_attrs_v0_6_t* attrs;
  const halite_parameter_record_t* const* params;
  const halite_occupancy_info_t* occupancy;
  const char* const* names;
  const char* const* tags;
  const char* const* parameter_names;
  const halite_source_location_t* source_locations;
  const halite_stage_location_table_t* stage_locations;
} halite_export_table_v0_6_t;
HALITE_ASSERT_SIZE(halite_export_table_v0_6_t, 80, 40);

typedef struct {
  const halite_library_header_t* header;
  halite_import_table_t imports;
  halite_export_table_v0_6_t exports;
  halite_constant_table_t constants;
  halite_source_file_table_t sources;
} halite_library_v0_6_t;
HALITE_ASSERT_SIZE(halite_library_v0_6_t, 128, 64);
HALITE_ASSERT_OFFSET(halite_library_v0_6_t, constants, 104, 52);

/* ---- Version 0.5 -------------------------------------------------------------------------- */

typedef struct {
  uint16_t local_memory_pages;
  uint8_t constant_count;
  uint8_t binding_count;
  uint32_t reserved_0;
  uint64_t reserved_1[8];
} halite_dispatch_attrs_v0_5_t;
HALITE_ASSERT_SIZE(halite_dispatch_attrs_v0_5_t, 72, 72);

typedef struct {
  uint32_t count;
  const halite_dispatch_fn_t* ptrs;
  const halite_dispatch_attrs_v0_5_t* attrs;
  const char* const* names;
  const char* const* tags;
  const halite_source_location_t* source_locations;
  const halite_stage_location_table_t* stage_locations;
} halite_export_table_v0_5_t;
HALITE_ASSERT_SIZE(halite_export_table_v0_5_t, 56, 28);

typedef struct {
  const halite_library_header_t* header;
  halite_import_table_t imports;
  halite_export_table_v0_5_t exports;
  halite_constant_table_t constants;
  halite_source_file_table_t sources;
} halite_library_v0_5_t;
HALITE_ASSERT_SIZE(halite_library_v0_5_t, 104, 52);
HALITE_ASSERT_OFFSET(halite_library_v0_5_t, constants, 80, 40);

/* The entry point. A library answers exactly its own version and NULL to all others. The result is
 * the library, seen as a pointer to its first field. */
HALITE_PLUGIN_EXPORT const halite_library_header_t** iree_hal_executable_library_query(
    uint32_t max_version, const halite_environment_t* environment);

#ifdef __cplusplus
}
#endif

#endif /* HALITE_LIBRARY_H_ */
