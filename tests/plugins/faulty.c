/* Sample plugin with one fault, chosen by macros. Without any it is a correct plugin.
 *
 * Hosts must refuse or contain each fault. artifacts.txt lists the variants that tests use.
 *
 *   QUERY_IS_NULL         the query returns NULL
 *   HEADER_IS_NULL        the plugin has no header
 *   LOAD_IS_NULL          the plugin has no load function
 *   RESOLVE_IS_NULL       the plugin has no resolve function
 *   UNLOAD_IS_NULL        the plugin has no unload function, which is legal
 *   NAME_IS_NULL          the header has no name and no description, which is legal
 *   VERSION=n             the header's version
 *   FEATURES=n            the header's features
 *   SANITIZER=n           the header's sanitizer
 *   RESERVED=n            the header's first reserved word
 *   LOAD_STATUS=n         load returns n and leaves self NULL; unload reads through self
 *   RESOLVE_STATUS=n      resolve fills what it can and returns n
 *   RESOLVE_FILLS_NOTHING resolve returns OK without filling any slot
 *   RESOLVE_OVERWRITES    resolve replaces slots that another provider filled
 *   RESOLVE_KEEPS_BITS    resolve does not write the resolution bits
 *   RESOLUTION=n          resolve writes n as the resolution bits
 *   IMPORT_RESULT=n       the imported function returns n
 */
#include "halite_plugin.h"

#ifndef VERSION
#define VERSION HALITE_PLUGIN_VERSION_0_1
#endif
#ifndef FEATURES
#define FEATURES HALITE_PLUGIN_FEATURE_STANDALONE
#endif
#ifndef SANITIZER
#define SANITIZER HALITE_SANITIZER_NONE
#endif
#ifndef RESERVED
#define RESERVED 0
#endif
#ifndef IMPORT_RESULT
#define IMPORT_RESULT 0
#endif

/* The parameter block of lab_scale_add. */
typedef struct {
  const float* a;
  size_t a_offset;
  const float* b;
  size_t b_offset;
  float* c;
  size_t c_offset;
  size_t len;
} block_t;

/* The state of the one instance that tests load. */
static int instance;

static int scale_add(void* params, void* context, void* reserved) {
  (void)context;
  (void)reserved;
  const block_t* block = (const block_t*)params;
  for (size_t i = 0; i < block->len; ++i) {
    block->c[block->c_offset + i] =
        block->a[block->a_offset + i] * 10.0f + block->b[block->b_offset + i];
  }
  return IMPORT_RESULT;
}

#if !defined(LOAD_IS_NULL)
static halite_status_t load(const halite_plugin_environment_t* environment, size_t param_count,
                            const halite_string_pair_t* params, void** out_self) {
  (void)environment;
  (void)param_count;
  (void)params;
#if defined(LOAD_STATUS)
  (void)out_self;
  return (halite_status_t)LOAD_STATUS;
#else
  *out_self = &instance;
  return HALITE_OK;
#endif
}
#endif

#if !defined(UNLOAD_IS_NULL)
/* Faults if the host unloads what never loaded, as the unload of many a plugin does. */
static void unload(void* self) { *(volatile int*)self += 1; }
#endif

#if !defined(RESOLVE_IS_NULL)
static halite_status_t resolve(void* self, const halite_plugin_resolve_params_t* params,
                               uint32_t* out_resolution) {
  uint32_t resolution = 0;
  halite_status_t status = HALITE_OK;
#if defined(RESOLVE_FILLS_NOTHING)
  (void)self;
  (void)params;
  (void)scale_add;
#else
  for (size_t i = 0; i < params->count; ++i) {
#if !defined(RESOLVE_OVERWRITES)
    if (params->out_fn_ptrs[i]) continue;
#endif
    const char* name = params->symbol_names[i];
    int is_optional = name[0] == '?';
    if (is_optional) ++name;
    if (halite_names_equal(name, "lab_scale_add")) {
      params->out_fn_ptrs[i] = scale_add;
      params->out_fn_contexts[i] = self;
    } else if (is_optional) {
      resolution |= HALITE_RESOLUTION_MISSING_OPTIONAL;
    } else {
      status = HALITE_NOT_FOUND;
    }
  }
#endif
#if defined(RESOLUTION)
  resolution = RESOLUTION;
#endif
#if defined(RESOLVE_KEEPS_BITS)
  (void)resolution;
  (void)out_resolution;
#else
  *out_resolution = resolution;
#endif
#if defined(RESOLVE_STATUS)
  status = (halite_status_t)RESOLVE_STATUS;
#endif
  return status;
}
#endif

const halite_plugin_header_t** iree_hal_executable_plugin_query(uint32_t max_version,
                                                                void* reserved) {
  static const halite_plugin_header_t header = {
      .version = VERSION,
#if !defined(NAME_IS_NULL)
      .name = "faulty",
      .description = "has one fault",
#endif
      .features = FEATURES,
      .sanitizer = SANITIZER,
      .reserved = {RESERVED},
  };
  static const halite_plugin_v0_t plugin = {
#if !defined(HEADER_IS_NULL)
      .header = &header,
#endif
#if !defined(LOAD_IS_NULL)
      .load = load,
#endif
#if !defined(UNLOAD_IS_NULL)
      .unload = unload,
#endif
#if !defined(RESOLVE_IS_NULL)
      .resolve = resolve,
#endif
  };
  (void)reserved;
  (void)header;
  (void)instance;
#if defined(RESOLVE_IS_NULL)
  (void)scale_add;
#endif
#if defined(QUERY_IS_NULL)
  (void)plugin;
  (void)max_version;
  return NULL;
#else
  return halite_plugin_answer(&plugin, max_version);
#endif
}
