// The passes for rows in double, compiled.
#include "learning/passes_of.hpp"

template std::unique_ptr<slimsvm::AnyPasses> slimsvm::make_passes<double>(std::shared_ptr<Rows>, Labels, int, std::size_t);
