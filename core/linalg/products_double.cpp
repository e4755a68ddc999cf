// Products of matrices in double, compiled.
#include "linalg/products_of.hpp"

template void slimsvm::multiply<double>(MatrixView<const double>, MatrixView<const double>, MatrixView<double>, Store, ThreadPool&, Monitor&, bool);
