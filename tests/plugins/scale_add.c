/* Sample plugin: `lab_scale_add`, which computes c[i] = a[i] * 10 + b[i].
 *
 * The same source is a shared library and a freestanding image; README.md has the build commands.
 */
#include "halite_plugin.h"

/* (memref<f32>, index, memref<f32>, index, memref<f32>, index, index) with bare pointers. */
typedef struct {
  const float* a;
  size_t a_offset;
  const float* b;
  size_t b_offset;
  float* c;
  size_t c_offset;
  size_t len;
} scale_add_block_t;

static int scale_add(void* params, void* context, void* reserved) {
  (void)context;
  (void)reserved;
  const scale_add_block_t* block = (const scale_add_block_t*)params;
  const float* a = block->a + block->a_offset;
  const float* b = block->b + block->b_offset;
  float* c = block->c + block->c_offset;
  for (size_t i = 0; i < block->len; ++i) c[i] = a[i] * 10.0f + b[i];
  return 0;
}

static halite_status_t load(const halite_plugin_environment_t* environment, size_t param_count,
                            const halite_string_pair_t* params, void** out_self) {
  (void)environment;
  (void)param_count;
  (void)params;
  *out_self = NULL;
  return HALITE_OK;
}

static halite_status_t resolve(void* self, const halite_plugin_resolve_params_t* params,
                               uint32_t* out_resolution) {
  static const halite_plugin_function_t functions[] = {{"lab_scale_add", scale_add}};
  return halite_plugin_resolve_from(functions, 1, self, params, out_resolution);
}

const halite_plugin_header_t** iree_hal_executable_plugin_query(uint32_t max_version,
                                                                void* reserved) {
  static const halite_plugin_header_t header = {
      .version = HALITE_PLUGIN_VERSION_0_1,
      .name = "scale_add_c",
      .description = "lab_scale_add: c[i] = a[i] * 10 + b[i]",
      .features = HALITE_PLUGIN_FEATURE_STANDALONE,
  };
  static const halite_plugin_v0_t plugin = {&header, load, NULL, resolve};
  (void)reserved;
  return halite_plugin_answer(&plugin, max_version);
}
