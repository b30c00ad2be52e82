// SessionEngine over the real engine.
#pragma once

#include "engine/ops/worker.h"
#include "server/session_engine.h"

namespace gradwire::server {

// `worker` outlives the factory and everything it makes. `memory_limit`: bytes of one session,
// 0 for none.
SessionEngineFactory engine_sessions(Worker& worker, uint64_t memory_limit);

}  // namespace gradwire::server
