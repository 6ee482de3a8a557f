// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/headers.h"
