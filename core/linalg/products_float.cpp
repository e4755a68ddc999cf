// Products of matrices in float, compiled.
#include "linalg/products_of.hpp"

template void slimsvm::multiply<float>(MatrixView<const float>, MatrixView<const float>, MatrixView<float>, Store, ThreadPool&, Monitor&, bool);
