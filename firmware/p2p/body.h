// SPDX-License-Identifier: BSD-2-Clause
// What a packet between two members carries in front of user data (abi/wire.h), by value: where it
// lies in the packet it has no alignment.
#pragma once

#include <cstring>

#include "firmware/port.h"

namespace peal::p2p {

// Of a packet whose length was checked against its kind's.
template <typename Body>
Body body_of(const Packet& packet) {
  Body body;
  std::memcpy(&body, packet.payload, sizeof(body));
  return body;
}

}  // namespace peal::p2p
