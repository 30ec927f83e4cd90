// A plugin in C, as a shared library and as a freestanding image: `demo_scale` multiplies numbers by a factor.
//
// README.md, in the folder above, has the commands; docs/guide/plugins.md of the repository explains them.
#include "halite_plugin.h"

typedef struct {
  const float* x;
  size_t x_offset;
  float* y;
  size_t y_offset;
  size_t len;
  float factor;
} scale_block_t;

static int scale(void* params, void* context, void* reserved) {
  (void)context;
  (void)reserved;
  const scale_block_t* block = (const scale_block_t*)params;
  const float* x = block->x + block->x_offset;
  float* y = block->y + block->y_offset;
  for (size_t i = 0; i < block->len; ++i) y[i] = block->factor * x[i];
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
  static const halite_plugin_function_t functions[] = {{"demo_scale", scale}};
  return halite_plugin_resolve_from(functions, 1, self, params, out_resolution);
}

const halite_plugin_header_t** iree_hal_executable_plugin_query(uint32_t max_version,
                                                                void* reserved) {
  static const halite_plugin_header_t header = {
      .version = HALITE_PLUGIN_VERSION_0_1,
      .name = "scale",
      .features = HALITE_PLUGIN_FEATURE_STANDALONE,
  };
  static const halite_plugin_v0_t plugin = {&header, load, NULL, resolve};
  (void)reserved;
  return halite_plugin_answer(&plugin, max_version);
}
