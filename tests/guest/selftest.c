/* SPDX-License-Identifier: BSD-2-Clause */
/* peal-guest-selftest TEST...: runs in a guest; prints what failed and ends with 1, or a line per
 * test. */
#include "tests/guest/device.h"

static const struct {
  const char* name;
  void (*run)(void);
} tests[] = {
    {"arguments", test_arguments}, {"memory", test_memory},     {"groups", test_groups},
    {"mappings", test_mappings},   {"contexts", test_contexts}, {"rings", test_rings},
    {"death", test_death},         {"orphan", test_orphan},
};

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

  if (argc == 3 && !strcmp(argv[1], "unplug")) {
    test_unplug(argv[2]);
    printf("ok: unplug\n");
    return 0;
  }
  if (argc == 3 && !strcmp(argv[1], "counter")) {
    print_counter(argv[2]);
    return 0;
  }
  for (i = 1; i < argc; i++) {
    if (!run(argv[i])) return 2;
  }
  return argc < 2 ? 2 : 0;
}
