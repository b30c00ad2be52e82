// The version that every part of the server reports.
#pragma once

namespace gradwire::server {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace gradwire::server
