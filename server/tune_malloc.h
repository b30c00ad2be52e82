// glibc's malloc for a server that moves bulk data.
#pragma once

namespace gradwire::server {

// glibc gives freed read buffers back to the system and faults them in again for the next chunk:
// fifty times the page faults. Call before the first thread.
void tune_malloc();

}  // namespace gradwire::server
