// SessionEngine over the real engine.
#pragma once

#include "engine/ops/worker.h"
#include "server/session_engine.h"

namespace gradwire::server {

// Whether the op of that number answers with a reply of its own.
bool op_replies(uint32_t number);

// `worker` outlives the factory and everything it makes. `memory_limit`: bytes of one session,
// 0 for none.
SessionEngineFactory engine_sessions(Worker& worker, uint64_t memory_limit);

}  // namespace gradwire::server
