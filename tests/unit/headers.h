// SPDX-License-Identifier: BSD-2-Clause
// What nearly every test includes: precompiled (CMakeLists.txt).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
