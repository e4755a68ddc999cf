// The passes for rows in float, compiled.
#include "learning/passes_of.hpp"

template std::unique_ptr<slimsvm::AnyPasses> slimsvm::make_passes<float>(std::shared_ptr<Rows>, Labels, int, std::size_t);
