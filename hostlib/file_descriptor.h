// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include "base/file_descriptor.h"
