// The end of everything a backend was given.
#pragma once

#include "kernels/backend.h"

namespace gradwire {

// Waits until all work queued so far has run and its callbacks have returned. Holds up the caller
// for as long as the device needs; the caller must hold no lock that a callback takes.
void drain(Backend& backend);

}  // namespace gradwire
