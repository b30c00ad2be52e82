#include "server/tune_malloc.h"

#include <malloc.h>

namespace gradwire::server {

void tune_malloc() {
  mallopt(M_ARENA_MAX, 1);  // other arenas cannot hold large blocks and map them anew each time
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_TRIM_THRESHOLD, 512 << 20);
  mallopt(M_MMAP_THRESHOLD, 128 << 20);
}

}  // namespace gradwire::server
