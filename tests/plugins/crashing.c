/* Sample plugin whose `lab_scale_add` ends the process, or does not end, as the parameter `how` says:
 *
 *   divide   divides by zero
 *   wild     reads memory that is not there
 *   loop     never returns
 *   abort    gives up
 *
 * Without the parameter it does nothing and returns OK, so that a host may call it.
 */
#include <signal.h>
#include <stdlib.h>

#include "halite_plugin.h"

typedef enum { NOTHING, DIVIDE, WILD, LOOP, ABORT } how_t;

static volatile how_t chosen = NOTHING;
static volatile int zero = 0;

static int crash(void* params, void* context, void* reserved) {
  (void)params;
  (void)context;
  (void)reserved;
  switch (chosen) {
    case DIVIDE:
#if defined(__x86_64__) || defined(__i386__)
      return (int)chosen / zero;
#else
      /* Other processors give zero. */
      raise(SIGFPE);
      return 1;
#endif
    case WILD:
      return *(volatile int*)(uintptr_t)(zero + 16);
    case LOOP:
      for (;;) zero = 0;
    case ABORT:
      abort();
    case NOTHING:
      break;
  }
  return 0;
}

static int is(halite_string_view_t text, const char* expected) {
  for (size_t i = 0; i < text.size; ++i) {
    if (text.data[i] != expected[i]) return 0;
  }
  return expected[text.size] == 0;
}

static halite_status_t load(const halite_plugin_environment_t* environment, size_t param_count,
                            const halite_string_pair_t* params, void** out_self) {
  static const char* const names[] = {"", "divide", "wild", "loop", "abort"};
  (void)environment;
  for (size_t i = 0; i < param_count; ++i) {
    for (int how = DIVIDE; how <= ABORT; ++how) {
      if (is(params[i].key, "how") && is(params[i].value, names[how])) chosen = (how_t)how;
    }
  }
  *out_self = NULL;
  return HALITE_OK;
}

static halite_status_t resolve(void* self, const halite_plugin_resolve_params_t* params,
                               uint32_t* out_resolution) {
  static const halite_plugin_function_t functions[] = {{"lab_scale_add", crash}};
  return halite_plugin_resolve_from(functions, 1, self, params, out_resolution);
}

const halite_plugin_header_t** iree_hal_executable_plugin_query(uint32_t max_version,
                                                                void* reserved) {
  static const halite_plugin_header_t header = {
      .version = HALITE_PLUGIN_VERSION_0_1,
      .name = "crashing",
      .description = "lab_scale_add ends the process",
  };
  static const halite_plugin_v0_t plugin = {&header, load, NULL, resolve};
  (void)reserved;
  return halite_plugin_answer(&plugin, max_version);
}
