/* SPDX-License-Identifier: BSD-2-Clause */
/* peal-guest-selftest TEST...: runs in a guest; prints what failed and ends with 1, or a line per
 * test. */
#include "tests/guest/device.h"

static const struct {
  const char* name;
  void (*run)(void);
} tests[] = {
    {"arguments", test_arguments},
    {"memory", test_memory},
    {"groups", test_groups},
    {"mappings", test_mappings},
    {"contexts", test_contexts},
    {"rings", test_rings},
    {"death", test_death},
    {"orphan", test_orphan},
    {"silence", test_silence},
    {"sleep", test_sleep},
    {"first_use", test_first_use},
    {"half_way", test_half_way},
    {"stuck_reset", test_stuck_reset},
};

/* Most of these take the device away, and are told where it is in /sys. */
static const struct {
  const char* name;
  void (*run)(const char* argument);
} told_tests[] = {
    {"unplug", test_unplug},
    {"hangup", test_hangup},
    {"late", test_late},
    {"storm", test_storm},
    {"stuck", test_stuck},
    {"allocation", test_allocation},
    {"silent_removal", test_silent_removal},
    {"full", test_full},
};

static int run_told(const char* name, const char* argument) {
  size_t i;

  for (i = 0; i < sizeof(told_tests) / sizeof(told_tests[0]); i++) {
    if (strcmp(told_tests[i].name, name) != 0) continue;
    told_tests[i].run(argument);
    printf("ok: %s\n", name);
    return 1;
  }
  return 0;
}

static int run(const char* name) {
  size_t i;

  for (i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
    if (strcmp(tests[i].name, name) != 0) continue;
    tests[i].run();
    printf("ok: %s\n", name);
    return 1;
  }
  printf("selftest: no test '%s'\n", name);
  return 0;
}

int main(int argc, char** argv) {
  int i;

  if (argc == 3 && run_told(argv[1], argv[2])) return 0;
  if (argc == 3 && !strcmp(argv[1], "counter")) {
    print_counter(argv[2]);
    return 0;
  }
  for (i = 1; i < argc; i++) {
    if (!run(argv[i])) return 2;
  }
  return argc < 2 ? 2 : 0;
}
