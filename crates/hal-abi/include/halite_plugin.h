/* The executable plugin ABI 0.1, for plugin authors in C11 and later.
 *
 * Holds the structures that cross the boundary between a host (IREE's tools, Halite) and a plugin,
 * with their layouts asserted, and a few inline helpers. Needs no library: only <stddef.h> and
 * <stdint.h>, so a freestanding plugin can use it. `docs/abi.md` is the contract behind it, and
 * `docs/guide/plugins.md` shows how to build a plugin. The same types in Rust: crate `hal-abi`.
 */
#ifndef HALITE_PLUGIN_H_
#define HALITE_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define HALITE_STATIC_ASSERT static_assert
#else
#define HALITE_STATIC_ASSERT _Static_assert
#endif

/* The alignment of uint64_t in a struct: 8, but 4 on i386. */
typedef struct {
  char byte;
  uint64_t word;
} halite_u64_probe_t;
#define HALITE_U64_ALIGN offsetof(halite_u64_probe_t, word)

/* Asserts a size or an offset: on 64-bit targets, then on 32-bit targets. */
#define HALITE_ASSERT_SIZE(type, on_64, on_32) \
  HALITE_STATIC_ASSERT(sizeof(type) == (sizeof(void*) == 8 ? (on_64) : (on_32)), "size of " #type)
#define HALITE_ASSERT_OFFSET(type, field, on_64, on_32)                                  \
  HALITE_STATIC_ASSERT(offsetof(type, field) == (sizeof(void*) == 8 ? (on_64) : (on_32)), \
                       "offset of " #type "." #field)

/* ---- Status ------------------------------------------------------------------------------- */

/* A pointer-sized value: 0 is OK, the low five bits are the code. A value of 0x20 and above is the
 * address of a record that only its producer can read or free. Plugins return bare codes. */
typedef uintptr_t halite_status_t;

enum {
  HALITE_OK = 0,
  HALITE_CANCELLED = 1,
  HALITE_UNKNOWN = 2,
  HALITE_INVALID_ARGUMENT = 3,
  HALITE_DEADLINE_EXCEEDED = 4,
  HALITE_NOT_FOUND = 5,
  HALITE_ALREADY_EXISTS = 6,
  HALITE_PERMISSION_DENIED = 7,
  HALITE_RESOURCE_EXHAUSTED = 8,
  HALITE_FAILED_PRECONDITION = 9,
  HALITE_ABORTED = 10,
  HALITE_OUT_OF_RANGE = 11,
  HALITE_UNIMPLEMENTED = 12,
  HALITE_INTERNAL = 13,
  HALITE_UNAVAILABLE = 14,
  HALITE_DATA_LOSS = 15,
  HALITE_UNAUTHENTICATED = 16,
  HALITE_DEFERRED = 17,
  HALITE_STATUS_CODE_MASK = 0x1F
};

/* ---- Strings and the allocator ------------------------------------------------------------ */

/* A borrowed string; not NUL-terminated in general. */
typedef struct {
  const char* data;
  size_t size;
} halite_string_view_t;
HALITE_ASSERT_SIZE(halite_string_view_t, 16, 8);

typedef struct {
  halite_string_view_t key;
  halite_string_view_t value;
} halite_string_pair_t;
HALITE_ASSERT_SIZE(halite_string_pair_t, 32, 16);

/* What an allocator's control function is asked to do. */
enum {
  HALITE_ALLOCATOR_MALLOC = 0,
  HALITE_ALLOCATOR_CALLOC = 1,
  HALITE_ALLOCATOR_REALLOC = 2,
  HALITE_ALLOCATOR_FREE = 3
};

typedef struct {
  size_t byte_length;
} halite_alloc_params_t;
HALITE_ASSERT_SIZE(halite_alloc_params_t, 8, 4);

/* The host's allocator. Blocks are aligned to 16 bytes; zero bytes are refused. A failure may be a
 * status with a record, whatever the plugin's features: test for 0, mask to read the code. */
typedef struct {
  void* self;
  halite_status_t (*ctl)(void* self, int command, const void* params, void** inout_ptr);
} halite_allocator_t;
HALITE_ASSERT_SIZE(halite_allocator_t, 16, 8);
HALITE_ASSERT_OFFSET(halite_allocator_t, ctl, 8, 4);

/* ---- Imported functions ------------------------------------------------------------------- */

/* A function that a plugin supplies. `params` points at a struct: results, arguments, extra fields.
 * `context` is what resolution stored beside the function. `reserved` is NULL. Returns 0, or any
 * other value to fail the dispatch. Called from any thread, concurrently. */
typedef int (*halite_import_fn_t)(void* params, void* context, void* reserved);

/* ---- The plugin --------------------------------------------------------------------------- */

#define HALITE_PLUGIN_QUERY_SYMBOL "iree_hal_executable_plugin_query"
#define HALITE_PLUGIN_VERSION_0_1 1u

enum {
  HALITE_PLUGIN_FEATURE_STANDALONE = 1 << 0,
  HALITE_PLUGIN_FEATURE_FULL_STATUS = 1 << 1
};

enum {
  HALITE_SANITIZER_NONE = 0,
  HALITE_SANITIZER_ADDRESS = 1,
  HALITE_SANITIZER_MEMORY = 2,
  HALITE_SANITIZER_THREAD = 3,
  HALITE_SANITIZER_UNDEFINED = 4
};

/* The description of a plugin. */
typedef struct {
  uint32_t version;
  const char* name;
  const char* description;
  uint32_t features;
  int32_t sanitizer;
  uint64_t reserved[8];
} halite_plugin_header_t;
HALITE_ASSERT_SIZE(halite_plugin_header_t, 96, HALITE_U64_ALIGN == 4 ? 84 : 88);
HALITE_ASSERT_OFFSET(halite_plugin_header_t, name, 8, 4);
HALITE_ASSERT_OFFSET(halite_plugin_header_t, description, 16, 8);
HALITE_ASSERT_OFFSET(halite_plugin_header_t, features, 24, 12);
HALITE_ASSERT_OFFSET(halite_plugin_header_t, sanitizer, 28, 16);
HALITE_ASSERT_OFFSET(halite_plugin_header_t, reserved, 32, HALITE_U64_ALIGN == 4 ? 20 : 24);

/* What a host offers. Lives during the load; the allocator lives until the unload. */
typedef struct {
  halite_allocator_t host_allocator;
} halite_plugin_environment_t;
HALITE_ASSERT_SIZE(halite_plugin_environment_t, 16, 8);

/* A resolution request: parallel arrays of `count` entries. Skip slots that are not NULL. */
typedef struct {
  size_t count;
  const char* const* symbol_names;
  halite_import_fn_t* out_fn_ptrs;
  void** out_fn_contexts;
} halite_plugin_resolve_params_t;
HALITE_ASSERT_SIZE(halite_plugin_resolve_params_t, 32, 16);
HALITE_ASSERT_OFFSET(halite_plugin_resolve_params_t, symbol_names, 8, 4);
HALITE_ASSERT_OFFSET(halite_plugin_resolve_params_t, out_fn_ptrs, 16, 8);
HALITE_ASSERT_OFFSET(halite_plugin_resolve_params_t, out_fn_contexts, 24, 12);

enum { HALITE_RESOLUTION_MISSING_OPTIONAL = 1 << 0 };

/* A plugin. `unload` may be NULL; IREE's host calls it with NULL after a failed load. */
typedef struct {
  const halite_plugin_header_t* header;
  halite_status_t (*load)(const halite_plugin_environment_t* environment, size_t param_count,
                          const halite_string_pair_t* params, void** out_self);
  void (*unload)(void* self);
  halite_status_t (*resolve)(void* self, const halite_plugin_resolve_params_t* params,
                             uint32_t* out_resolution);
} halite_plugin_v0_t;
HALITE_ASSERT_SIZE(halite_plugin_v0_t, 32, 16);
HALITE_ASSERT_OFFSET(halite_plugin_v0_t, load, 8, 4);
HALITE_ASSERT_OFFSET(halite_plugin_v0_t, unload, 16, 8);
HALITE_ASSERT_OFFSET(halite_plugin_v0_t, resolve, 24, 12);

/* Makes a function visible outside the library. */
#if defined(_WIN32)
#define HALITE_PLUGIN_EXPORT __declspec(dllexport)
#else
#define HALITE_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* The entry point. Returns the plugin, seen as a pointer to its first field, or NULL if
 * `max_version` is less than the plugin's version. */
HALITE_PLUGIN_EXPORT const halite_plugin_header_t** iree_hal_executable_plugin_query(
    uint32_t max_version, void* reserved);

/* Answers a query with a plugin of version 0.1. */
static inline const halite_plugin_header_t** halite_plugin_answer(const halite_plugin_v0_t* plugin,
                                                                  uint32_t max_version) {
  return max_version >= HALITE_PLUGIN_VERSION_0_1 ? (const halite_plugin_header_t**)plugin
                                                  : (const halite_plugin_header_t**)0;
}

/* ---- A table of functions ----------------------------------------------------------------- */

/* A function under its name. */
typedef struct {
  const char* name;
  halite_import_fn_t function;
} halite_plugin_function_t;

/* Returns whether two names are the same. */
static inline int halite_names_equal(const char* left, const char* right) {
  while (*left && *left == *right) {
    ++left;
    ++right;
  }
  return *left == *right;
}

/* Resolves a request from a table of `function_count` functions, in any order, which all get the
 * same context. Costs count * function_count comparisons; sort and search large tables yourself. */
static inline halite_status_t halite_plugin_resolve_from(
    const halite_plugin_function_t* functions, size_t function_count, void* context,
    const halite_plugin_resolve_params_t* params, uint32_t* out_resolution) {
  uint32_t resolution = 0;
  halite_status_t status = HALITE_OK;
  for (size_t i = 0; i < params->count; ++i) {
    if (params->out_fn_ptrs[i]) continue;
    const char* name = params->symbol_names[i];
    int is_optional = name[0] == '?';
    if (is_optional) ++name;
    size_t j = 0;
    while (j < function_count && !halite_names_equal(functions[j].name, name)) ++j;
    if (j < function_count) {
      params->out_fn_ptrs[i] = functions[j].function;
      params->out_fn_contexts[i] = context;
    } else if (is_optional) {
      resolution |= HALITE_RESOLUTION_MISSING_OPTIONAL;
    } else {
      status = HALITE_NOT_FOUND;
    }
  }
  *out_resolution = resolution;
  return status;
}

#ifdef __cplusplus
}
#endif

#endif /* HALITE_PLUGIN_H_ */
